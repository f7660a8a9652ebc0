/* A private ZooKeeper for a live test: tools/zookeeper-local as a fixture. SPDX-License-Identifier: Apache-2.0
 *
 * Each call returns when what it names has happened, and ends the test program with a message if that fails. The
 * servers end when the test program ends, however it does. A server is meant by its number, counted from 1. */
#ifndef DV_TEST_SERVER_H
#define DV_TEST_SERVER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dv_test_server dv_test_server;

/* In place of a number: all servers at once. An ensemble that was killed whole must be restarted so, for a restart
 * waits until the server serves, and one alone never does. */
#define DV_TEST_SERVER_ALL 0

/* Starts 1 or 3 servers and waits until each serves. Sessions last 200 ms to 60 s and are expired by the tick. */
dv_test_server *dv_test_server_start(int servers, int tick_ms);

/* The same with more arguments for the tool's `start`, NULL after the last. */
dv_test_server *dv_test_server_start_with(int servers, int tick_ms, const char *const *more);

/* Ends the servers and removes their folder. NULL is fine. */
void dv_test_server_stop(dv_test_server *server);

/* The connect string of all servers: "127.0.0.1:PORT,...". The texts live as long as the fixture, and the ports stay
 * the same over restarts. */
const char *dv_test_server_connect(const dv_test_server *server);

/* Returns the connect string with the addresses without TLS. Over TLS (DIVVY_TEST_TLS names a folder of certificates)
 * those above are for clients of divvy's, and everybody else comes by these. Valid until this thread calls it again. */
const char *dv_test_server_plain(const char *connect);

/* "127.0.0.1:PORT" of one server. */
const char *dv_test_server_address(const dv_test_server *server, int number);

/* The folder with the servers' logs and data. */
const char *dv_test_server_dir(const dv_test_server *server);

/* SIGKILL. Acknowledged writes survive, and so do sessions. */
void dv_test_server_kill(dv_test_server *server, int number);

/* Starts a server again with the same data and the same port; if it still runs, it is killed before. */
void dv_test_server_restart(dv_test_server *server, int number);

/* The same; false when it does not serve within the tool's 30 seconds, because its data are damaged, say. */
bool dv_test_server_try_restart(dv_test_server *server, int number);

/* SIGSTOP: connections stay open and new ones are accepted by the kernel, but nobody answers. */
void dv_test_server_pause(dv_test_server *server, int number);

/* SIGCONT. */
void dv_test_server_resume(dv_test_server *server, int number);

/* Asks a server by a four letter word ("srvr", "mntr"). `answer` is empty when it gives none within two seconds.
 * Returns whether it did. */
bool dv_test_server_ask(const dv_test_server *server, int number, const char *word, char *answer, size_t answer_bytes);

/* Returns whether it says that it is in this mode: "standalone", "leader", "follower". */
bool dv_test_server_is(const dv_test_server *server, int number, const char *mode);

/* The release of the first server, two digits for each number but the first: 30800, 30903. `version` gets it as text,
 * "3.9.3". */
int dv_test_server_release(const dv_test_server *server, char *version, size_t version_bytes);

/* The number of the leader of an ensemble in which all serve, else 0. */
int dv_test_server_leader(const dv_test_server *server);
/* Waits until there is one. Returns its number. */
int dv_test_server_await_leader(const dv_test_server *server);

#endif
