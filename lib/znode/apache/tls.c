/* TLS to the servers: the files, and the native client's handle. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/tls.h"

#include <assert.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "divvy/error.h"
#include "znode/apache/openssl.h"
#include "znode/apache/secret.h"

enum { FILETYPE_PEM = 1, VERIFY_PEER = 1 }; /* SSL_FILETYPE_PEM, SSL_VERIFY_PEER */
enum { PASSWORD_BYTES_MAX = 1023 };         /* OpenSSL takes no longer one. */

/* The native client's zookeeper_log.h declares it, and cannot be included by its installed name. */
extern ZooLogLevel logLevel;

typedef zhandle_t *init_ssl_fn(const char *host, const char *cert, watcher_fn watcher, int timeout_ms,
                               const clientid_t *id, void *context, int flags);

struct dv_tls {
    atomic_uint refs;
    char *ca_file, *certificate_file, *key_file;
    char *password; /* NULL: none */
    const dv_openssl *openssl;
    init_ssl_fn *init;
};

#define WRONG(error, ...) (snprintf(message, message_bytes, __VA_ARGS__), (error))

/* ---- what OpenSSL would trust besides ---- */

/* Returns whether these are one file. One that does not exist, or is empty, trusts nothing. */
static bool trusts_only(const char *file, const char *ca_file) {
    struct stat a, b;
    if (stat(file, &a) != 0) return errno == ENOENT || errno == ENOTDIR;
    if (a.st_size == 0 && S_ISREG(a.st_mode)) return true;
    return stat(ca_file, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool is_empty(const char *folder) {
    DIR *opened = opendir(folder);
    if (!opened) return errno == ENOENT || errno == ENOTDIR;
    const struct dirent *entry;
    bool empty = true;
    while (empty && (entry = readdir(opened)) != NULL)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(opened);
    return empty;
}

/* A list with ":" between. */
static bool are_empty(const char *folders) {
    char *copy = strdup(folders), *rest = copy;
    bool empty = copy != NULL;
    for (const char *folder = strsep(&rest, ":"); empty && folder; folder = strsep(&rest, ":"))
        empty = !*folder || is_empty(folder);
    free(copy);
    return empty;
}

/* The native client adds OpenSSL's default store to the CA that it is given, and checks no names: with the system's CAs
 * in it, anybody who has any certificate at all could be a server. */
static int check_default_store(const dv_tls *tls, char *message, size_t message_bytes) {
    static const char what_to_do[] =
        "the native client would trust these besides tls_ca_file, and checks no names; start the program with "
        "SSL_CERT_FILE set to tls_ca_file, and SSL_CERT_DIR to a folder that does not exist";
    const char *file = secure_getenv("SSL_CERT_FILE"), *folders = secure_getenv("SSL_CERT_DIR");
    if (!file) file = tls->openssl->X509_get_default_cert_file();
    if (!folders) folders = tls->openssl->X509_get_default_cert_dir();
    if (!trusts_only(file, tls->ca_file))
        return WRONG(DIVVY_EINVAL, "the default file of trusted certificates, %.128s, is not empty: %s", file,
                     what_to_do);
    if (!are_empty(folders))
        return WRONG(DIVVY_EINVAL, "the default folder of trusted certificates, %.128s, is not empty: %s", folders,
                     what_to_do);
    return 0;
}

/* ---- the files ---- */

static int give_password(char *to, int bytes, int writes, void *context) {
    const char *password = context;
    (void)writes;
    size_t length = password ? strlen(password) : 0;
    if (!length || length >= (size_t)bytes) return -1; /* Without this, OpenSSL would ask on the terminal. */
    memcpy(to, password, length + 1);
    return (int)length;
}

static const char *reason(const dv_openssl *ssl) {
    const char *text = NULL;
    for (unsigned long error; (error = ssl->ERR_get_error()) != 0;) {
        const char *more = ssl->ERR_reason_error_string(error);
        if (more) text = more;
    }
    return text ? text : "no reason is given";
}

static bool is_readable(const char *what, const char *path, char *message, size_t message_bytes) {
    FILE *file = fopen(path, "re");
    bool readable = file && fgetc(file) != EOF;
    if (!file) snprintf(message, message_bytes, "%s %.256s cannot be opened: %s", what, path, strerrordesc_np(errno));
    else if (!readable) snprintf(message, message_bytes, "%s %.256s is empty, or no file", what, path);
    if (file) fclose(file);
    return readable;
}

static bool load(const dv_tls *tls, void *context, char *message, size_t message_bytes) {
    const dv_openssl *ssl = tls->openssl;
    const char *what = NULL, *path = NULL, *hint = "";
    if (!is_readable("tls_ca_file", tls->ca_file, message, message_bytes) ||
        !is_readable("tls_certificate_file", tls->certificate_file, message, message_bytes) ||
        !is_readable("tls_key_file", tls->key_file, message, message_bytes))
        return false;
    ssl->ERR_clear_error();
    ssl->SSL_CTX_set_verify(context, VERIFY_PEER, NULL);
    ssl->SSL_CTX_set_default_passwd_cb(context, give_password);
    ssl->SSL_CTX_set_default_passwd_cb_userdata(context, tls->password);
    if (ssl->SSL_CTX_load_verify_locations(context, tls->ca_file, NULL) != 1) {
        what = "tls_ca_file", path = tls->ca_file;
    } else if (ssl->SSL_CTX_use_certificate_chain_file(context, tls->certificate_file) != 1) {
        what = "tls_certificate_file", path = tls->certificate_file;
    } else if (ssl->SSL_CTX_use_PrivateKey_file(context, tls->key_file, FILETYPE_PEM) != 1) {
        what = "tls_key_file", path = tls->key_file;
        hint = tls->password ? "; it must be of the certificate, and its password that of tls_key_password_file"
                             : "; it must be of the certificate, and if it is encrypted, give tls_key_password_file";
    } else if (ssl->SSL_CTX_check_private_key(context) != 1) {
        what = "tls_key_file", path = tls->key_file, hint = "; it must be of the certificate";
    }
    if (!what) return true;
    snprintf(message, message_bytes, "%s %.256s cannot be used: %s%s", what, path, reason(ssl), hint);
    return false;
}

void *dv_tls_context(const dv_tls *tls, char *message, size_t message_bytes) {
    void *context = tls->openssl->SSL_CTX_new(tls->openssl->TLS_client_method());
    if (!context) snprintf(message, message_bytes, "OpenSSL gives no context: %s", reason(tls->openssl));
    if (!context || load(tls, context, message, message_bytes)) return context;
    tls->openssl->SSL_CTX_free(context);
    return NULL;
}

const char *dv_tls_ca_file(const dv_tls *tls) {
    return tls->ca_file;
}

/* The native client takes all of them in one text, which it splits at commas. */
static int check_names(const dv_tls *tls, char *message, size_t message_bytes) {
    const char *const texts[] = {tls->ca_file, tls->certificate_file, tls->key_file};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strchr(texts[i], ','))
            return WRONG(DIVVY_EINVAL, "the file name %.256s has a comma, which the native client takes for its end",
                         texts[i]);
    }
    if (tls->password && strchr(tls->password, ','))
        return WRONG(DIVVY_EINVAL, "the password in tls_key_password_file has a comma, which the native client takes "
                                   "for its end; protect the key with a password that has none");
    return 0;
}

/* ---- the object ---- */

static int look_up(dv_tls *tls, char *message, size_t message_bytes) {
    void *symbol = dlsym(RTLD_DEFAULT, "zookeeper_init_ssl");
    memcpy(&tls->init, &symbol, sizeof symbol);
    tls->openssl = symbol ? dv_openssl_find() : NULL;
    if (!symbol)
        return WRONG(DIVVY_EUNSUPPORTED,
                     "this ZooKeeper C client (libzookeeper_mt) was built without TLS, as Debian's is; install one of "
                     "3.6 or later that was built with OpenSSL, or build it (docs/secure.md says how), and see that "
                     "this program loads it");
    if (!tls->openssl)
        return WRONG(DIVVY_EUNSUPPORTED, "this ZooKeeper C client can do TLS, but OpenSSL 1.1.0 or later is not in "
                                         "this process; build it with that");
    return 0;
}

static int fill(dv_tls *tls, const dv_tls_files *files, char *message, size_t message_bytes) {
    if (!files->ca_file || !files->certificate_file || !files->key_file)
        return WRONG(DIVVY_EINVAL, "tls_ca_file, tls_certificate_file and tls_key_file go together; one is missing");
    int error = look_up(tls, message, message_bytes);
    if (error) return error;
    tls->ca_file = strdup(files->ca_file);
    tls->certificate_file = strdup(files->certificate_file);
    tls->key_file = strdup(files->key_file);
    if (!tls->ca_file || !tls->certificate_file || !tls->key_file)
        return WRONG(DIVVY_ENOMEM, "%s", divvy_strerror(DIVVY_ENOMEM));
    if (files->key_password_file) {
        const char *wrong = dv_secret_read(files->key_password_file, PASSWORD_BYTES_MAX, &tls->password);
        if (wrong) return WRONG(DIVVY_EINVAL, "tls_key_password_file %.256s: %s", files->key_password_file, wrong);
    }
    error = check_names(tls, message, message_bytes);
    if (error) return error;
    void *context = dv_tls_context(tls, message, message_bytes);
    if (!context) return DIVVY_EINVAL;
    tls->openssl->SSL_CTX_free(context);
    return check_default_store(tls, message, message_bytes);
}

int dv_tls_new(dv_tls **out, const dv_tls_files *files, char *message, size_t message_bytes) {
    *out = NULL;
    dv_tls *tls = calloc(1, sizeof *tls);
    if (!tls) return WRONG(DIVVY_ENOMEM, "%s", divvy_strerror(DIVVY_ENOMEM));
    atomic_init(&tls->refs, 1);
    int error = fill(tls, files, message, message_bytes);
    if (error) dv_tls_unref(tls);
    else *out = tls;
    return error;
}

dv_tls *dv_tls_ref(dv_tls *tls) {
    atomic_fetch_add(&tls->refs, 1);
    return tls;
}

void dv_tls_unref(dv_tls *tls) {
    if (!tls || atomic_fetch_sub(&tls->refs, 1) != 1) return;
    free(tls->ca_file);
    free(tls->certificate_file);
    free(tls->key_file);
    dv_secret_free(tls->password);
    free(tls);
}

/* ---- the handle ---- */

static pthread_mutex_t init_mutex = PTHREAD_MUTEX_INITIALIZER;

/* In the child of a fork: one of the parent's threads may have held it. */
static void forget_init(void) {
    pthread_mutex_init(&init_mutex, NULL);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget_init);
}

/* The native client splits the text by strtok(), which is for one thread at a time. It has no parameter for a log
 * callback either, and would write its first lines to stderr: until it has ours, it is told to write none. */
zhandle_t *dv_tls_open(const dv_tls *tls, const char *servers, watcher_fn watcher, int timeout_ms, void *context,
                       int flags, log_callback_fn log) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    /* With no password it would ask on the terminal for that of a key that has become encrypted. */
    static const char no_password[] = "none";
    pthread_once(&once, watch_forks);
    const char *password = tls->password ? tls->password : no_password;
    size_t bytes = strlen(tls->ca_file) + strlen(tls->certificate_file) + strlen(tls->key_file) + strlen(password) + 4;
    char *text = malloc(bytes);
    if (!text) return NULL;
    snprintf(text, bytes, "%s,%s,%s,%s", tls->ca_file, tls->certificate_file, tls->key_file, password);
    pthread_mutex_lock(&init_mutex);
    ZooLogLevel level = logLevel;
    zoo_set_debug_level((ZooLogLevel)0);
    zhandle_t *handle = tls->init(servers, text, watcher, timeout_ms, NULL, context, flags);
    if (handle) zoo_set_log_callback(handle, log);
    zoo_set_debug_level(level);
    pthread_mutex_unlock(&init_mutex);
    dv_secret_free(text);
    return handle;
}
