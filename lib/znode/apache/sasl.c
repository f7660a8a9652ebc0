/* SASL to the servers: who we are. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/sasl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "znode/apache/openssl.h"
#include "znode/apache/secret.h"
#include "znode/apache/tls.h"

/* The constants below are those in the headers of Cyrus SASL and of a native client that was built with it. */
enum { CALLBACK_END = 0, CALLBACK_USER = 0x4001, CALLBACK_NAME = 0x4002, CALLBACK_PASSWORD = 0x4004 };
enum { CALLBACK_REALM = 0x4008, CALLBACKS = 5, SASL_DONE = 0, SASL_BAD_PARAMETER = -7 };
enum { PASSWORD_BYTES_MAX = 1023 };

typedef struct {
    unsigned long id;
    int (*function)(void);
    void *context;
} callback;

typedef struct {
    unsigned long bytes;
    unsigned char data[PASSWORD_BYTES_MAX + 1];
} secret;

typedef struct {
    const char *service, *host, *mechanisms;
    const callback *callbacks;
} parameters;

typedef zhandle_t *init_sasl_fn(const char *host, watcher_fn watcher, int timeout_ms, const clientid_t *id,
                                void *context, int flags, log_callback_fn log, parameters *sasl);

struct dv_sasl {
    init_sasl_fn *init;
    char *mechanism, *user, *service, *host;
    secret password;
    callback callbacks[CALLBACKS]; /* the handle points to them */
};

#define WRONG(error, ...) (dv_tls_say(message, __VA_ARGS__), (error))

/* ---- what Cyrus SASL asks, on the native client's I/O thread ---- */

static int tell_user(void *context, int id, const char **result, unsigned *bytes) {
    const dv_sasl *sasl = context;
    (void)id;
    if (!result) return SASL_BAD_PARAMETER;
    *result = sasl->user;
    if (bytes) *bytes = (unsigned)strlen(sasl->user);
    return SASL_DONE;
}

static int tell_realm(void *context, int id, const char **available, const char **result) {
    (void)context;
    (void)id;
    if (!result) return SASL_BAD_PARAMETER;
    *result = available && available[0] ? available[0] : "";
    return SASL_DONE;
}

static int tell_password(void *connection, void *context, int id, secret **result) {
    dv_sasl *sasl = context;
    (void)id;
    if (!connection || !result) return SASL_BAD_PARAMETER;
    *result = &sasl->password; /* Cyrus SASL copies it, and wipes its copy. */
    return SASL_DONE;
}

static void set_callbacks(dv_sasl *sasl) {
    const callback all[CALLBACKS] = {{CALLBACK_REALM, (int (*)(void))(void *)tell_realm, sasl},
                                     {CALLBACK_USER, (int (*)(void))(void *)tell_user, sasl},
                                     {CALLBACK_NAME, (int (*)(void))(void *)tell_user, sasl},
                                     {CALLBACK_PASSWORD, (int (*)(void))(void *)tell_password, sasl},
                                     {CALLBACK_END, NULL, NULL}};
    memcpy(sasl->callbacks, all, sizeof all);
}

/* ---- the object ---- */

static int initialised = -1;

static void initialise_library(void) {
    int (*initialise)(const callback *callbacks);
    if (dv_symbol_find(&initialise, "sasl_client_init")) initialised = initialise(NULL);
}

static int look_up(dv_sasl *sasl, char *message) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!dv_symbol_find(&sasl->init, "zookeeper_init_sasl"))
        return WRONG(DIVVY_EUNSUPPORTED,
                     "this ZooKeeper C client (libzookeeper_mt) was built without Cyrus SASL, as Debian's is; install "
                     "one of 3.7 or later that was built with it, or build it (docs/secure.md says how), and see that "
                     "this program loads it");
    pthread_once(&once, initialise_library);
    if (initialised != SASL_DONE)
        return WRONG(DIVVY_EUNSUPPORTED, "Cyrus SASL cannot be started (%d); see that libsasl2 is installed whole",
                     initialised);
    return 0;
}

static bool copy(char **out, const char *text, const char *otherwise) {
    if (!text) text = otherwise;
    *out = text ? strdup(text) : NULL;
    return *out || !text;
}

static int read_password(dv_sasl *sasl, const char *path, char *message) {
    char *text;
    const char *wrong = dv_secret_read(path, PASSWORD_BYTES_MAX, &text);
    if (wrong) return WRONG(DIVVY_EINVAL, "sasl_password_file %.256s: %s", path, wrong);
    sasl->password.bytes = strlen(text);
    memcpy(sasl->password.data, text, sasl->password.bytes + 1);
    dv_secret_free(text);
    return 0;
}

static int check_names(const divvy_client_config *config, bool digest, char *message) {
    if (!digest && strcmp(config->sasl_mechanism, "GSSAPI") != 0)
        return WRONG(DIVVY_EUNSUPPORTED, "the mechanism \"%.32s\" is not supported; \"DIGEST-MD5\" and \"GSSAPI\" are",
                     config->sasl_mechanism);
    if (digest && (!config->sasl_user || !config->sasl_password_file))
        return WRONG(DIVVY_EINVAL, "DIGEST-MD5 needs sasl_user and sasl_password_file; one is missing");
    if (!digest && config->sasl_password_file)
        return WRONG(DIVVY_EINVAL, "GSSAPI takes its credentials from Kerberos (kinit), not from sasl_password_file");
    return 0;
}

static int fill(dv_sasl *sasl, const divvy_client_config *config, char *message) {
    bool digest = !config->sasl_mechanism || strcmp(config->sasl_mechanism, "DIGEST-MD5") == 0;
    int error = check_names(config, digest, message);
    if (!error) error = look_up(sasl, message);
    if (!error && digest) error = read_password(sasl, config->sasl_password_file, message);
    if (error) return error;
    const char *host = digest ? "zk-sasl-md5" : NULL; /* By which all ZooKeepers go. */
    if (!copy(&sasl->mechanism, config->sasl_mechanism, "DIGEST-MD5") || !copy(&sasl->user, config->sasl_user, "") ||
        !copy(&sasl->service, config->sasl_service, "zookeeper") || !copy(&sasl->host, config->sasl_host, host))
        return WRONG(DIVVY_ENOMEM, "%s", divvy_strerror(DIVVY_ENOMEM));
    set_callbacks(sasl);
    return 0;
}

int dv_sasl_new(dv_sasl **out, const divvy_client_config *config, char *message) {
    *out = NULL;
    dv_sasl *sasl = calloc(1, sizeof *sasl);
    if (!sasl) return WRONG(DIVVY_ENOMEM, "%s", divvy_strerror(DIVVY_ENOMEM));
    int error = fill(sasl, config, message);
    if (error) dv_sasl_free(sasl);
    else *out = sasl;
    return error;
}

void dv_sasl_free(dv_sasl *sasl) {
    if (!sasl) return;
    explicit_bzero(&sasl->password, sizeof sasl->password);
    free(sasl->mechanism);
    free(sasl->user);
    free(sasl->service);
    free(sasl->host);
    free(sasl);
}

zhandle_t *dv_sasl_open(dv_sasl *sasl, const char *servers, watcher_fn watcher, int timeout_ms, const clientid_t *key,
                        void *context, log_callback_fn log) {
    parameters p = {sasl->service, sasl->host, sasl->mechanism, sasl->callbacks};
    return sasl->init(servers, watcher, timeout_ms, key, context, ZOO_NO_LOG_CLIENTENV, log, &p);
}
