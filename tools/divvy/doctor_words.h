/* A server's answers to four letter words. SPDX-License-Identifier: Apache-2.0
 *
 * Pure: answers in, numbers out. They come from the network, and are hostile until they are parsed. */
#ifndef DV_DOCTOR_WORDS_H
#define DV_DOCTOR_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DV_SERVER_MODE_BYTES = 24, DV_CONNECTION_BYTES = 64 };

/* The answer to "srvr". */
typedef struct {
    bool told;
    bool not_serving; /* it is up, and has no quorum */
    bool read_only;   /* it sees no majority, and serves only clients that do not write */
    bool not_allowed; /* the word is not in 4lw.commands.whitelist */
    char mode[DV_SERVER_MODE_BYTES];
    uint64_t zxid;
} dv_word_srvr;

/* The answer to "conf"; 0: not told. */
typedef struct {
    int64_t tick_ms, min_timeout_ms, max_timeout_ms;
    int64_t server_id;   /* its number in the ensemble; 0 also of one that stands alone */
    size_t server_count; /* in the ensemble; 1 of one that stands alone */
    bool has_two_ports; /* it serves clients in plain text and over TLS; "cons" lists those of the port that is asked */
} dv_word_conf;

/* A client's connection, of "cons". */
typedef struct {
    int64_t session, timeout_ms;
    int64_t established_ms; /* by the server's wall clock */
    int64_t silent_ms;      /* since its last answer, against the newest of all at its server */
    char address[DV_CONNECTION_BYTES];
} dv_word_connection;

dv_word_srvr dv_word_srvr_parse(const char *text, size_t bytes);
dv_word_conf dv_word_conf_parse(const char *text, size_t bytes);
/* Returns, of the answer to "mntr", after how many transactions the server's tree was not its leader's, since it was
 * started; 0 where that is not told, as before ZooKeeper 3.6, or cut. */
int64_t dv_word_mntr_mismatches(const char *text, size_t bytes);
/* Appends the connections that have a session to *list, which is realloc'ed. Returns false when the word is not
 * allowed, the text is none of its answers, it has more than 100,000 connections, or an allocation fails. */
bool dv_word_cons_parse(const char *text, size_t bytes, dv_word_connection **list, size_t *count);

#endif
