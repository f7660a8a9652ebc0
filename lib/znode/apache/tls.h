/* TLS to the servers. SPDX-License-Identifier: Apache-2.0
 *
 * The native client checks that a certificate comes from a CA, at each connection. It checks no name, says nothing of
 * the cause when it refuses one, and waits without end for a handshake. So before a server comes into its list we make
 * a handshake of our own, with a deadline, that checks the name too and tells causes apart. silence.h is for those that
 * fall silent later. */
#ifndef DV_TLS_H
#define DV_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <zookeeper/zookeeper.h>

enum { DV_TLS_MESSAGE_BYTES = 768 };

/* As in divvy_client_config. All but the last are needed. */
typedef struct {
    const char *ca_file, *certificate_file, *key_file, *key_password_file;
} dv_tls_files;

/* The names of the files, and the password. Reference-counted: threads that look at servers may outlive a client. */
typedef struct dv_tls dv_tls;

/* Checks the files, and that nothing else will be trusted. Returns 0, or DIVVY_EINVAL, DIVVY_EUNSUPPORTED,
 * DIVVY_ENOMEM with a message. */
int dv_tls_new(dv_tls **out, const dv_tls_files *files, char *message, size_t message_bytes);
dv_tls *dv_tls_ref(dv_tls *tls);
/* NULL is fine. The password is wiped with the last. */
void dv_tls_unref(dv_tls *tls);

/* zookeeper_init2() over TLS. */
zhandle_t *dv_tls_open(const dv_tls *tls, const char *servers, watcher_fn watcher, int timeout_ms, void *context,
                       int flags, log_callback_fn log);

/* Makes an SSL_CTX of the files as they are now, for dv_openssl's SSL_CTX_free(). NULL with a message on failure. */
void *dv_tls_context(const dv_tls *tls, char *message, size_t message_bytes);
const char *dv_tls_ca_file(const dv_tls *tls);

typedef enum {
    DV_TLS_PASSED,
    DV_TLS_UNREACHABLE, /* nothing listens there, now, or it hangs up */
    DV_TLS_REFUSED,     /* it must not be used: the message says why */
} dv_tls_verdict;

/* Looks at the server at `where` in a handshake, whose user calls it `name`, and asks it for a sign of life. Takes
 * DV_TLS_CHECK_MS at most. */
enum { DV_TLS_CHECK_MS = 5000 };
dv_tls_verdict dv_tls_check(const dv_tls *tls, const struct sockaddr *where, socklen_t where_bytes, const char *name,
                            char *message, size_t message_bytes);

/* Sends a four letter word to a server in the list and reads its answer, until the time, by CLOCK_MONOTONIC. Returns
 * the answer's bytes, 0 when there is none. */
size_t dv_tls_ask(const dv_tls *tls, const struct sockaddr *where, socklen_t where_bytes, const char *word,
                  char *answer, size_t answer_bytes, int64_t until_ms);

#endif
