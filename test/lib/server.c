/* See server.h. SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include "wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOOL DIVVY_SOURCE_DIR "/tools/zookeeper-local"
#define SERVERS_MAX 3
#define OUTPUT_BYTES 4096
#define ARGUMENTS_MAX 24
#define PAIRS_MAX 256
#define ANSWER_TIMEOUT_S 2

extern char **environ;

struct dv_test_server {
    int servers;
    char *connect;
    char *dir;
    char *addresses[SERVERS_MAX];
};

static char *copy(const char *text, size_t bytes) {
    char *result = strndup(text, bytes);
    if (!result) dv_test_die("no memory");
    return result;
}

/* Starts the tool with `output` as its stdout. It gets no other descriptor of ours: else the end of a connection that
 * a test closes meanwhile would reach the peer only when the tool is done. */
static pid_t spawn_tool(const char *const arguments[], int output) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int error = posix_spawn(&pid, TOOL, &actions, &attributes, (char *const *)(uintptr_t)arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error) dv_test_die("cannot run %s: %s", TOOL, strerror(error));
    return pid;
}

/* Runs the tool and puts what it prints into `output`; false when it has failed. */
static bool try_tool(const char *const arguments[], char output[OUTPUT_BYTES]) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) dv_test_die("pipe2: %s", strerror(errno));
    pid_t pid = spawn_tool(arguments, ends[1]);
    close(ends[1]);
    size_t length = 0;
    for (;;) {
        ssize_t got = read(ends[0], output + length, OUTPUT_BYTES - 1 - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        length += (size_t)got;
    }
    output[length] = '\0';
    close(ends[0]);
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) dv_test_die("waitpid: %s", strerror(errno));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- addresses, over TLS and without ---- */

static struct { char secure[64], plain[64]; } pairs[PAIRS_MAX];
static int pair_count;
static pthread_mutex_t pairs_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Of two lists with "," between. */
static void remember_plain(const char *secure, const char *plain) {
    pthread_mutex_lock(&pairs_mutex);
    while (*secure && *plain) {
        size_t secure_bytes = strcspn(secure, ","), plain_bytes = strcspn(plain, ",");
        if (pair_count == PAIRS_MAX) dv_test_die("too many servers in one program");
        snprintf(pairs[pair_count].secure, sizeof pairs->secure, "%.*s", (int)secure_bytes, secure);
        snprintf(pairs[pair_count++].plain, sizeof pairs->plain, "%.*s", (int)plain_bytes, plain);
        secure += secure_bytes + (secure[secure_bytes] == ',');
        plain += plain_bytes + (plain[plain_bytes] == ',');
    }
    pthread_mutex_unlock(&pairs_mutex);
}

/* Returns the plain address of a secure one, the latest that had it, or NULL. */
static const char *plain_of(const char *address, size_t bytes) {
    for (int i = pair_count - 1; i >= 0; i--) {
        if (strlen(pairs[i].secure) == bytes && memcmp(pairs[i].secure, address, bytes) == 0) return pairs[i].plain;
    }
    return NULL;
}

const char *dv_test_server_plain(const char *connect) {
    static _Thread_local char out[OUTPUT_BYTES];
    out[0] = '\0';
    pthread_mutex_lock(&pairs_mutex);
    for (const char *at = connect; *at;) {
        size_t bytes = strcspn(at, ",/"), used = strlen(out);
        const char *plain = plain_of(at, bytes);
        size_t rest = at[bytes] == '/' ? strlen(at + bytes) : at[bytes] == ',';
        if (plain) snprintf(out + used, sizeof out - used, "%s%.*s", plain, (int)rest, at + bytes);
        else snprintf(out + used, sizeof out - used, "%.*s", (int)(bytes + rest), at);
        at += bytes + rest;
    }
    pthread_mutex_unlock(&pairs_mutex);
    return out;
}

static void run_tool(const char *const arguments[], char output[OUTPUT_BYTES]) {
    if (!try_tool(arguments, output)) dv_test_die("%s %s failed", TOOL, arguments[1]);
}

/* The value on the line "NAME=value" of `output`, malloc'ed. */
static char *output_value(const char *output, const char *name) {
    const char *found = strstr(output, name);
    if (!found) dv_test_die("%s did not print %s", TOOL, name);
    found += strlen(name);
    char *value = copy(found, strcspn(found, "\n"));
    if (strpbrk(value, "\\'\"")) dv_test_die("the folder needs a name without quotes: %s", value);
    return value;
}

dv_test_server *dv_test_server_start(int servers, int tick_ms) {
    return dv_test_server_start_with(servers, tick_ms, NULL);
}

dv_test_server *dv_test_server_start_with(int servers, int tick_ms, const char *const *more) {
    const char *tls_files = getenv("DIVVY_TEST_TLS");
    char output[OUTPUT_BYTES], servers_text[16], tick_text[16], parent_text[16];
    snprintf(servers_text, sizeof servers_text, "%d", servers);
    snprintf(tick_text, sizeof tick_text, "%d", tick_ms);
    snprintf(parent_text, sizeof parent_text, "%d", (int)getpid());
    const char *arguments[ARGUMENTS_MAX] = {TOOL,     "start",   "--servers", servers_text,
                                            "--tick", tick_text, "--parent",  parent_text};
    size_t at = 8;
    if (tls_files) {
        arguments[at++] = "--tls-files";
        arguments[at++] = tls_files;
    }
    for (size_t i = 0; more && more[i]; i++) {
        if (at == ARGUMENTS_MAX - 1) dv_test_die("too many arguments for %s", TOOL);
        arguments[at++] = more[i];
    }
    run_tool(arguments, output);

    dv_test_server *server = calloc(1, sizeof *server);
    if (!server) dv_test_die("no memory");
    server->connect = output_value(output, "DIVVY_CONNECT=");
    server->dir = output_value(output, "ZOOKEEPER_LOCAL_DIR=");
    if (tls_files) {
        char *plain = output_value(output, "ZOOKEEPER_LOCAL_PLAIN=");
        remember_plain(server->connect, plain);
        free(plain);
    }
    for (const char *address = server->connect; *address;) {
        size_t length = strcspn(address, ",");
        if (server->servers == SERVERS_MAX) dv_test_die("more servers than asked for: %s", server->connect);
        server->addresses[server->servers++] = copy(address, length);
        address += length + (address[length] == ',');
    }
    if (server->servers != servers) dv_test_die("asked for %d servers, got %s", servers, server->connect);
    return server;
}

/* Runs "zookeeper-local VERB DIR NUMBER". */
static bool try_command(dv_test_server *server, const char *verb, int number) {
    char output[OUTPUT_BYTES], number_text[16] = "all";
    if (number != DV_TEST_SERVER_ALL) snprintf(number_text, sizeof number_text, "%d", number);
    const char *const arguments[] = {TOOL, verb, server->dir, number_text, NULL};
    return try_tool(arguments, output);
}

static void command(dv_test_server *server, const char *verb, int number) {
    if (!try_command(server, verb, number)) dv_test_die("%s %s of server %d failed", TOOL, verb, number);
}

void dv_test_server_stop(dv_test_server *server) {
    if (!server) return;
    char output[OUTPUT_BYTES];
    const char *const arguments[] = {TOOL, "stop", server->dir, NULL};
    run_tool(arguments, output);
    for (int i = 0; i < server->servers; i++) free(server->addresses[i]);
    free(server->connect);
    free(server->dir);
    free(server);
}

const char *dv_test_server_connect(const dv_test_server *server) {
    return server->connect;
}

const char *dv_test_server_address(const dv_test_server *server, int number) {
    if (number < 1 || number > server->servers) dv_test_die("there is no server %d", number);
    return server->addresses[number - 1];
}

const char *dv_test_server_dir(const dv_test_server *server) {
    return server->dir;
}

void dv_test_server_kill(dv_test_server *server, int number) {
    command(server, "kill", number);
}

void dv_test_server_restart(dv_test_server *server, int number) {
    command(server, "restart", number);
}

bool dv_test_server_try_restart(dv_test_server *server, int number) {
    return try_command(server, "restart", number);
}

void dv_test_server_pause(dv_test_server *server, int number) {
    command(server, "pause", number);
}

void dv_test_server_resume(dv_test_server *server, int number) {
    command(server, "resume", number);
}

bool dv_test_server_ask(const dv_test_server *server, int number, const char *word, char *answer, size_t answer_bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = ANSWER_TIMEOUT_S};
    const char *port = strchr(dv_test_server_plain(dv_test_server_address(server, number)), ':') + 1;
    address.sin_port = htons((uint16_t)strtol(port, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) dv_test_die("no socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    size_t used = 0, bytes = strlen(word);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, word, bytes, MSG_NOSIGNAL) == (ssize_t)bytes) {
        for (ssize_t got; used + 1 < answer_bytes; used += (size_t)got) {
            got = recv(fd, answer + used, answer_bytes - 1 - used, 0);
            if (got <= 0) break;
        }
    }
    answer[used] = '\0';
    close(fd);
    return used > 0;
}

bool dv_test_server_is(const dv_test_server *server, int number, const char *mode) {
    char answer[OUTPUT_BYTES], line[32];
    snprintf(line, sizeof line, "Mode: %s", mode);
    return dv_test_server_ask(server, number, "srvr", answer, sizeof answer) && strstr(answer, line);
}

int dv_test_server_release(const dv_test_server *server, char *version, size_t version_bytes) {
    static const char before[] = "Zookeeper version: ";
    char answer[OUTPUT_BYTES];
    int major = 0, minor = 0, patch = 0;
    const char *told = dv_test_server_ask(server, 1, "srvr", answer, sizeof answer) ? strstr(answer, before) : NULL;
    if (told) told += sizeof before - 1;
    if (!told || sscanf(told, "%d.%d.%d", &major, &minor, &patch) != 3)
        dv_test_die("the server does not tell its version");
    snprintf(version, version_bytes, "%.*s", (int)strspn(told, "0123456789."), told);
    return 10000 * major + 100 * minor + patch;
}

int dv_test_server_leader(const dv_test_server *server) {
    int leader = 0;
    for (int number = 1; number <= server->servers; number++) {
        bool leads = dv_test_server_is(server, number, "leader");
        if (leads && leader) return 0; /* One of them has not noticed yet that it no longer is. */
        if (leads) leader = number;
        else if (!dv_test_server_is(server, number, "follower")) return 0;
    }
    return leader;
}

int dv_test_server_await_leader(const dv_test_server *server) {
    enum { ELECTION_MS = 60000 };
    int leader = 0;
    if (!DV_WAIT((leader = dv_test_server_leader(server)) != 0, ELECTION_MS)) dv_test_die("no leader was elected");
    return leader;
}
