/* TLS to the servers: the files, and the native client's handle. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/tls.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
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

/* The files that are needed, in the order in which the native client takes them. */
enum { CA, CERTIFICATE, KEY, FILES };
static const char *const names[FILES] = {"tls_ca_file", "tls_certificate_file", "tls_key_file"};

struct dv_tls {
    atomic_uint refs;
    char *files[FILES];
    char *password; /* NULL: none */
    const dv_openssl *openssl;
    init_ssl_fn *init;
};

#define WRONG(error, ...) (dv_tls_say(message, __VA_ARGS__), (error))

void dv_tls_say(char *message, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, DV_TLS_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
}

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
static int check_default_store(const dv_tls *tls, char *message) {
    static const char what_to_do[] =
        "the native client would trust these besides tls_ca_file, and checks no names; start the program with "
        "SSL_CERT_FILE set to tls_ca_file, and SSL_CERT_DIR to a folder that does not exist";
    const char *file = secure_getenv("SSL_CERT_FILE"), *folders = secure_getenv("SSL_CERT_DIR");
    if (!file) file = tls->openssl->X509_get_default_cert_file();
    if (!folders) folders = tls->openssl->X509_get_default_cert_dir();
    if (!trusts_only(file, tls->files[CA]))
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
    const char *text = dv_openssl_reason(ssl);
    return text ? text : "no reason is given";
}

static bool is_readable(const char *what, const char *path, char *message) {
    FILE *file = fopen(path, "re");
    bool readable = file && fgetc(file) != EOF;
    if (!file) dv_tls_say(message, "%s %.256s cannot be opened: %s", what, path, strerrordesc_np(errno));
    else if (!readable) dv_tls_say(message, "%s %.256s is empty, or no file", what, path);
    if (file) fclose(file);
    return readable;
}

static bool load(const dv_tls *tls, void *context, char *message) {
    const dv_openssl *ssl = tls->openssl;
    int wrong = FILES;
    const char *hint = "";
    for (int i = 0; i < FILES; i++) {
        if (!is_readable(names[i], tls->files[i], message)) return false;
    }
    ssl->ERR_clear_error();
    ssl->SSL_CTX_set_verify(context, VERIFY_PEER, NULL);
    ssl->SSL_CTX_set_default_passwd_cb(context, give_password);
    ssl->SSL_CTX_set_default_passwd_cb_userdata(context, tls->password);
    if (ssl->SSL_CTX_load_verify_locations(context, tls->files[CA], NULL) != 1) {
        wrong = CA;
    } else if (ssl->SSL_CTX_use_certificate_chain_file(context, tls->files[CERTIFICATE]) != 1) {
        wrong = CERTIFICATE;
    } else if (ssl->SSL_CTX_use_PrivateKey_file(context, tls->files[KEY], FILETYPE_PEM) != 1) {
        wrong = KEY;
        hint = tls->password ? "; it must be of the certificate, and its password that of tls_key_password_file"
                             : "; it must be of the certificate, and if it is encrypted, give tls_key_password_file";
    } else if (ssl->SSL_CTX_check_private_key(context) != 1) {
        wrong = KEY, hint = "; it must be of the certificate";
    }
    if (wrong == FILES) return true;
    dv_tls_say(message, "%s %.256s cannot be used: %s%s", names[wrong], tls->files[wrong], reason(ssl), hint);
    return false;
}

void *dv_tls_context(const dv_tls *tls, char *message) {
    void *context = tls->openssl->SSL_CTX_new(tls->openssl->TLS_client_method());
    if (!context) dv_tls_say(message, "OpenSSL gives no context: %s", reason(tls->openssl));
    if (!context || load(tls, context, message)) return context;
    tls->openssl->SSL_CTX_free(context);
    return NULL;
}

const char *dv_tls_ca_file(const dv_tls *tls) {
    return tls->files[CA];
}

/* The native client takes all of them in one text, which it splits at commas. */
static int check_names(const dv_tls *tls, char *message) {
    for (int i = 0; i < FILES; i++) {
        if (strchr(tls->files[i], ','))
            return WRONG(DIVVY_EINVAL, "the file name %.256s has a comma, which the native client takes for its end",
                         tls->files[i]);
    }
    if (tls->password && strchr(tls->password, ','))
        return WRONG(DIVVY_EINVAL, "the password in tls_key_password_file has a comma, which the native client takes "
                                   "for its end; protect the key with a password that has none");
    return 0;
}

/* ---- the object ---- */

static int look_up(dv_tls *tls, char *message) {
    if (!dv_symbol_find(&tls->init, "zookeeper_init_ssl"))
        return WRONG(DIVVY_EUNSUPPORTED,
                     "this ZooKeeper C client (libzookeeper_mt) was built without TLS, as Debian's is; install one of "
                     "3.6 or later that was built with OpenSSL, or build it (docs/secure.md says how), and see that "
                     "this program loads it");
    tls->openssl = dv_openssl_find();
    if (!tls->openssl)
        return WRONG(DIVVY_EUNSUPPORTED, "this ZooKeeper C client can do TLS, but OpenSSL 1.1.0 or later is not in "
                                         "this process; build it with that");
    return 0;
}

static int fill(dv_tls *tls, const divvy_client_config *config, char *message) {
    const char *const given[FILES] = {config->tls_ca_file, config->tls_certificate_file, config->tls_key_file};
    const char *password_file = config->tls_key_password_file;
    if (!given[CA] || !given[CERTIFICATE] || !given[KEY])
        return WRONG(DIVVY_EINVAL, "tls_ca_file, tls_certificate_file and tls_key_file go together; one is missing");
    int error = look_up(tls, message);
    if (error) return error;
    for (int i = 0; i < FILES; i++) {
        if (!(tls->files[i] = strdup(given[i]))) return WRONG(DIVVY_ENOMEM, "%s", divvy_strerror(DIVVY_ENOMEM));
    }
    const char *wrong = password_file ? dv_secret_read(password_file, PASSWORD_BYTES_MAX, &tls->password) : NULL;
    if (wrong) return WRONG(DIVVY_EINVAL, "tls_key_password_file %.256s: %s", password_file, wrong);
    error = check_names(tls, message);
    if (error) return error;
    void *context = dv_tls_context(tls, message);
    if (!context) return DIVVY_EINVAL;
    tls->openssl->SSL_CTX_free(context);
    return check_default_store(tls, message);
}

int dv_tls_new(dv_tls **out, const divvy_client_config *config, char *message) {
    *out = NULL;
    dv_tls *tls = calloc(1, sizeof *tls);
    if (!tls) return WRONG(DIVVY_ENOMEM, "%s", divvy_strerror(DIVVY_ENOMEM));
    atomic_init(&tls->refs, 1);
    int error = fill(tls, config, message);
    if (error) dv_tls_unref(tls);
    else *out = tls;
    return error;
}

dv_tls *dv_tls_ref(dv_tls *tls) {
    if (tls) atomic_fetch_add(&tls->refs, 1);
    return tls;
}

void dv_tls_unref(dv_tls *tls) {
    if (!tls || atomic_fetch_sub(&tls->refs, 1) != 1) return;
    for (int i = 0; i < FILES; i++) free(tls->files[i]);
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
zhandle_t *dv_tls_open(const dv_tls *tls, const char *servers, watcher_fn watcher, int timeout_ms,
                       const clientid_t *key, void *context, log_callback_fn log) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    /* With no password it would ask on the terminal for that of a key that has become encrypted. */
    static const char no_password[] = "none";
    pthread_once(&once, watch_forks);
    const char *password = tls->password ? tls->password : no_password;
    char *text;
    if (asprintf(&text, "%s,%s,%s,%s", tls->files[CA], tls->files[CERTIFICATE], tls->files[KEY], password) < 0)
        return NULL;
    pthread_mutex_lock(&init_mutex);
    ZooLogLevel level = logLevel;
    zoo_set_debug_level((ZooLogLevel)0);
    zhandle_t *handle = tls->init(servers, text, watcher, timeout_ms, key, context, ZOO_NO_LOG_CLIENTENV);
    if (handle) zoo_set_log_callback(handle, log);
    zoo_set_debug_level(level);
    pthread_mutex_unlock(&init_mutex);
    dv_secret_free(text);
    return handle;
}
