/* The clocks of the ensemble, its servers and each client; the lock; the trace. SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "base/threads.h"
#include "testing/ensemble.h"

int64_t dv_mem_clock_ms(void) {
    return dv_clock_ms(CLOCK_BOOTTIME);
}

int64_t divvy_testing_now_ms(const divvy_testing_ensemble *ensemble) {
    return ensemble->real ? dv_mem_clock_ms() : ensemble->now;
}

int64_t divvy_testing_wall_clock_ms(const divvy_testing_ensemble *ensemble) {
    return divvy_testing_now_ms(ensemble) + DV_MEM_WALL_CLOCK_MS;
}

int64_t dv_mem_wall_clock_ms(const dv_mem_server *server) {
    return divvy_testing_wall_clock_ms(server->mem) + server->wall_clock_offset_ms;
}

void dv_mem_lock(dv_mem *mem) {
    if (!mem->real) return;
    pthread_mutex_lock(&mem->mutex);
    mem->now = dv_mem_clock_ms();
}

void dv_mem_unlock(dv_mem *mem) {
    if (mem->real) pthread_mutex_unlock(&mem->mutex);
}

/* Apart from its caller: clang-tidy takes `arguments` for not begun there. */
__attribute__((format(printf, 2, 0))) static void trace(const dv_mem *mem, const char *format, va_list arguments) {
    enum { LINE_BYTES = 512 };
    char line[LINE_BYTES];
    vsnprintf(line, sizeof line, format, arguments);
    mem->config.on_trace(mem->now, line, mem->config.user);
}

void dv_mem_trace(const dv_mem *mem, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    trace(mem, format, arguments);
    va_end(arguments);
}

static int64_t shown_after(const dv_mem_client *client, int64_t passed_ms) {
    return client->clock_at + passed_ms + passed_ms * client->clock_ppm / 1000000;
}

int64_t dv_mem_client_now(const dv_mem_client *client) {
    return shown_after(client, client->mem->now - client->clock_since);
}

void dv_mem_client_set_clock(dv_mem_client *client, int64_t at, int64_t parts_per_million) {
    client->clock_at = at;
    client->clock_since = client->mem->now;
    client->clock_ppm = parts_per_million;
    atomic_store(&client->clock_ahead_ms, parts_per_million ? DV_MEM_BENT : at - client->clock_since);
}

int64_t dv_mem_client_when(const dv_mem_client *client, int64_t at) {
    if (at <= client->clock_at) return client->clock_since;
    int64_t wanted_ms = at - client->clock_at, passed_ms = wanted_ms;
    if (client->clock_ppm != 0 && wanted_ms < INT64_MAX / 2000000)
        passed_ms = wanted_ms * 1000000 / (1000000 + client->clock_ppm);
    while (passed_ms > 0 && shown_after(client, passed_ms - 1) >= at) passed_ms--;
    while (shown_after(client, passed_ms) < at) passed_ms++;
    return client->clock_since + passed_ms;
}

/* Takes no mutex, as with real servers, unless the clock was bent: threads that ask do not wait for one another. */
int64_t dv_mem_client_real_now(dv_mem_client *client) {
    int64_t ahead_ms = atomic_load(&client->clock_ahead_ms);
    if (ahead_ms != DV_MEM_BENT) return dv_mem_clock_ms() + ahead_ms;
    dv_mem_lock(client->mem);
    int64_t now = dv_mem_client_now(client);
    dv_mem_unlock(client->mem);
    return now;
}
