/* A cache whose entries are plain texts, and what was told of them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CACHE_FIXTURE_H
#define DV_CACHE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"
#include "registry/cache_internal.h"
#include "wait.h"

#define ROOT "/r"

/* The changes of the view since the last look: "+a/x=1" came, "a/x=1>2" was written, "-a/x=2" went, "~a/x=2" went
 * and is kept, "a/x~2>3" came back; each followed by a space. */
static struct {
    dv_cache *cache;
    char log[65536];
    size_t parsed, gone, shown; /* shown: entries in the view */
    bool quiet;                 /* nothing is written into the log */
    void (*check)(const dv_slot *slot, const dv_cached *before, const dv_cached *after); /* may be NULL */
} told;

static void *parse_text(void *owner, const char *role, const char *id, const dv_reply *reply) {
    assert_ptr_equal(owner, &told);
    assert_non_null(role);
    assert_non_null(id);
    told.parsed++;
    char *text = strndup(reply->data ? reply->data : "", reply->data_bytes);
    if (strncmp(text, "bad", 3) != 0) return text;
    free(text);
    return NULL;
}

static void *mark_text(void *owner, const void *entry) {
    assert_ptr_equal(owner, &told);
    return strdup(entry);
}

static bool is_healthy_text(void *owner, const void *entry) {
    assert_ptr_equal(owner, &told);
    return strncmp(entry, "sick", 4) != 0;
}

/* Logs a change of the view. There must be a difference to what was told before. */
static void on_view_changed(void *owner, dv_slot *slot, const dv_cached *shown) {
    assert_ptr_equal(owner, &told);
    assert_true(shown != slot->current);
    dv_cached *before = slot->told[DV_VIEW_ROLE], *after = slot->current;
    assert_true(before != after);
    if (told.check) told.check(slot, before, after);
    slot->told[DV_VIEW_ROLE] = dv_cached_ref(after);
    if (!before) told.shown++;
    if (!after) told.shown--;
    size_t used = strlen(told.log);
    char *end = told.log + used;
    size_t room = sizeof told.log - used;
    const char *role = slot->node.role->dir.node.name, *id = slot->node.name;
    if (told.quiet) *end = '\0';
    else if (!before) snprintf(end, room, "+%s/%s=%s ", role, id, (char *)after->entry);
    else if (!after) snprintf(end, room, "-%s/%s%s%s ", role, id, before->preserved ? "~" : "=", (char *)before->entry);
    else if (after->preserved) snprintf(end, room, "~%s/%s=%s ", role, id, (char *)after->entry);
    else
        snprintf(end, room, "%s/%s%s%s>%s ", role, id, before->preserved ? "~" : "=", (char *)before->entry,
                 (char *)after->entry);
    dv_cached_unref(before);
}

static void on_cache_gone(void *owner) {
    assert_ptr_equal(owner, &told);
    told.gone++;
    told.cache = NULL;
}

static const dv_cache_owner text_owner = {parse_text,      mark_text,     free, is_healthy_text,
                                          on_view_changed, on_cache_gone, free};

static const dv_cache_options usual_options = {
    .watch_bytes = 100000, .poll_ms = 5000, .preserve_settle_ms = 5000, .preserve_max_ms = 60000};

/* Asserts what was told since the last look. */
static inline void expect_told(const char *text) {
    assert_string_equal(told.log, text);
    told.log[0] = '\0';
}

static inline void begin_cache(divvy_client *client, const dv_cache_options *options, const char *role) {
    memset(&told, 0, sizeof told);
    dv_client_lock(client);
    told.cache = dv_cache_start(client, ROOT, options ? options : &usual_options, &text_owner, &told);
    assert_non_null(told.cache);
    assert_int_equal(dv_cache_follow(told.cache, role, NULL), 0);
    dv_client_unlock(client);
}

static inline void end_cache(divvy_client *client) {
    dv_client_lock(client);
    if (told.cache) dv_cache_stop(told.cache);
    dv_client_unlock(client);
}

static inline bool is_primed(const char *role) {
    return dv_cache_is_primed(told.cache, role);
}

#endif
