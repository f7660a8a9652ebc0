/* Registry: the object, opened and closed. SPDX-License-Identifier: Apache-2.0 */
#include "registry/registry.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/config.h"
#include "base/container.h"
#include "base/utf8.h"
#include "registry/service.h"
#include "registry/watch.h"
#include "znode/path.h"

static const char default_path[] = "/divvy/services";
enum { TEXT_BYTES_MAX = 1024 };

/* ---- metrics ---- */

static void count_entry(void *context, dv_slot *slot) {
    *(uint64_t *)context += slot->current != NULL;
}

static void gather(dv_metrics_source *source, dv_metrics *to, int64_t now) {
    const divvy_registry *registry = DV_CONTAINER(source, divvy_registry, metrics);
    (void)now;
    for (const dv_service *s = registry->services; s; s = s->next) to->announced += s->entry != NULL;
    dv_registry_view_each(registry, NULL, count_entry, &to->entries);
}

/* ---- the session ---- */

static void tell_services(divvy_registry *registry, dv_session_event event, int64_t now) {
    assert(!registry->next_service);
    for (dv_service *s = registry->services; s; s = registry->next_service) {
        registry->next_service = s->next;
        dv_service_hear(s, event, now);
    }
    registry->next_service = NULL;
}

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    divvy_registry *registry = DV_CONTAINER(listener, divvy_registry, listener);
    dv_object_ref(&registry->object);
    if (event == DV_SESSION_CLOSED) registry->ended = true;
    dv_registry_time_hear(registry, event, now);
    tell_services(registry, event, now);
    dv_object_unref(&registry->object);
}

/* ---- life ---- */

static void free_parts(divvy_registry *registry) {
    free(registry->root);
    free(registry->host);
    free(registry->nonce);
    dv_registry_forget_warned(registry);
    free(registry);
}

static void release(dv_object *object) {
    divvy_registry *registry = (divvy_registry *)(void *)object;
    assert(!registry->services && !registry->time_waits);
    dv_unlisten(object->client, &registry->listener);
    free_parts(registry);
}

static int check_text(const divvy_client *client, const char *what, const char *text) {
    if (!text) return 0;
    int error = dv_client_check_text(client, "registry", what, text, TEXT_BYTES_MAX);
    if (error) return error;
    if (!dv_is_utf8(text)) return dv_fail(client, DIVVY_EINVAL, "registry: the %s is not valid UTF-8", what);
    return 0;
}

static int check(const divvy_client *client, const divvy_registry_config *c) {
    const struct {
        const char *name;
        double value, most;
    } numbers[] = {{"pid", (double)c->pid, 9e15},
                   {"heartbeat_jitter", c->heartbeat_jitter, 0.5},
                   {"poll_ms", (double)c->poll_ms, (double)DV_TIME_MAX_MS},
                   {"preserve_share", c->preserve_share, 0.999999},
                   {"preserve_settle_ms", (double)c->preserve_settle_ms, (double)DV_TIME_MAX_MS},
                   {"preserve_max_ms", (double)c->preserve_max_ms, (double)DV_TIME_MAX_MS}};
    const char *reason = NULL;
    int error = dv_client_end_error(client);
    if (error) return dv_fail_plainly(client, error);
    if (dv_path_check(c->path, &reason) != 0)
        return dv_fail(client, DIVVY_EINVAL, "registry: the path \"%.200s\" %s", c->path, reason);
    if (strcmp(c->path, "/") == 0)
        return dv_fail(client, DIVVY_EINVAL, "registry: the path is \"/\", which is no place");
    error = check_text(client, "host", c->host);
    if (!error) error = check_text(client, "nonce", c->nonce);
    for (size_t i = 0; !error && i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].value >= 0 && numbers[i].value <= numbers[i].most) continue; /* No NaN is. */
        error = dv_fail(client, DIVVY_EINVAL, "registry: %s is %g; it may be 0 to %g", numbers[i].name,
                        numbers[i].value, numbers[i].most);
    }
    return error;
}

/* The same for all registries of this process, and another after a fork. Not of the seam's random bytes: which client's
 * they were would depend on what the process did before, and no history in simulation would be like another. */
static char *process_nonce(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t random[2];
    static unsigned fork_count;
    static bool drawn;
    char *text = NULL;
    pthread_mutex_lock(&mutex);
    if (!drawn || fork_count != dv_fork_count()) {
        drawn = getrandom(random, sizeof random, 0) == (ssize_t)sizeof random;
        fork_count = dv_fork_count();
    }
    if (!drawn || asprintf(&text, "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]) < 0)
        text = NULL;
    pthread_mutex_unlock(&mutex);
    return text;
}

static char *host_name(void) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return strdup(host[0] && dv_is_utf8(host) ? host : "localhost");
}

static int make(divvy_registry **out, divvy_client *client, const divvy_registry_config *c) {
    divvy_registry *registry = calloc(1, sizeof *registry);
    if (!registry) return DIVVY_ENOMEM;
    registry->config = *c;
    registry->root = dv_client_path(client, c->path);
    registry->host = c->host ? strdup(c->host) : host_name();
    registry->nonce = c->nonce ? strdup(c->nonce) : process_nonce();
    if (!c->pid) registry->config.pid = (int64_t)getpid();
    if (!registry->root || !registry->host || !registry->nonce) {
        free_parts(registry);
        return DIVVY_ENOMEM;
    }
    registry->config.path = registry->config.host = registry->config.nonce = NULL; /* the caller's */
    registry->listener = (dv_listener){.hear = hear};
    registry->metrics.gather = gather;
    dv_object_init(&registry->object, client, release);
    dv_listen(client, &registry->listener);
    dv_metrics_source_add(client, &registry->metrics);
    client->metrics.registry_used = true;
    *out = registry;
    return 0;
}

int divvy_registry_open(divvy_registry **out, divvy_client *client, const divvy_registry_config *config) {
    static const divvy_registry_config defaults = DIVVY_REGISTRY_CONFIG_INIT;
    divvy_registry_config c;
    if (out) *out = NULL;
    if (!out) return dv_fail(client, DIVVY_EINVAL, "registry: out is NULL");
    int error = dv_client_enter(client);
    if (error) return error;
    if (dv_config_copy(&c, sizeof c, &defaults, config ? config : &defaults) != 0)
        error = dv_fail(client, DIVVY_EINVAL, "registry: the config was not made with DIVVY_REGISTRY_CONFIG_INIT");
    if (!error && !c.path) c.path = default_path;
    if (!error) error = check(client, &c);
    if (!error) error = dv_fail_plainly(client, make(out, client, &c));
    dv_client_unlock(client);
    return error;
}

static void end(dv_object *object, bool waits) {
    divvy_registry *registry = (divvy_registry *)(void *)object;
    divvy_client *client = object->client;
    registry->ending = true;
    dv_metrics_source_remove(&registry->metrics);
    dv_registry_end_watches(registry, waits);
    tell_services(registry, DV_SESSION_CLOSING, dv_client_now(client));
    dv_client_changed(client); /* Calls that wait see that it ends. */
}

void divvy_registry_close(divvy_registry *registry) {
    if (registry) dv_object_end(&registry->object, end, NULL);
}

void divvy_registry_close_async(divvy_registry *registry, void (*gone)(void *user), void *user) {
    if (registry) dv_object_end(&registry->object, end, &(dv_farewell){gone, user});
}
