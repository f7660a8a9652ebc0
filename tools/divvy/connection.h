/* The session of a subcommand: its options, and what is told about it. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SESSION_H
#define DV_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <divvy/divvy.h>

#include "guardian.h"
#include "metrics_file.h"
#include "options.h"
#include "tls_options.h"

typedef struct {
    const char *connect; /* never NULL after dv_session_options_finish() */
    int64_t session_timeout_ms;
    int64_t ensemble_tick_ms;   /* 0: unknown */
    int64_t connect_timeout_ms; /* 0: none */
    const char *auth_file;      /* NULL: no credentials */
    const char *metrics;        /* NULL: none are written */
    dv_tls_options tls;
    int acl; /* DIVVY_ACL_* */
    int64_t failover_delay_ms;
    int no_death_watch; /* the session takes its time when we have died */
    int verbose;
    int log_requests; /* with verbose: each request and each answer too */

    char *auth; /* read from auth_file; secret */
} dv_session_options;

extern const dv_choice dv_session_acls[];

/* Entries of a subcommand's option table; `field` is its dv_session_options in the struct `type` of values. */
#define DV_SESSION_OPTION_CONNECT(type, field)                                                                   \
    {                                                                                                            \
        .name = "connect", .argument = "HOSTS", .kind = DV_OPTION_TEXT, .offset = offsetof(type, field.connect), \
        .help = "ZooKeeper's servers, as in h1:2181,h2:2181/chroot\n"                                            \
                "(default: $DIVVY_CONNECT, else 127.0.0.1:2181)"                                                 \
    }
#define DV_SESSION_OPTION_TIMEOUT(type, field, help_text)                                                       \
    {                                                                                                           \
        .name = "session-timeout", .argument = "DURATION", .kind = DV_OPTION_DURATION,                          \
        .offset = offsetof(type, field.session_timeout_ms), .help = help_text, .min_ms = 100, .max_ms = 3600000 \
    }
#define DV_SESSION_OPTION_TICK(type, field, help_text)                                                  \
    {                                                                                                   \
        .name = "ensemble-tick", .argument = "DURATION", .kind = DV_OPTION_DURATION,                    \
        .offset = offsetof(type, field.ensemble_tick_ms), .help = help_text, .max_ms = 24 * 3600 * 1000 \
    }
#define DV_SESSION_OPTION_CONNECT_TIMEOUT(type, field, help_text)                                         \
    {                                                                                                     \
        .name = "connect-timeout", .argument = "DURATION", .kind = DV_OPTION_DURATION,                    \
        .offset = offsetof(type, field.connect_timeout_ms), .help = help_text, .max_ms = 24 * 3600 * 1000 \
    }
#define DV_SESSION_OPTION_AUTH_FILE(type, field)                                                                    \
    {                                                                                                               \
        .name = "auth-file", .argument = "FILE", .kind = DV_OPTION_TEXT, .offset = offsetof(type, field.auth_file), \
        .help = "credentials, user:password on one line; without TLS they travel in clear text"                     \
    }
#define DV_SESSION_OPTION_ACL(type, field)                                                               \
    {                                                                                                    \
        .name = "acl", .argument = "ACL", .kind = DV_OPTION_CHOICE, .offset = offsetof(type, field.acl), \
        .help = "who may touch the nodes that are made: open (anyone), creator (members with\n"          \
                "the same credentials), readable (creator, and anyone may read), or\n"                   \
                "auto: creator with --auth-file or SASL, else open (default)",                           \
        .choices = dv_session_acls                                                                       \
    }
#define DV_SESSION_OPTION_METRICS(type, field)                                                                  \
    {                                                                                                           \
        .name = "metrics", .argument = "FILE", .kind = DV_OPTION_TEXT, .offset = offsetof(type, field.metrics), \
        .help = "replace FILE with this process's metrics every 10s and at the end, as\n"                       \
                "node_exporter's textfile collector reads them: the name ends in .prom"                         \
    }
#define DV_SESSION_OPTION_NO_DEATH_WATCH(type, field)                                                     \
    {                                                                                                     \
        .name = "no-death-watch", .kind = DV_OPTION_FLAG, .offset = offsetof(type, field.no_death_watch), \
        .help = "when this process is killed, leave its session to time out; by default\n"                \
                "what it held has its next owner as soon as its commands have ended"                      \
    }
#define DV_SESSION_OPTION_FAILOVER_DELAY(type, field)                                           \
    {                                                                                           \
        .name = "failover-delay", .argument = "DURATION", .kind = DV_OPTION_DURATION,           \
        .offset = offsetof(type, field.failover_delay_ms), .max_ms = 3600000,                   \
        .help = "then wait this long before the next owner, for writes that are under way to\n" \
                "a store that checks no tokens (default: 0)"                                    \
    }
#define DV_SESSION_OPTION_VERBOSE(type, field, help_text) \
    { .name = "verbose", .kind = DV_OPTION_FLAG, .offset = offsetof(type, field.verbose), .help = help_text }

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t dv_session_now_ms(void);

/* The value of --connect, or what stands for it where it was not given. */
const char *dv_session_connect(const char *connect);

/* After parsing: what is left to be set is, and the file of credentials read. Returns 0, or the exit code when it
 * was told, under the name of `command`, what is wrong. Release with dv_session_options_free() in each case. */
int dv_session_options_finish(dv_session_options *options, const char *command);

void dv_session_options_free(dv_session_options *options);

enum { DV_SESSION_REASON_BYTES = 512 };

typedef struct {
    const char *command;     /* the subcommand */
    const char *what_ends;   /* with the session, as in "ownership ends in 300 ms"; NULL: nothing yet */
    int failed, unreachable; /* exit codes: the servers refused, or the library did; no server answered in time */
    const dv_session_options *options;
    const char *member;             /* in a process that has several: whose session it is; NULL: there is one only */
    const dv_guardians *watched_by; /* their forker ends the session when we have died (G10); NULL: nobody does */
    divvy_client *client;
    dv_metrics_file metrics;
    int64_t started_ms;                   /* by dv_session_now_ms() */
    bool connected;                       /* a server has answered at least once */
    bool wait_was_told;                   /* that none has */
    bool suspended;                       /* the connection is down; told */
    char ending[DV_SESSION_REASON_BYTES]; /* see dv_session_end() */
} dv_session;

/* Opens session->client, in manual mode; what is above it is set. Warnings, the log, and when the connection goes and
 * comes back are told on stderr. Returns 0, or the exit code when the reason was told. */
int dv_session_open(dv_session *session);

/* Rule G4: whether a command works, to be told in each round, before divvy_client_process(). As long as one does, the
 * session is not closed by us, whatever our clock says. */
void dv_session_keep(dv_session *session, bool works);

/* Writes the metrics, if that is due. To be called in each round. */
static inline void dv_session_write_metrics(dv_session *session) {
    if (session->client) dv_metrics_file_step(&session->metrics, session->client, dv_session_now_ms());
}

/* Returns how long it takes until then; -1: never. */
static inline int64_t dv_session_until_metrics_ms(const dv_session *session) {
    return dv_metrics_file_until_ms(&session->metrics, dv_session_now_ms());
}

/* NULL in session->client is allowed. Writes the metrics for the last time, unless that was done. */
void dv_session_close(dv_session *session);

/* Call it in each round until session->connected. Returns 0 while the session stands or may come about, else the exit
 * code, with the reason told. */
int dv_session_check(dv_session *session);

/* Returns how long it takes until dv_session_check() may have something to say by the clock alone; -1: no more. */
int64_t dv_session_until_check_ms(const dv_session *session);

/* Tells why we end, and keeps it in session->ending. Returns `code`. */
__attribute__((format(printf, 3, 4))) int dv_session_end(dv_session *session, int code, const char *format, ...);

/* Returns why a request has failed: what the end of the session says of that, or what the error means. */
const char *dv_session_why(divvy_client *client, int error);

/* Tells why the library returned `error`: its message, or the plain text where it left none. Returns the exit code:
 * that of wrong usage where the library finds fault with an argument. */
int dv_session_refused(const dv_session *session, int error);

/* For timeouts of poll(2): the one that is sooner; less than 0: none. */
static inline int64_t dv_session_sooner(int64_t a_ms, int64_t b_ms) {
    return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

#endif
