/* Look: reading ZooKeeper without changing anything in it. SPDX-License-Identifier: Apache-2.0
 *
 * For subcommands that show what is there. Many reads are under way at a time, as many answers as are needed are kept,
 * and nothing is made, a chroot that is missing included. Everything happens on the caller's thread. */
#ifndef DV_LOOK_H
#define DV_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connection.h"
#include "options.h"
#include "output.h"
#include "znode/znode.h"

/* The options that all looking subcommands share. */
typedef struct {
    const char *connect;
    int64_t timeout_ms;
    const char *auth_file;
    dv_tls_options tls;
    int verbose;
    int64_t session_timeout_ms; /* 0: the default of a client */
    int acl;                    /* of what is written, by the one that writes; DIVVY_ACL_* */
    char *auth;                 /* secret */
} dv_look_options;

/* Their lines in the table of options; `member` is the place of a dv_look_options in the struct of values. */
#define DV_LOOK_OPTIONS(type, member)          \
    DV_LOOK_OPTIONS_BUT_VERBOSE(type, member), \
        DV_SESSION_OPTION_VERBOSE(type, member, "write the library's log to standard error")
#define DV_LOOK_OPTIONS_BUT_VERBOSE(type, member)                                             \
    DV_SESSION_OPTION_CONNECT(type, member),                                                  \
        {.name = "timeout",                                                                   \
         .argument = "DURATION",                                                              \
         .kind = DV_OPTION_DURATION,                                                          \
         .offset = offsetof(type, member.timeout_ms),                                         \
         .help = "give up when the servers have not answered all questions after this long\n" \
                 "(default: 10s)",                                                            \
         .min_ms = 1,                                                                         \
         .max_ms = 24 * 3600 * 1000},                                                         \
        DV_SESSION_OPTION_AUTH_FILE(type, member), DV_TLS_OPTIONS(type, member.tls)

enum { DV_LOOK_TIMEOUT_MS = 10000 };

/* Fills in what was not given, and reads the credentials. Returns 0, or the exit code when it was told on stderr what
 * is wrong. */
int dv_look_options_finish(dv_look_options *options, const char *command);
void dv_look_options_free(dv_look_options *options);

typedef struct dv_look dv_look;

/* Begins to connect. `stop_fd` is readable once the process is asked to end, or -1; it is not read. 0, or the exit
 * code when it was told on stderr what is wrong. `options` outlives *out. */
int dv_look_open(dv_look **out, const dv_look_options *options, const char *command, int stop_fd);
void dv_look_close(dv_look *look);

/*
 * Calls `ask`, which reads by dv_look_read(), when there is a connection; from its beginning again when the connection
 * broke before its end; until the options' timeout has passed. `ask` returns 0, or a DIVVY_E*.
 *
 * Returns 0, or what `ask` returned, DIVVY_ETIMEDOUT, DIVVY_ERESOLVE, DIVVY_EAUTH and the like; DIVVY_ECANCELED once
 * stop_fd is readable.
 */
int dv_look_at(dv_look *look, int (*ask)(dv_look *look, void *context), void *context);

/* Returns the path whose read ended the last dv_look_at(), "" where none did. */
const char *dv_look_failed_path(const dv_look *look);

/* Names the path whose read, by other means than dv_look_read(), ends this look. */
void dv_look_blame(dv_look *look, const char *path);

/* Tells an error of dv_look_at() on stderr, in one line. Returns the exit code. */
int dv_look_failed(const dv_look *look, int error);

/* Lets time pass; the session is kept. Returns once it has passed, stop_fd is readable, or the reader of `output` has
 * gone. */
void dv_look_pause(dv_look *look, int64_t ms, dv_output *output);
/* Lets time pass likewise, and tells why it returns: DIVVY_ETIMEDOUT when it has passed, DIVVY_ECANCELED once stop_fd
 * or `wake_fd` is readable, else an error of the client. */
int dv_look_rest(dv_look *look, int64_t ms, int wake_fd);

/* Says on standard error that some nodes were passed over, and the first of them; see dv_look_read_shown(). */
void dv_look_hidden(const dv_look *look, size_t count);
/* Returns whether a look failed so because of the servers or the way to them: a later one may succeed. */
bool dv_look_may_recover(int error);

/* Many reads of one kind. */
typedef struct {
    dv_kind kind; /* DV_GET, DV_EXISTS, DV_CHILDREN */
    size_t count;
    char *(*path)(void *context, size_t i); /* of the i-th, malloc'ed; NULL when an allocation fails */
    /* The answer to the i-th, whose `error` may be 0, DIVVY_ENOENT or DIVVY_EACCES; all others end the reading. Keeps
     * what it needs. 0, or an error that ends the reading. */
    int (*take)(void *context, size_t i, const dv_reply *reply);
    void *context;
} dv_reads;

/* 0 when all were answered and taken, or the error. Only inside of `ask`. */
int dv_look_read(dv_look *look, const dv_reads *reads);
/* The same; those that may not be read are passed over, and added to *hidden. With NULL `take` gets them. */
int dv_look_read_shown(dv_look *look, const dv_reads *reads, size_t *hidden);

/* For who asks by parts of the library: its client, and to let it work until there may be something new. Work that
 * `ask` begins so may outlast it; dv_look_close() ends it. */
struct divvy_client *dv_look_client(const dv_look *look);
int dv_look_step(dv_look *look);

/* Returns where a path of the options is at the servers: below the chroot of --connect. malloc'ed. */
char *dv_look_path(const dv_look *look, const char *path);

/* The node's name that stands for `name`, and back; malloc'ed. A node whose name our codec would not have written is
 * kazoo's, which writes names raw, and stands for just that. */
char *dv_look_node_of(const char *name);
char *dv_look_name_of(const char *node);

/* The path of a node in a folder of `parent`; malloc'ed. */
char *dv_look_deep_path(const char *parent, const char *folder, const char *node);

enum { DV_UTC_BYTES = 40 };

/* Returns `out`: "2026-01-31T12:00:00Z", or "" for what is no time. */
const char *dv_look_utc(int64_t ms, char out[DV_UTC_BYTES]);

/* The wall clock, for ages: nodes carry the time at which they were made, by the clock of a server. */
int64_t dv_look_wall_ms(void);

#endif
