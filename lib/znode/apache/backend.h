/* How the client makes its backend; free of the native client's header. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_BACKEND_H
#define DV_BACKEND_H

#include <signal.h>

#include "znode/znode.h"

typedef struct {
    const char *hosts;
    int64_t session_timeout_ms;
    const char *auth_scheme, *auth;
    int acl; /* resolved: DIVVY_ACL_OPEN, _CREATOR or _READABLE */
    dv_sink sink;
    void (*on_session)(void *context, const dv_session_news *news, int64_t now);
    void (*on_log)(void *context, int level, const char *message);
    bool wants_log;
    void *context;
} dv_apache_config;

/* 0, or DIVVY_EINVAL with *reason about hosts, or DIVVY_ENOMEM. Posts only after dv_apache_start(). */
int dv_apache_new(dv_znode **out, const dv_apache_config *config, const char **reason);
/* Begin to resolve names and connect. 0, or DIVVY_ENOMEM, DIVVY_ESYSTEM. */
int dv_apache_start(dv_znode *znode);
/* The chroot that the hosts string named: "" or "/a/b". */
const char *dv_apache_chroot(const dv_znode *znode);

/* All signals blocked while threads are started, so that none of ours takes the host's. */
void dv_signals_block(sigset_t *old_set);
void dv_signals_restore(const sigset_t *old_set);

#endif
