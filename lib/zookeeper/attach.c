/* Clients on the session of a host's handle (H5). SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "client/client.h"
#include "divvy/zookeeper.h"
#include "znode/apache/shared.h"

/* At close: for the answers to what was sent last. */
enum { ANSWER_WAIT_MS = 500 };

/* The session timeouts that a config may ask for, at least and at most. A host's session may have any timeout. */
enum { TIMEOUT_MIN_MS = 100, TIMEOUT_MAX_MS = 3600000 };

static dv_apache *of(dv_znode *znode) {
    return (dv_apache *)(void *)znode;
}

/* ---- the backend ---- */

static int start(dv_znode *znode) {
    dv_apache *apache = of(znode);
    zhandle_t *handle = apache->handle;
    apache->handle = NULL;
    return dv_shared_enter(apache, handle);
}

static const char *get_servers(const dv_znode *znode, int *error) {
    (void)znode;
    *error = 0;
    return "the servers of the handle that the client is attached to";
}

static const char *get_chroot(const dv_znode *znode) {
    (void)znode;
    return ""; /* The handle's own is added by the native client, and is of no concern to us. */
}

static void leave_handle(dv_znode *znode) {
    dv_shared_leave(of(znode), true, ANSWER_WAIT_MS);
    of(znode)->handle = NULL; /* also where it was never started */
}

int dv_apache_attach(dv_znode **out, const dv_backend_config *config, const char **reason, void *context) {
    (void)reason;
    static const dv_znode_backend backend = {
        .submit = dv_apache_submit,
        .multi = dv_apache_multi,
        .unwatch = dv_watch_drop,
        .now_ms = dv_apache_now_ms,
        .random = dv_apache_random,
        .stats = dv_apache_stats,
        .servers = get_servers,
        .start = start,
        .chroot = get_chroot,
        .close = leave_handle,
        .abandon = dv_apache_abandon,
        .free = dv_apache_free,
    };
    *out = NULL;
    dv_apache *apache = calloc(1, sizeof *apache);
    if (!apache) return DIVVY_ENOMEM;
    dv_apache_init(apache, &backend, config);
    apache->znode.attached = true;
    apache->handle = context; /* until it is started */
    *out = &apache->znode;
    return 0;
}

/* ---- the public face ---- */

static int check_handle(divvy_client *client, const char *call, zhandle_t *handle) {
    if (!handle) return dv_fail(client, DIVVY_EINVAL, "%s: the handle is NULL", call);
    int state = zoo_state(handle);
    if (state == ZOO_EXPIRED_SESSION_STATE)
        return dv_fail(client, DIVVY_ELOST, "%s: the session of the handle has expired", call);
    if (state == ZOO_AUTH_FAILED_STATE)
        return dv_fail(client, DIVVY_EAUTH, "%s: the servers have refused the credentials of the handle", call);
    return 0;
}

static int64_t timeout_of(zhandle_t *handle) {
    int64_t timeout_ms = zoo_recv_timeout(handle);
    return timeout_ms < TIMEOUT_MIN_MS ? TIMEOUT_MIN_MS : timeout_ms > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS : timeout_ms;
}

int divvy_client_attach(divvy_client **out, zhandle_t *handle, const divvy_client_config *config) {
    static const divvy_client_config defaults = DIVVY_CLIENT_CONFIG_INIT;
    if (!out) return dv_fail(NULL, DIVVY_EINVAL, "attach: out is NULL");
    *out = NULL;
    int error = check_handle(NULL, "attach", handle);
    if (error) return error;
    divvy_client_config c;
    error = dv_config_copy(&c, sizeof c, &defaults, config ? config : &defaults);
    if (error) return dv_fail(NULL, error, "attach: the config was not made with DIVVY_CLIENT_CONFIG_INIT");
    if (c.tls_ca_file || c.tls_certificate_file || c.tls_key_file || c.tls_key_password_file || c.sasl_mechanism ||
        c.sasl_user || c.sasl_password_file || c.sasl_service || c.sasl_host)
        return dv_fail(NULL, DIVVY_EINVAL,
                       "attach: tls_* and sasl_* are of no use for a handle that is open; open it by "
                       "zookeeper_init_ssl() or zookeeper_init_sasl()");
    if (c.death_watch)
        return dv_fail(
            NULL, DIVVY_EINVAL,
            "attach: death_watch is refused, since the session is the host's to end; set it on a client that "
            "opens its own");
    /* These are the host's business: what they would be is of no effect, and must not be refused either. */
    c.hosts = "127.0.0.1:2181";
    c.size = sizeof c; /* A later release's is longer. */
    c.session_timeout_ms = timeout_of(handle);
    /* divvy cannot see whether the handle has credentials, so the host has to say which list it wants. */
    if (c.acl == DIVVY_ACL_AUTO) c.acl = DIVVY_ACL_OPEN;
    c.auth_scheme = "digest";
    c.auth = ":";
    return divvy_private_client_open(out, &c, dv_apache_attach, handle);
}

/* Gives up what the old session still owed: divvy never asks that handle for anything again. */
static void leave_old_handle(divvy_client *client, int64_t now) {
    dv_apache *apache = of(client->znode);
    if (apache->state != DIVVY_LOST) {
        /* The client gave up by its clock; the host, which knows better, says that the session is over. */
        apache->state = DIVVY_LOST;
        dv_session_news news = {.state = DIVVY_LOST};
        client->znode->on_session(client->znode->context, &news, now);
    }
    dv_watches_clear(&apache->watches);
    dv_apache_fail_all(apache, DIVVY_ELOST, now);
    dv_shared_leave(apache, false, 0);
    dv_loop_drain(client);
    assert(!apache->sent.first && !apache->waiting.first);
}

static int reattach(divvy_client *client, zhandle_t *handle) {
    if (client->life != DV_CLIENT_OPEN) return dv_fail_plainly(client, DIVVY_ECLOSED);
    if (!client->znode->attached) return dv_fail(client, DIVVY_EINVAL, "reattach: the client has a session of its own");
    if (!handle) return dv_fail(client, DIVVY_EINVAL, "reattach: the handle is NULL");
    if (client->state != DIVVY_LOST) return dv_fail(client, DIVVY_ESTATE, "reattach: the session is not lost");
    int error = check_handle(client, "reattach", handle);
    if (error) return error;
    dv_apache *apache = of(client->znode);
    if (dv_shared_is_on(apache, handle))
        return dv_fail(client, DIVVY_ESTATE,
                       "reattach: the client is on this handle, and goes on when its old nodes are gone");
    leave_old_handle(client, dv_client_now(client));
    assert(!apache->shared && !apache->handle);
    apache->state = DIVVY_CONNECTING;
    error = dv_shared_enter(apache, handle);
    if (error) {
        apache->state = DIVVY_LOST;
        return dv_fail_plainly(client, error);
    }
    dv_session_reopened(client);
    return 0;
}

int divvy_client_reattach(divvy_client *client, zhandle_t *handle) {
    int error = dv_client_enter(client);
    if (error) return error;
    error = reattach(client, handle);
    dv_client_unlock(client);
    return error;
}
