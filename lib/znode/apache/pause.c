/* Pauses between connections that servers close. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/pause.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "base/threads.h"

enum { FIRST_MS = 100, DOUBLINGS_MAX = 16 };

void dv_pause_init(dv_pause *pause, int session_timeout_ms) {
    *pause = (dv_pause){.servers = 1, .max_ms = session_timeout_ms / 4};
    pthread_mutex_init(&pause->mutex, NULL);
    dv_condition_init(&pause->changed);
}

void dv_pause_destroy(dv_pause *pause) {
    pthread_cond_destroy(&pause->changed);
    pthread_mutex_destroy(&pause->mutex);
}

void dv_pause_start(dv_pause *pause, unsigned servers) {
    assert(servers > 0);
    pthread_mutex_lock(&pause->mutex);
    pause->servers = servers;
    pause->closed = 0;
    pause->starts++;
    pause->off = false;
    pthread_cond_broadcast(&pause->changed);
    pthread_mutex_unlock(&pause->mutex);
}

void dv_pause_stop(dv_pause *pause) {
    pthread_mutex_lock(&pause->mutex);
    pause->off = true;
    pthread_cond_broadcast(&pause->changed);
    pthread_mutex_unlock(&pause->mutex);
}

void dv_pause_answered(dv_pause *pause) {
    pthread_mutex_lock(&pause->mutex);
    pause->closed = 0;
    pthread_mutex_unlock(&pause->mutex);
}

bool dv_pause_is_close(const char *line) {
    static const char *const closes[] = {": failed while receiving a server response",
                                         ": failed to send a handshake packet", ": failed while flushing send queue",
                                         ": error in ssl connect"};
    for (size_t i = 0; i < sizeof closes / sizeof closes[0]; i++) {
        if (strstr(line, closes[i])) return true;
    }
    return false;
}

/* Returns something from 3/4 of it to all of it, so that clients do not come all at once. */
static int spread(int ms) {
    unsigned char chance = 0;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != sizeof chance) chance = 0;
    return ms - ms * chance / 1024;
}

int dv_pause_count(dv_pause *pause) {
    pthread_mutex_lock(&pause->mutex);
    unsigned closed = ++pause->closed, servers = pause->servers;
    int max_ms = pause->off ? 0 : pause->max_ms;
    pthread_mutex_unlock(&pause->mutex);
    if (closed <= servers) return 0;
    unsigned doublings = closed - servers - 1;
    int ms = doublings > DOUBLINGS_MAX ? max_ms : FIRST_MS << doublings;
    return spread(ms < max_ms ? ms : max_ms);
}

void dv_pause_wait(dv_pause *pause, int ms) {
    int64_t until_ms = dv_monotonic_ms() + ms;
    pthread_mutex_lock(&pause->mutex);
    unsigned starts = pause->starts;
    while (!pause->off && pause->starts == starts && dv_condition_wait(&pause->changed, &pause->mutex, until_ms)) {
    }
    pthread_mutex_unlock(&pause->mutex);
}
