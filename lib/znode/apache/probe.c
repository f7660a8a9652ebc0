/* Looks at a server over a connection of our own. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/probe.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/threads.h"
#include "znode/apache/openssl.h"

/* SSL_ERROR_*, X509_V_ERR_*, SSL_CTRL_SET_TLSEXT_HOSTNAME, in the words of OpenSSL's headers. */
enum { ERROR_WANT_READ = 2, ERROR_WANT_WRITE = 3 };
enum { NOT_YET_VALID = 9, HAS_EXPIRED = 10, HOSTNAME_MISMATCH = 62, IP_ADDRESS_MISMATCH = 64 };
enum { NO_ISSUER = 2, SELF_SIGNED = 18, SELF_SIGNED_IN_CHAIN = 19, NO_ISSUER_LOCALLY = 20, NO_VERIFY_LEAF = 21 };
enum { CONTROL_SET_HOSTNAME = 55, NAME_TYPE_HOST = 0 };

enum { SILENT_MS = 900, PLAIN_ANSWER_MS = 1000 };

typedef struct {
    const dv_openssl *openssl;
    void *context, *ssl; /* NULL: plain text */
    int socket_fd;
    int64_t until_ms;
    bool late; /* the time was over before the server answered */
} connection;

dv_server_address dv_server_address_of(const struct sockaddr *address, socklen_t bytes) {
    dv_server_address where = {.bytes = bytes};
    assert(bytes <= sizeof where.address);
    memcpy(&where.address, address, bytes);
    return where;
}

/* Waits until the socket is ready, or the time is over. */
static bool is_ready(connection *c, short events) {
    struct pollfd p = {.fd = c->socket_fd, .events = events};
    for (int64_t left_ms; (left_ms = c->until_ms - dv_monotonic_ms()) > 0;) {
        int ready = poll(&p, 1, (int)left_ms);
        if (ready == 1) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
    c->late = true;
    return false;
}

static bool connect_to(connection *c, const dv_server_address *where) {
    int error = 0;
    socklen_t error_bytes = sizeof error;
    c->socket_fd = socket(where->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->socket_fd < 0) return false;
    if (connect(c->socket_fd, (const struct sockaddr *)&where->address, where->bytes) == 0) return true;
    if (errno != EINPROGRESS || !is_ready(c, POLLOUT)) return false;
    return getsockopt(c->socket_fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes) == 0 && error == 0;
}

/* Waits for what a call of OpenSSL's lacked. Returns whether to try it again. */
static bool may_go_on(connection *c, int result) {
    int error = c->openssl->SSL_get_error(c->ssl, result);
    if (error == ERROR_WANT_READ) return is_ready(c, POLLIN);
    return error == ERROR_WANT_WRITE && is_ready(c, POLLOUT);
}

static bool set_name(connection *c, const char *name) {
    char address[16];
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
        return c->openssl->X509_VERIFY_PARAM_set1_ip_asc(c->openssl->SSL_get0_param(c->ssl), name) == 1;
    char copy[256];
    snprintf(copy, sizeof copy, "%s", name);
    c->openssl->SSL_ctrl(c->ssl, CONTROL_SET_HOSTNAME, NAME_TYPE_HOST, copy);
    return c->openssl->SSL_set1_host(c->ssl, name) == 1;
}

/* NULL: the certificate may be of any name. */
static bool shake_hands(connection *c, const char *name) {
    c->openssl->ERR_clear_error();
    c->ssl = c->openssl->SSL_new(c->context);
    if (!c->ssl || (name && !set_name(c, name)) || c->openssl->SSL_set_fd(c->ssl, c->socket_fd) != 1) return false;
    int result;
    while ((result = c->openssl->SSL_connect(c->ssl)) != 1) {
        if (!may_go_on(c, result)) return false;
    }
    return true;
}

static bool send_word(connection *c, const char *word) {
    int result;
    if (!c->ssl) return send(c->socket_fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word);
    c->openssl->ERR_clear_error();
    while ((result = c->openssl->SSL_write(c->ssl, word, (int)strlen(word))) <= 0) {
        if (!may_go_on(c, result)) return false;
    }
    return true;
}

/* Returns how many bytes came; 0 at the end of what the server says, or of the time, or on an error. */
static size_t receive(connection *c, char *to, size_t bytes) {
    int result;
    if (!c->ssl) {
        ssize_t count = is_ready(c, POLLIN) ? recv(c->socket_fd, to, bytes, 0) : 0;
        return count > 0 ? (size_t)count : 0;
    }
    c->openssl->ERR_clear_error();
    while ((result = c->openssl->SSL_read(c->ssl, to, (int)bytes)) <= 0) {
        if (!may_go_on(c, result)) return 0;
    }
    return (size_t)result;
}

static void end(connection *c) {
    if (c->ssl) c->openssl->SSL_free(c->ssl);
    if (c->context) c->openssl->SSL_CTX_free(c->context);
    if (c->socket_fd >= 0) close(c->socket_fd);
}

/* ---- what is wrong ---- */

static bool has_no_issuer(long verdict) {
    return verdict == NO_ISSUER || verdict == SELF_SIGNED || verdict == SELF_SIGNED_IN_CHAIN ||
           verdict == NO_ISSUER_LOCALLY || verdict == NO_VERIFY_LEAF;
}

static void explain_certificate(const dv_tls *tls, long verdict, const char *name, const char *text, char *message) {
    if (verdict == HAS_EXPIRED)
        dv_tls_say(message, "its certificate, or one of its CAs', has expired (%s); renew it", text);
    else if (verdict == NOT_YET_VALID)
        dv_tls_say(message, "its certificate is not valid yet (%s); check the clocks of both machines", text);
    else if (verdict == HOSTNAME_MISMATCH || verdict == IP_ADDRESS_MISMATCH)
        dv_tls_say(message,
                   "its certificate is for another name than %.128s (%s); connect by a name that the certificate has, "
                   "or have this name added to its subjectAltName",
                   name, text);
    else if (has_no_issuer(verdict))
        dv_tls_say(message,
                   "its certificate comes from no CA in %.256s (%s); put the CA that has signed it there, or find out "
                   "who answers at this address",
                   dv_tls_ca_file(tls), text);
    else dv_tls_say(message, "its certificate does not pass: %s", text);
}

/* Returns whether it hung up in the middle of the handshake, without a word of why. */
static bool hung_up(const char *reason) {
    return !reason || strstr(reason, "unexpected eof");
}

/* No TLS begins as what has come. */
static bool is_other_protocol(const char *reason) {
    return strstr(reason, "wrong version number") || strstr(reason, "packet length too long") ||
           strstr(reason, "unknown protocol");
}

/* A plaintext port takes the handshake for a request that is far too long, and hangs up. */
static bool answers_in_plain_text(const dv_server_address *where) {
    char answer[64];
    return dv_word_ask(NULL, where, "srvr", answer, sizeof answer, dv_monotonic_ms() + PLAIN_ANSWER_MS) > 0;
}

/* The alerts by which a server says that it has looked at our certificate, as OpenSSL words them. */
static bool is_about_us(const char *reason) {
    static const char *const alerts[] = {"alert bad certificate",     "alert unsupported certificate",
                                         "alert certificate revoked", "alert certificate expired",
                                         "alert certificate unknown", "alert unknown ca",
                                         "alert certificate required"};
    for (size_t i = 0; i < sizeof alerts / sizeof alerts[0]; i++) {
        if (strstr(reason, alerts[i])) return true;
    }
    return false;
}

static void explain_refusal(const char *reason, char *message) {
    dv_tls_say(message,
               "it refuses our certificate (%s); its trust store must have the CA that signed tls_certificate_file, "
               "which must not have expired",
               reason);
}

/* Returns false when nothing can be said but that it is not there: one that is stopped or started hangs up, too. */
static bool explain_handshake(const dv_tls *tls, connection *c, const char *name, const dv_server_address *where,
                              char *message) {
    long verdict = c->ssl ? c->openssl->SSL_get_verify_result(c->ssl) : 0;
    const char *reason = dv_openssl_reason(c->openssl);
    /* Silence may have been ended by others, silence.h. */
    bool silent = c->late || (hung_up(reason) && dv_monotonic_ms() > c->until_ms - DV_TLS_CHECK_MS + SILENT_MS);
    if (verdict != 0)
        explain_certificate(tls, verdict, name, c->openssl->X509_verify_cert_error_string(verdict), message);
    else if (silent)
        dv_tls_say(message, "it takes the connection but says nothing in the TLS handshake; it may be overloaded, or "
                            "hang, or not speak TLS there");
    else if (hung_up(reason) && !answers_in_plain_text(where)) return false;
    else if (hung_up(reason) || is_other_protocol(reason))
        dv_tls_say(message, "it does not speak TLS there; this is probably its plaintext clientPort: use the port of "
                            "secureClientPort in its zoo.cfg");
    else if (is_about_us(reason)) explain_refusal(reason, message);
    else dv_tls_say(message, "the TLS handshake fails: %s", reason);
    return true;
}

/* In TLS 1.3 a client is done before the server has looked at its certificate: so the server's answer to a question
 * tells whether it takes us. Silence is no answer, and nothing that could be explained. */
static bool is_welcome(connection *c, char *message) {
    char answer[64];
    if (send_word(c, "ruok") && receive(c, answer, sizeof answer) > 0) return true;
    const char *reason = dv_openssl_reason(c->openssl);
    if (c->late || hung_up(reason)) return true;
    explain_refusal(reason, message);
    return false;
}

/* ---- the two uses ---- */

dv_tls_verdict dv_tls_check(const dv_tls *tls, const dv_server_address *where, const char *name, char *message) {
    connection c = {.openssl = dv_openssl_find(), .socket_fd = -1, .until_ms = dv_monotonic_ms() + DV_TLS_CHECK_MS};
    dv_tls_verdict verdict = DV_TLS_REFUSED;
    assert(c.openssl && name);
    c.context = dv_tls_context(tls, message);
    if (c.context && !connect_to(&c, where)) verdict = DV_TLS_UNREACHABLE;
    else if (c.context && !shake_hands(&c, name))
        verdict = explain_handshake(tls, &c, name, where, message) ? DV_TLS_REFUSED : DV_TLS_UNREACHABLE;
    else if (c.context && is_welcome(&c, message)) verdict = DV_TLS_PASSED;
    end(&c);
    return verdict;
}

size_t dv_word_ask(const dv_tls *tls, const dv_server_address *where, const char *word, char *answer,
                   size_t answer_bytes, int64_t until_ms) {
    char unused[DV_TLS_MESSAGE_BYTES];
    connection c = {.openssl = tls ? dv_openssl_find() : NULL, .socket_fd = -1, .until_ms = until_ms};
    size_t bytes = 0, more = 1;
    assert(!tls || c.openssl);
    if (tls) c.context = dv_tls_context(tls, unused);
    bool asked = (!tls || c.context) && connect_to(&c, where) && (!tls || shake_hands(&c, NULL)) && send_word(&c, word);
    while (asked && more && bytes < answer_bytes) bytes += more = receive(&c, answer + bytes, answer_bytes - bytes);
    end(&c);
    return bytes;
}
