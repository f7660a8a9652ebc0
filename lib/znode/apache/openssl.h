/* The functions of OpenSSL, as the native client has brought it. SPDX-License-Identifier: Apache-2.0
 *
 * They are looked up at run time, so that libdivvy links nothing for TLS: a native client that can do TLS is linked to
 * OpenSSL, and any other needs none of this. The prototypes are those of OpenSSL 1.1.0 and later. */
#ifndef DV_OPENSSL_H
#define DV_OPENSSL_H

#include <stdbool.h>
#include <stddef.h>

/* X(result, name, parameters...). Its objects, which are opaque to us, stand as void. */
#define DV_OPENSSL(X)                                                                                \
    X(const void *, TLS_client_method, void)                                                         \
    X(void *, SSL_CTX_new, const void *method)                                                       \
    X(void, SSL_CTX_free, void *context)                                                             \
    X(void, SSL_CTX_set_verify, void *context, int mode, void *callback)                             \
    X(int, SSL_CTX_load_verify_locations, void *context, const char *file, const char *folder)       \
    X(int, SSL_CTX_use_certificate_chain_file, void *context, const char *file)                      \
    X(int, SSL_CTX_use_PrivateKey_file, void *context, const char *file, int type)                   \
    X(int, SSL_CTX_check_private_key, const void *context)                                           \
    X(void, SSL_CTX_set_default_passwd_cb, void *context, int (*callback)(char *, int, int, void *)) \
    X(void, SSL_CTX_set_default_passwd_cb_userdata, void *context, void *user)                       \
    X(void *, SSL_new, void *context)                                                                \
    X(void, SSL_free, void *ssl)                                                                     \
    X(int, SSL_set_fd, void *ssl, int fd)                                                            \
    X(long, SSL_ctrl, void *ssl, int command, long number, void *argument)                           \
    X(int, SSL_set1_host, void *ssl, const char *name)                                               \
    X(void *, SSL_get0_param, void *ssl)                                                             \
    X(int, X509_VERIFY_PARAM_set1_ip_asc, void *parameters, const char *address)                     \
    X(int, SSL_connect, void *ssl)                                                                   \
    X(int, SSL_read, void *ssl, void *bytes, int count)                                              \
    X(int, SSL_write, void *ssl, const void *bytes, int count)                                       \
    X(int, SSL_get_error, const void *ssl, int result)                                               \
    X(long, SSL_get_verify_result, const void *ssl)                                                  \
    X(const char *, X509_verify_cert_error_string, long code)                                        \
    X(unsigned long, ERR_get_error, void)                                                            \
    X(const char *, ERR_reason_error_string, unsigned long error)                                    \
    X(void, ERR_clear_error, void)                                                                   \
    X(const char *, X509_get_default_cert_file, void)                                                \
    X(const char *, X509_get_default_cert_dir, void)

typedef struct {
#define MEMBER(result, name, ...) result (*(name))(__VA_ARGS__);
    DV_OPENSSL(MEMBER)
#undef MEMBER
} dv_openssl;

/* Returns them, or NULL when one is missing. Thread: any. */
const dv_openssl *dv_openssl_find(void);
/* Returns the last of this thread's errors in words, or NULL, and forgets all of them. */
const char *dv_openssl_reason(const dv_openssl *ssl);
/* Looks a function up in the process, and stores it at `place`. Returns false when it is not there. */
bool dv_symbol_find(void *place, const char *name);

#endif
