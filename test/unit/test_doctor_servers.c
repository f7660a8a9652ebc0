/* The doctor's questions to servers that do not answer in time. SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "divvy/doctor_servers.h"
#include "lib/test.h"

static const char cons[] = " /127.0.0.1:32900[1](queued=0,recved=3,sent=3,sid=0x1,lop=PING,est=1,to=10000,lresp=2)\n";

/* A server that answers to each word, and stays silent at the end of the answer to "cons" if it stalls. */
typedef struct {
    int listening;
    bool stalls;
} slow_server;

static void answer(const slow_server *s, int client) {
    char word[5] = "";
    const char *text = "";
    if (recv(client, word, 4, MSG_WAITALL) != 4) return;
    if (strcmp(word, "srvr") == 0) text = "Mode: standalone\n";
    if (strcmp(word, "mntr") == 0) text = "zk_digest_mismatches_count\t7\n";
    if (strcmp(word, "cons") == 0) text = cons;
    assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    if (text == cons && s->stalls) assert_int_equal(recv(client, word, 1, 0), 0); /* The doctor gives up. */
}

static void *serve(void *argument) {
    const slow_server *s = argument;
    for (int words = 0; words < 3; words++) {
        int client = accept(s->listening, NULL, NULL);
        if (client < 0) break;
        answer(s, client);
        close(client);
    }
    return NULL;
}

/* Asks such a server for its clients. */
static dv_servers ask(bool stalls, int64_t limit_ms) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof where;
    slow_server s = {socket(AF_INET, SOCK_STREAM, 0), stalls};
    dv_tls_options tls = {.ca_file = NULL};
    pthread_t thread;
    assert_int_equal(bind(s.listening, (struct sockaddr *)&where, bytes), 0);
    assert_int_equal(listen(s.listening, 8), 0);
    assert_int_equal(getsockname(s.listening, (struct sockaddr *)&where, &bytes), 0);
    assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);
    dv_servers servers = {.list = calloc(1, sizeof *servers.list), .count = 1, .chroot = ""};
    assert_non_null(servers.list);
    servers.list[0].state = DV_SERVER_ANSWERS;
    servers.list[0].conf.server_count = 1;
    snprintf(servers.list[0].address, sizeof servers.list[0].address, "127.0.0.1:%d", ntohs(where.sin_port));
    assert_int_equal(dv_servers_ask_clients(&servers, &tls, limit_ms), 0);
    shutdown(s.listening, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(s.listening);
    return servers;
}

/* A server that tells all of its clients in time is known to list them. */
TEST(test_whole_list) {
    dv_servers servers = ask(false, 20000);
    assert_true(servers.list[0].lists_clients && servers.all_clients);
    assert_int_equal(servers.connection_count, 1);
    assert_int_equal(servers.list[0].mismatches, 7);
    dv_servers_clear(&servers);
}

/* A list whose end has not come in time is not whole: who is not in it may be connected. What the server tells of its
 * tree is known all the same. */
TEST(test_list_that_ends_too_late) {
    dv_servers servers = ask(true, 1000);
    assert_false(servers.list[0].lists_clients || servers.all_clients);
    assert_int_equal(servers.list[0].mismatches, 7);
    dv_servers_clear(&servers);
}
