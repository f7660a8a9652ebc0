/* The cost of owning items and doing nothing: the session clock's heartbeats. SPDX-License-Identifier: Apache-2.0
 *
 * One member owns all items of a pool. For a while nothing happens, and the traffic of that time is counted three
 * times: by the library, by the kernel for the client's connection, and by the server, which also counts the native
 * client's pings. One line of JSON tells it. There is only one address, of an idle server, so that all of the
 * traffic is ours. */
#include <dirent.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The kernel's struct tcp_info is longer than libc's. */
#include <linux/tcp.h>

#include "divvy/divvy.h"
#include "server_counters.h"

enum { ITEMS_MAX = 100000, ITEM_BYTES = 32, CONNECT_TIMEOUT_MS = 20000, ACQUIRE_TIMEOUT_MS = 120000 };

/* Counted since the beginning. */
typedef struct {
    double at_s;
    divvy_stats client;
    uint64_t wire_sent_bytes, wire_received_bytes; /* what TCP carried, without its headers */
    server_counters server;
} counters;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("bench_heartbeat_cost: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void sleep_s(double seconds) {
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&pause, &pause) != 0) continue;
}

/* Adds what a descriptor's connection has carried, if it is one to `port`. */
static bool add_connection(counters *out, int fd, unsigned port) {
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    struct tcp_info info;
    if (getpeername(fd, (struct sockaddr *)&peer, &bytes) != 0) return false;
    unsigned peer_port = 0;
    if (peer.ss_family == AF_INET) peer_port = ntohs(((struct sockaddr_in *)(void *)&peer)->sin_port);
    if (peer.ss_family == AF_INET6) peer_port = ntohs(((struct sockaddr_in6 *)(void *)&peer)->sin6_port);
    bytes = sizeof info;
    if (peer_port != port || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
    out->wire_sent_bytes += info.tcpi_bytes_acked;
    out->wire_received_bytes += info.tcpi_bytes_received;
    return true;
}

/* The native client has one connection, which is the only one of this process to the server's port. */
static void read_connection(counters *out, const char *hosts) {
    const char *colon = strrchr(hosts, ':');
    unsigned port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 2181;
    DIR *descriptors = opendir("/proc/self/fd");
    size_t found = 0;
    for (struct dirent *entry; descriptors && (entry = readdir(descriptors));)
        found += add_connection(out, (int)strtol(entry->d_name, NULL, 10), port);
    if (descriptors) closedir(descriptors);
    if (found != 1) die("%zu connections to port %u instead of one", found, port);
}

static counters read_counters(const divvy_client *client, const char *hosts) {
    counters now = {.at_s = now_s()};
    divvy_client_stats(client, &now.client, sizeof now.client);
    read_connection(&now, hosts);
    if (server_counters_read(&now.server, hosts) != 0) die("%s does not answer to srvr", hosts);
    return now;
}

static divvy_client *connect_client(const char *hosts, int64_t timeout_ms, int64_t tick_ms) {
    divvy_client *client;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts;
    config.session_timeout_ms = timeout_ms;
    config.ensemble_tick_ms = tick_ms;
    if (divvy_client_open(&client, &config) != 0) die("open: %s", divvy_client_error(NULL));
    if (divvy_client_wait_connected(client, CONNECT_TIMEOUT_MS) != 0) die("%s", divvy_client_error(client));
    return client;
}

static divvy_partitioner *own_items(divvy_client *client, size_t item_count) {
    static char names[ITEMS_MAX][ITEM_BYTES];
    static const char *items[ITEMS_MAX];
    char path[64];
    divvy_partitioner *p;
    snprintf(path, sizeof path, "/heartbeat-cost-%d", (int)getpid());
    for (size_t i = 0; i < item_count; i++) {
        snprintf(names[i], ITEM_BYTES, "item-%06zu", i);
        items[i] = names[i];
    }
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.items = items;
    config.item_count = item_count;
    config.time_boundary_ms = 0;
    if (divvy_partitioner_create(&p, client, &config) != 0 ||
        divvy_partitioner_wait_for_acquire(p, ACQUIRE_TIMEOUT_MS) != 0)
        die("%s", divvy_client_error(client));
    return p;
}

/* bound_per_s: docs/protocol.md, C4, a pair of heartbeats in a tenth of the timeout. */
static void print_result(int64_t timeout_ms, size_t items, const counters *a, const counters *b) {
    double seconds = b->at_s - a->at_s;
    uint64_t requests = b->client.requests - a->client.requests;
    /* One of the two questions to the server is among its packets. */
    int64_t packets = b->server.packets - a->server.packets - 1;
    printf("{\"bench\": \"heartbeat_cost\", \"timeout_ms\": %" PRId64 ", \"items\": %zu, \"seconds\": %.1f, ",
           timeout_ms, items, seconds);
    printf("\"requests_per_s\": %.2f, \"bound_per_s\": %.2f, ", (double)requests / seconds,
           20000.0 / (double)timeout_ms);
    printf("\"reads\": %" PRIu64 ", \"server_packets_per_s\": %.2f, \"server_transactions_per_s\": %.2f, ",
           b->client.reads - a->client.reads, (double)packets / seconds,
           (double)(b->server.transactions - a->server.transactions) / seconds);
    printf("\"bytes_sent_per_s\": %.1f, \"bytes_received_per_s\": %.1f, ",
           (double)(b->wire_sent_bytes - a->wire_sent_bytes) / seconds,
           (double)(b->wire_received_bytes - a->wire_received_bytes) / seconds);
    printf("\"bytes_sent_per_request\": %.1f, \"bytes_received_per_request\": %.1f}\n",
           (double)(b->wire_sent_bytes - a->wire_sent_bytes) / (double)(requests ? requests : 1),
           (double)(b->wire_received_bytes - a->wire_received_bytes) / (double)(requests ? requests : 1));
}

static int64_t number(const char *text, int64_t least, int64_t most, const char *what) {
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || value < least || value > most)
        die("%s: a number from %" PRId64 " to %" PRId64 ", not %s", what, least, most, text);
    return value;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fputs("usage: bench_heartbeat_cost HOST:PORT TIMEOUT_MS TICK_MS ITEMS SECONDS\n", stderr);
        return 2;
    }
    int64_t timeout_ms = number(argv[2], 200, 60000, "TIMEOUT_MS"), tick_ms = number(argv[3], 0, 60000, "TICK_MS");
    size_t items = (size_t)number(argv[4], 1, ITEMS_MAX, "ITEMS");
    double seconds = (double)number(argv[5], 1, 3600, "SECONDS");
    divvy_client *client = connect_client(argv[1], timeout_ms, tick_ms);
    divvy_partitioner *p = own_items(client, items);
    sleep_s(2); /* The requests that take the items are over. */
    counters before = read_counters(client, argv[1]);
    sleep_s(seconds);
    counters after = read_counters(client, argv[1]);
    print_result(timeout_ms, items, &before, &after);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    return 0;
}
