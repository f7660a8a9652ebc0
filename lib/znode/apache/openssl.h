/* The functions of OpenSSL, as the native client has brought it. SPDX-License-Identifier: Apache-2.0
 *
 * They are looked up at run time, so that libdivvy links nothing for TLS: a native client that can do TLS is linked to
 * OpenSSL, and any other needs none of this. The prototypes are those of OpenSSL 1.1.0 and later. */
#ifndef DV_OPENSSL_H
#define DV_OPENSSL_H

#include <stddef.h>

/* Its objects, which are opaque to us, stand as void. */
typedef struct {
    const void *(*TLS_client_method)(void);
    void *(*SSL_CTX_new)(const void *method);
    void (*SSL_CTX_free)(void *context);
    void (*SSL_CTX_set_verify)(void *context, int mode, void *callback);
    int (*SSL_CTX_load_verify_locations)(void *context, const char *file, const char *folder);
    int (*SSL_CTX_use_certificate_chain_file)(void *context, const char *file);
    int (*SSL_CTX_use_PrivateKey_file)(void *context, const char *file, int type);
    int (*SSL_CTX_check_private_key)(const void *context);
    void (*SSL_CTX_set_default_passwd_cb)(void *context, int (*callback)(char *, int, int, void *));
    void (*SSL_CTX_set_default_passwd_cb_userdata)(void *context, void *user);
    void *(*SSL_new)(void *context);
    void (*SSL_free)(void *ssl);
    int (*SSL_set_fd)(void *ssl, int fd);
    long (*SSL_ctrl)(void *ssl, int command, long number, void *argument);
    int (*SSL_set1_host)(void *ssl, const char *name);
    void *(*SSL_get0_param)(void *ssl);
    int (*X509_VERIFY_PARAM_set1_ip_asc)(void *parameters, const char *address);
    int (*SSL_connect)(void *ssl);
    int (*SSL_read)(void *ssl, void *bytes, int count);
    int (*SSL_write)(void *ssl, const void *bytes, int count);
    int (*SSL_get_error)(const void *ssl, int result);
    long (*SSL_get_verify_result)(const void *ssl);
    const char *(*X509_verify_cert_error_string)(long code);
    unsigned long (*ERR_get_error)(void);
    const char *(*ERR_reason_error_string)(unsigned long error);
    void (*ERR_clear_error)(void);
    const char *(*X509_get_default_cert_file)(void);
    const char *(*X509_get_default_cert_dir)(void);
} dv_openssl;

/* Returns them, or NULL when one is missing. Thread: any. */
const dv_openssl *dv_openssl_find(void);

#endif
