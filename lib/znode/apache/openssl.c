/* The functions of OpenSSL, looked up. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/openssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static dv_openssl found;
static bool is_whole;

static bool find(void *place, const char *name) {
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(place, &symbol, sizeof symbol); /* ISO C has no cast from an object to a function. */
    return symbol != NULL;
}

#define FIND(name) find(&found.name, #name)

static bool find_contexts(void) {
    return FIND(TLS_client_method) && FIND(SSL_CTX_new) && FIND(SSL_CTX_free) && FIND(SSL_CTX_set_verify) &&
           FIND(SSL_CTX_load_verify_locations) && FIND(SSL_CTX_use_certificate_chain_file) &&
           FIND(SSL_CTX_use_PrivateKey_file) && FIND(SSL_CTX_check_private_key) &&
           FIND(SSL_CTX_set_default_passwd_cb) && FIND(SSL_CTX_set_default_passwd_cb_userdata) &&
           FIND(X509_get_default_cert_file) && FIND(X509_get_default_cert_dir);
}

static bool find_connections(void) {
    return FIND(SSL_new) && FIND(SSL_free) && FIND(SSL_set_fd) && FIND(SSL_ctrl) && FIND(SSL_set1_host) &&
           FIND(SSL_get0_param) && FIND(X509_VERIFY_PARAM_set1_ip_asc) && FIND(SSL_connect) && FIND(SSL_read) &&
           FIND(SSL_write) && FIND(SSL_get_error) && FIND(SSL_get_verify_result) &&
           FIND(X509_verify_cert_error_string) && FIND(ERR_get_error) && FIND(ERR_reason_error_string) &&
           FIND(ERR_clear_error);
}

/* OpenSSL would free all that it has when the process exits, under threads of ours and of the native client's that may
 * still use it: unless it is told not to, before its first use. */
static void keep_at_exit(void) {
    enum { NO_ATEXIT = 0x00080000 }; /* OPENSSL_INIT_NO_ATEXIT */
    int (*init)(uint64_t options, const void *settings);
    if (find(&init, "OPENSSL_init_crypto")) init(NO_ATEXIT, NULL);
}

static void find_all(void) {
    keep_at_exit();
    is_whole = find_contexts() && find_connections();
}

const dv_openssl *dv_openssl_find(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_all);
    return is_whole ? &found : NULL;
}
