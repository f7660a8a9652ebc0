/* Ends handshakes in which a server says nothing. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/silence.h"

#include <assert.h>
#include <dirent.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "znode/apache/hosts.h"

enum { ESTABLISHED = 1 }; /* the kernel's TCP_ESTABLISHED: netinet/tcp.h, which has it, lacks the newer fields */
enum { LOOK_AGAIN_MS = 500, CLOSING_SILENT_MS = 1000 };

struct dv_silence {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    char *servers;
    int silent_ms;
    bool connected, closing, stopped;
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
    char ip[INET6_ADDRSTRLEN], port[6];
    dv_literal literal;
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

static void wait_a_while(dv_silence *s) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_AGAIN_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!s->stopped && pthread_cond_timedwait(&s->changed, &s->mutex, &until) == 0) {
    }
}

static void *run(void *argument) {
    dv_silence *s = argument;
    pthread_mutex_lock(&s->mutex);
    while (!s->stopped) {
        if (s->connected && !s->closing) pthread_cond_wait(&s->changed, &s->mutex);
        else wait_a_while(s);
        if (s->stopped || (s->connected && !s->closing)) continue;
        dv_silence_end(s->servers, s->closing ? CLOSING_SILENT_MS : s->silent_ms);
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
    s->silent_ms = silent_ms > CLOSING_SILENT_MS ? silent_ms : CLOSING_SILENT_MS;
    s->servers = strdup(servers);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (s->servers && pthread_create(&s->thread, NULL, run, s) == 0) return s;
    free_silence(s);
    return NULL;
}

static void set(dv_silence *s, bool *what, bool value) {
    pthread_mutex_lock(&s->mutex);
    *what = value;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

void dv_silence_connected(dv_silence *silence, bool connected) {
    set(silence, &silence->connected, connected);
}

bool dv_silence_set_servers(dv_silence *silence, const char *servers) {
    char *copy = strdup(servers);
    if (!copy) return false;
    pthread_mutex_lock(&silence->mutex);
    char *before = silence->servers;
    silence->servers = copy;
    pthread_mutex_unlock(&silence->mutex);
    free(before);
    return true;
}

void dv_silence_closing(dv_silence *silence) {
    set(silence, &silence->closing, true);
}

void dv_silence_stop(dv_silence *silence) {
    if (!silence) return;
    assert(!silence->stopped);
    set(silence, &silence->stopped, true);
    pthread_join(silence->thread, NULL);
    free_silence(silence);
}
