/* The servers of a list, each looked at by itself. SPDX-License-Identifier: Apache-2.0
 *
 * Short questions, to all servers at a time, over connections of their own: a server that is frozen delays nobody. */
#ifndef DV_DOCTOR_SERVERS_H
#define DV_DOCTOR_SERVERS_H

#include "doctor_words.h"
#include "tls_options.h"

enum { DV_SERVER_TEXT_BYTES = 320 };

typedef enum {
    DV_SERVER_UNRESOLVED,  /* its name has no address; `reason` says why */
    DV_SERVER_UNREACHABLE, /* no connection came about; likewise */
    DV_SERVER_SILENT,      /* it takes connections, and says nothing */
    DV_SERVER_CLOSES,      /* it takes connections, and closes them without a word */
    DV_SERVER_REFUSED,     /* over TLS: it must not be used; likewise */
    DV_SERVER_ANSWERS,
} dv_server_state;

typedef struct {
    char *host; /* as given, with its port */
    dv_server_state state;
    char address[DV_SERVER_TEXT_BYTES]; /* the one that answered, or the last one tried */
    char reason[DV_SERVER_TEXT_BYTES];
    int64_t took_ms;          /* until it had answered to "srvr" */
    dv_word_srvr srvr, later; /* `later`: asked when all had answered once */
    dv_word_conf conf;
    int64_t mismatches; /* see dv_word_mntr_mismatches() */
    bool lists_clients; /* it answers to "cons", with all of them */
} dv_server;

typedef struct {
    dv_server *list;
    size_t count;
    const char *chroot;              /* of the connect string: "" or "/a/b" */
    dv_word_connection *connections; /* of all servers that list them */
    size_t connection_count;
    size_t listing_count;  /* of the ensemble's servers, those that list them */
    size_t ensemble_count; /* 0: not known */
    bool all_clients;      /* all do, so that a session that is not among them has no connection */
} dv_servers;

/* Returns whether it serves clients that write: it answers, sees a majority, and is not read-only. */
bool dv_server_serves(const dv_server *server);
/* Asks all servers of a connect string who they are, for `limit_ms` at most. Returns 0; DIVVY_EINVAL with *reason;
 * DIVVY_ENOMEM. Release with dv_servers_clear() in each case. `connect` outlives it. */
int dv_servers_ask(dv_servers *servers, const char *connect, const dv_tls_options *tls, int64_t limit_ms,
                   const char **reason);
/* Asks those that answered for their clients, and where they are now. 0, or DIVVY_ENOMEM. */
int dv_servers_ask_clients(dv_servers *servers, const dv_tls_options *tls, int64_t limit_ms);
/* Returns a connect string of those that serve, with the chroot; malloc'ed. "" when there are none. NULL when an
 * allocation fails. */
char *dv_servers_good(const dv_servers *servers);
void dv_servers_clear(dv_servers *servers);

#endif
