/* A look at the truth: the plain native client, synchronous, for tests. SPDX-License-Identifier: Apache-2.0
 *
 * It has a session of 30 s. Reads ask the server to catch up first, and are tried again while the connection is down,
 * for at most 15 s; then they end the test program. Writes are tried once, for only the test knows what a second
 * attempt would mean: they return the native client's code (ZOK, ZNODEEXISTS, ...). Use from one thread at a time. */
#ifndef DV_TEST_ZK_H
#define DV_TEST_ZK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

typedef struct dv_test_zk dv_test_zk;

/* Connects and waits until connected, 15 s at most. `connect` is "127.0.0.1:PORT[,...]". */
dv_test_zk *dv_test_zk_open(const char *connect);

/* Closes the session if the server can be reached, and frees. NULL is fine. */
void dv_test_zk_close(dv_test_zk *zk);

/* For what is not here: zoo_state(), zoo_client_id(), asynchronous calls. */
zhandle_t *dv_test_zk_handle(dv_test_zk *zk);

/* Opens a handle as zookeeper_init2() does; over TLS with the files of the environment, where DIVVY_TEST_TLS is set. */
zhandle_t *dv_test_zk_init(const char *connect, watcher_fn watcher, int timeout_ms, void *context, log_callback_fn log);

/* The id of its session. */
int64_t dv_test_zk_session(dv_test_zk *zk);

/* The names of the children, sorted by strcmp(), NULL at the end; *count (may be NULL) is set to their number. NULL
 * when there is no such node. Free with dv_test_zk_free_names(). */
char **dv_test_zk_children(dv_test_zk *zk, const char *path, size_t *count);
void dv_test_zk_free_names(char **names);

/* Returns the number of the children; 0 also when there is no such node. */
size_t dv_test_zk_count(dv_test_zk *zk, const char *path);

/* The data, malloc'ed, with a NUL after them. *bytes (may be NULL) is set to their number, -1 for a node whose data are
 * null; *stat (may be NULL) is filled. NULL when there is no such node. */
char *dv_test_zk_get(dv_test_zk *zk, const char *path, int *bytes, struct Stat *stat);

/* Returns whether the node exists; if so *stat (may be NULL) is filled. */
bool dv_test_zk_exists(dv_test_zk *zk, const char *path, struct Stat *stat);

/* Creates an open node. `data` is a text, or NULL for null data; `flags` as for zoo_create(). On success *created,
 * unless `created` is NULL, is the malloc'ed path, which has a suffix for a sequential node. */
int dv_test_zk_create(dv_test_zk *zk, const char *path, const char *data, int flags, char **created);

/* Replaces the data, whatever their version. */
int dv_test_zk_set(dv_test_zk *zk, const char *path, const char *data);

/* Deletes a node without children, whatever its version. */
int dv_test_zk_delete(dv_test_zk *zk, const char *path);

/* Deletes a node and all below it. ZOK too when there is none. */
int dv_test_zk_delete_all(dv_test_zk *zk, const char *path);

#endif
