/* News of a session, from any thread to the client's queue. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "znode/apache/apache.h"

typedef struct {
    dv_event event;
    dv_apache *apache;
    const dv_shared *shared; /* of whose handle they are */
    dv_session_news news;
    dv_server_address server; /* which one it is connected to */
} news_event;

divvy_session_state dv_apache_session_state(int native_state) {
    if (native_state == ZOO_CONNECTED_STATE) return DIVVY_CONNECTED;
    if (native_state == ZOO_EXPIRED_SESSION_STATE) return DIVVY_LOST;
    if (native_state == ZOO_AUTH_FAILED_STATE) return DIVVY_AUTH_FAILED;
    return DIVVY_SUSPENDED;
}

const char *dv_apache_demand(const dv_apache *apache) {
    if (apache->shared)
        return "the servers demand credentials (enforce.auth, sessionRequireClientSASLAuth), and the host's handle has "
               "given none that they take: zoo_add_auth()";
    if (apache->auth || apache->sasl || apache->tls)
        return "the servers demand other credentials than were given; their enforce.auth.schemes or "
               "sessionRequireClientSASLAuth says which";
    return "the servers demand credentials (enforce.auth, sessionRequireClientSASLAuth), and none were given: set "
           "auth_scheme and auth, or sasl_user (--auth-file, or --sasl-user, of the command)";
}

static void run_news(dv_event *event, int64_t now) {
    news_event *e = (news_event *)(void *)event;
    dv_apache *apache = e->apache;
    dv_session_news news = e->news;
    dv_server_address server = e->server;
    bool stale = e->shared != apache->shared; /* It has moved to another handle since. */
    free(e);
    if (!stale) apache->take_news(apache, &news, &server, now);
}

void dv_apache_post_news(dv_apache *apache, zhandle_t *handle, const dv_session_news *news) {
    assert(apache->take_news);
    news_event *e = malloc(sizeof *e);
    if (!e) abort(); /* A session event that is not told could make two owners: stopping here is the safe end. */
    *e = (news_event){.event.run = run_news, .apache = apache, .shared = apache->shared, .news = *news};
    e->server.bytes = sizeof e->server.address;
    if (!handle || !zookeeper_get_connected_host(handle, (struct sockaddr *)&e->server.address, &e->server.bytes))
        e->server.bytes = 0;
    apache->znode.sink.post(apache->znode.sink.queue, &e->event);
}
