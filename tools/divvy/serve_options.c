/* The options of divvy serve. SPDX-License-Identifier: Apache-2.0 */
#include "serve_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "option_rows.h"

const char dv_serve_name[] = "serve";

#define OPTION_VALUES dv_serve_options

static const dv_option table[] = {
    TEXTS("path", "PATH", paths,
          "a pool, an absolute znode path such as /work_queues; repeat the option for each\n"
          "pool"),
    TEXTS("below", "PATH", below,
          "all pools at PATH and below it, down to three levels; looked for every 10 s, and\n"
          "64 in all at most; repeat the option for each path. This or --path is required"),
    TEXT("listen", "ADDRESS", listen,
         "where to serve, as 127.0.0.1:9741, [::1]:9741 or 9741; port 0 takes a free one\n"
         "(default: 127.0.0.1:9741)"),
    FLAG("public", public,
         "serve at an address that other machines reach, without a password and without\n"
         "encryption; such an address is refused otherwise"),
    TEXT("root", "PATH", root, "where locks, semaphores and the registry stand (default: /divvy)"),
    DURATION("interval", interval_ms, 100, 3600 * 1000, "the pause between two looks (default: 1s)"),
    DV_LOOK_OPTIONS(dv_serve_options, look),
    {.name = NULL},
};

void dv_serve_options_help(void) {
    printf("usage: divvy serve {--path PATH|--below PATH} ... [--listen ADDRESS] [OPTION ...]\n"
           "\n"
           "Serves pools over HTTP, until a signal comes: a page for people at /, which\n"
           "shows members, items, moves, ownership over time, locks and the registry, and changes by\n"
           "itself; figures for Prometheus at /metrics. Changes nothing in ZooKeeper, and takes no\n"
           "orders.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 a signal ended it; 1 divvy failed, and standard error says why; 2 wrong\n"
           "usage; 3 no server answered within --timeout, at the start.\n");
}

/* ---- where to listen ---- */

static bool parse_port(const char *text, in_port_t *port) {
    char *end = NULL;
    unsigned long number = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    *port = htons((uint16_t)number);
    return end && *end == '\0' && number <= UINT16_MAX;
}

static bool set_ipv4(dv_serve_options *o, const char *host, in_port_t port) {
    struct sockaddr_in *in = (struct sockaddr_in *)&o->address;
    *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
    o->address_bytes = sizeof *in;
    if (inet_pton(AF_INET, host, &in->sin_addr) != 1) return false;
    o->loopback = ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return true;
}

static bool set_ipv6(dv_serve_options *o, const char *host, in_port_t port) {
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&o->address;
    *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
    o->address_bytes = sizeof *in6;
    if (inet_pton(AF_INET6, host, &in6->sin6_addr) != 1) return false;
    o->loopback = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    return true;
}

/* HOST:PORT, [HOST]:PORT or PORT. Names are not looked up, lest a name server decides who may read. */
static bool parse_listen(dv_serve_options *o) {
    char host[INET6_ADDRSTRLEN + 2] = "127.0.0.1";
    const char *colon = strrchr(o->listen, ':');
    in_port_t port;
    if (!parse_port(colon ? colon + 1 : o->listen, &port)) return false;
    if (!colon) return set_ipv4(o, host, port);
    size_t bytes = (size_t)(colon - o->listen);
    if (bytes == 0 || bytes >= sizeof host) return false;
    memcpy(host, o->listen, bytes);
    host[bytes] = '\0';
    if (strcmp(host, "localhost") == 0) return set_ipv4(o, "127.0.0.1", port);
    if (*host != '[' || host[bytes - 1] != ']') return set_ipv4(o, host, port);
    host[bytes - 1] = '\0';
    return set_ipv6(o, host + 1, port);
}

static int check_listen(dv_serve_options *o) {
    if (!o->listen) o->listen = "9741";
    if (!parse_listen(o))
        return dv_command_misused(
            dv_serve_name, "--listen: \"%.100s\" is no address; give 127.0.0.1:9741, [::1]:9741 or a port of its own",
            o->listen);
    if (o->loopback || o->public) return 0;
    return dv_command_misused(dv_serve_name,
                              "--listen: at %.100s everybody in its network could read the pools, without a password; "
                              "give --public if that is meant",
                              o->listen);
}

/* ---- the whole ---- */

static int check_texts(const dv_texts *paths, const char *option) {
    if (paths->count > DV_SERVE_POOLS_MAX)
        return dv_command_misused(dv_serve_name, "--%s is given %zu times; %d are the most", option, paths->count,
                                  DV_SERVE_POOLS_MAX);
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->texts[i];
        int code = dv_options_check_path(dv_serve_name, option, path);
        if (code != 0) return code;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(paths->texts[k], path) == 0)
                return dv_command_misused(dv_serve_name, "--%s: %.100s is given twice", option, path);
        }
    }
    return 0;
}

static int check_paths(const dv_serve_options *o) {
    if (o->paths.count == 0 && o->below.count == 0)
        return dv_command_misused(dv_serve_name, "--path or --below is required");
    int code = check_texts(&o->paths, "path");
    if (code == 0) code = check_texts(&o->below, "below");
    return code ? code : dv_options_check_path(dv_serve_name, "root", o->root);
}

int dv_serve_options_parse(dv_serve_options *o, int argc, char **argv) {
    *o = (dv_serve_options){.look = {.timeout_ms = DV_LOOK_TIMEOUT_MS}, .root = "/divvy", .interval_ms = 1000};
    int code = dv_options_parse(dv_serve_name, table, o, argc, argv);
    if (code != 0) return code;
    code = check_paths(o);
    if (code == 0) code = check_listen(o);
    return code ? code : dv_look_options_finish(&o->look, dv_serve_name);
}

void dv_serve_options_free(dv_serve_options *o) {
    free((void *)(uintptr_t)o->paths.texts);
    free((void *)(uintptr_t)o->below.texts);
    dv_look_options_free(&o->look);
}
