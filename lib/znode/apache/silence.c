/* Ends handshakes in which a server says nothing. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/silence.h"

#include <assert.h>
#include <dirent.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/threads.h"

enum { ESTABLISHED = 1 }; /* the kernel's TCP_ESTABLISHED: netinet/tcp.h, which has it, lacks the newer fields */
enum { LOOK_AGAIN_MS = 500 };

struct dv_silence {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    char *servers;
    int silent_ms;
    bool stopped;
};

/* ---- one look ---- */

static bool is_one_of(const char *servers, const char *server) {
    size_t bytes = strlen(server);
    for (const char *at = servers; (at = strstr(at, server)) != NULL; at += bytes) {
        if ((at == servers || at[-1] == ',') && (at[bytes] == ',' || at[bytes] == '\0')) return true;
    }
    return false;
}

/* Returns whether it is a TCP connection of that age on which nothing has come. */
static bool is_silent(int fd, int silent_ms) {
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
    bool tells_bytes = bytes >= offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
    /* Until something has come, the time of the last counts from when the connection was made. */
    return tells_bytes && info.tcpi_state == ESTABLISHED && info.tcpi_bytes_received == 0 &&
           info.tcpi_last_data_recv >= (unsigned)silent_ms;
}

static bool leads_to(int fd, const char *servers) {
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    char ip[INET6_ADDRSTRLEN], port[6], literal[INET6_ADDRSTRLEN + 8];
    if (getpeername(fd, (struct sockaddr *)&peer, &bytes) != 0) return false;
    if (getnameinfo((struct sockaddr *)&peer, bytes, ip, sizeof ip, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    snprintf(literal, sizeof literal, "%s:%s", ip, port);
    return is_one_of(servers, literal);
}

size_t dv_silence_end(const char *servers, int silent_ms) {
    size_t count = 0;
    DIR *fds = opendir("/proc/self/fd");
    if (!fds) return 0; /* No /proc here: the native client waits, as it does without us. */
    for (const struct dirent *entry; (entry = readdir(fds)) != NULL;) {
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        if (end == entry->d_name || *end || !is_silent((int)fd, silent_ms) || !leads_to((int)fd, servers)) continue;
        count += shutdown((int)fd, SHUT_RDWR) == 0;
    }
    closedir(fds);
    return count;
}

/* ---- the thread ---- */

static void *run(void *argument) {
    dv_silence *s = argument;
    pthread_mutex_lock(&s->mutex);
    while (!s->stopped) {
        if (s->silent_ms == DV_SILENCE_ANY) pthread_cond_wait(&s->changed, &s->mutex);
        else if (!dv_condition_wait(&s->changed, &s->mutex, dv_monotonic_ms() + LOOK_AGAIN_MS) && !s->stopped)
            dv_silence_end(s->servers, s->silent_ms);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void free_silence(dv_silence *s) {
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    free(s->servers);
    free(s);
}

dv_silence *dv_silence_start(const char *servers, int silent_ms) {
    dv_silence *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->silent_ms = silent_ms;
    s->servers = strdup(servers);
    pthread_mutex_init(&s->mutex, NULL);
    dv_condition_init(&s->changed);
    if (s->servers && dv_thread_start(&s->thread, run, s)) return s;
    free_silence(s);
    return NULL;
}

void dv_silence_allow(dv_silence *silence, int silent_ms) {
    pthread_mutex_lock(&silence->mutex);
    silence->silent_ms = silent_ms;
    pthread_cond_signal(&silence->changed);
    pthread_mutex_unlock(&silence->mutex);
}

void dv_silence_watch(dv_silence *silence, char *servers, int silent_ms) {
    pthread_mutex_lock(&silence->mutex);
    char *before = silence->servers;
    silence->servers = servers;
    if (silence->silent_ms != DV_SILENCE_ANY) silence->silent_ms = silent_ms;
    pthread_cond_signal(&silence->changed);
    pthread_mutex_unlock(&silence->mutex);
    free(before);
}

void dv_silence_stop(dv_silence *silence) {
    if (!silence) return;
    pthread_mutex_lock(&silence->mutex);
    assert(!silence->stopped);
    silence->stopped = true;
    pthread_cond_signal(&silence->changed);
    pthread_mutex_unlock(&silence->mutex);
    pthread_join(silence->thread, NULL);
    free_silence(silence);
}
