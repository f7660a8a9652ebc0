/* Looking a server's name up, at moments that matter. SPDX-License-Identifier: Apache-2.0
 *
 * Shows the resolver and the native client at one moment, which only a wrapped resolver brings about. */
#include <netdb.h>

#include "client_manual_fixture.h"
#include "lib/expire.h"

/* ---- a name server that answers when it is told to ---- */

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool held;        /* questions wait */
static unsigned waiting; /* so many */

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out) {
    bool is_question = strcmp(node, "localhost") == 0 && !(hints->ai_flags & AI_NUMERICHOST);
    pthread_mutex_lock(&mutex);
    waiting += is_question;
    while (held && is_question) pthread_cond_wait(&changed, &mutex);
    waiting -= is_question;
    pthread_mutex_unlock(&mutex);
    return __real_getaddrinfo(node, service, hints, out);
}

static void hold(bool value) {
    pthread_mutex_lock(&mutex);
    held = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static bool is_asked(void) {
    pthread_mutex_lock(&mutex);
    bool asked = waiting > 0;
    pthread_mutex_unlock(&mutex);
    return asked;
}

/* The native client's thread asks for this when it tells of a session, and tells right after. */
struct sockaddr *__real_zookeeper_get_connected_host(zhandle_t *handle, struct sockaddr *out, socklen_t *bytes);

static atomic_bool told_of_the_end;

struct sockaddr *__wrap_zookeeper_get_connected_host(zhandle_t *handle, struct sockaddr *out, socklen_t *bytes) {
    if (zoo_state(handle) == ZOO_EXPIRED_SESSION_STATE) atomic_store(&told_of_the_end, true);
    return __real_zookeeper_get_connected_host(handle, out, bytes);
}

/* An answer that comes right behind the end of the session is for nobody: the next session looks for itself. */
TEST(test_answer_behind_the_end) {
    witness w;
    char name[64];
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    snprintf(name, sizeof name, "localhost%s", strchr(dv_test_proxy_address(proxy), ':'));
    divvy_client_config config = manual_config(&w, name);
    config.session_timeout_ms = 60000;
    divvy_client *client = open_connected(&config);
    int64_t session = divvy_client_session_id(client);
    hold(true);
    dv_test_proxy_cut(proxy);
    POLL_UNTIL(client, divvy_client_state(client) == DIVVY_SUSPENDED);
    assert_true(DV_WAIT(is_asked(), PATIENCE_MS));
    while (divvy_client_process(client, 0) > 0) continue;
    assert_true(dv_test_expire(hosts(), session, NULL));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(atomic_load(&told_of_the_end), PATIENCE_MS));
    assert_true(readable(client, PATIENCE_MS));
    unsigned before = threads();
    hold(false);
    assert_true(DV_WAIT(threads() < before, PATIENCE_MS)); /* The answer is in the queue behind that. */
    POLL_UNTIL(client, witness_told(&w, "CSLNC"));
    assert_int_not_equal(divvy_client_session_id(client), session);
    divvy_client_close(client);
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

TEST_GROUP(set_up, stop_server);
