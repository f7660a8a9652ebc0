/* The functions of OpenSSL, looked up. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/openssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

static dv_openssl found;
static bool is_whole;

bool dv_symbol_find(void *place, const char *name) {
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(place, &symbol, sizeof symbol); /* ISO C has no cast from an object to a function. */
    return symbol != NULL;
}

/* Tells OpenSSL, before its first use, to free nothing at exit, as threads may still use it. */
static void keep_at_exit(void) {
    enum { NO_ATEXIT = 0x00080000 }; /* OPENSSL_INIT_NO_ATEXIT */
    int (*init)(uint64_t options, const void *settings);
    if (dv_symbol_find(&init, "OPENSSL_init_crypto")) init(NO_ATEXIT, NULL);
}

static void find_all(void) {
    keep_at_exit();
    is_whole = true;
#define FIND(result, name, ...) is_whole &= dv_symbol_find(&found.name, #name);
    DV_OPENSSL(FIND)
#undef FIND
}

const dv_openssl *dv_openssl_find(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_all);
    return is_whole ? &found : NULL;
}

const char *dv_openssl_reason(const dv_openssl *ssl) {
    const char *text = NULL;
    for (unsigned long error; (error = ssl->ERR_get_error()) != 0;) {
        const char *more = ssl->ERR_reason_error_string(error);
        if (more) text = more;
    }
    return text;
}
