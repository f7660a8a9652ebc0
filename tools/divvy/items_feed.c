/* A feed of items: a list that changes. SPDX-License-Identifier: Apache-2.0 */
#include "items_feed.h"

#include <stdlib.h>

#include <divvy/divvy.h>

#include "command.h"
#include "connection.h"
#include "look.h"

/* How long the children of a znode stand still before they count, at most; how soon it is asked for again after it
 * could not be read; and how soon a list is told again that could not be used. */
enum { STILL_MS = 1000, STILL_MAX_MS = 4000, AGAIN_MS = 1000, TELL_AGAIN_MS = 3000 };

const char *dv_items_feed_name(const dv_items_feed *feed) {
    return feed->command ? "--items-from-command" : feed->znode;
}

/* Takes over a list that is in order. */
static void take(dv_items_feed *feed, dv_item_list *list) {
    feed->failed = false;
    feed->fresh = feed->fresh || feed->again || !dv_item_list_equal(list, &feed->list);
    feed->again = false;
    dv_item_list_free(&feed->list);
    feed->list = *list;
    *list = (dv_item_list){0};
}

static void fail(dv_items_feed *feed) {
    feed->failed = true;
    if (feed->list.count) dv_command_tell(DIVVY_LOG_WARN, "%s: the items stay as they are", dv_items_feed_name(feed));
}

/* ---- a command ---- */

static void step_command(dv_items_feed *feed) {
    dv_item_list list = {0};
    int64_t now_ms = dv_session_now_ms();
    if (!feed->run.process && now_ms >= feed->due_ms) {
        feed->due_ms = now_ms + feed->interval_ms;
        if (dv_items_run_begin(&feed->run, feed->command) != 0) fail(feed);
    }
    if (!feed->run.process) return;
    dv_items_outcome outcome = dv_items_run_look(&feed->run, &list);
    if (outcome == DV_ITEMS_TOLD) take(feed, &list);
    else if (outcome == DV_ITEMS_FAILED) fail(feed);
}

/* ---- a znode ---- */

int dv_items_of_children(dv_item_list *list, const char *const *children, size_t count, const char *shown) {
    char **names = calloc(count + 1, sizeof *names);
    bool complete = names;
    for (size_t i = 0; complete && i < count; i++) complete = (names[i] = dv_look_name_of(children[i])) != NULL;
    int error = -1;
    if (complete) error = dv_item_list_of(list, (const char *const *)names, count, shown);
    else dv_command_say("out of memory");
    for (size_t i = 0; names && i < count; i++) free(names[i]);
    free(names);
    return error;
}

static void on_changed(void *owner, int64_t now) {
    (void)owner;
    (void)now;
}

static void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    dv_items_feed *feed = owner;
    (void)pzxid;
    (void)now;
    dv_item_list_free(&feed->read);
    feed->error = 0;
    if (dv_items_of_children(&feed->read, names, count, feed->znode) != 0) fail(feed);
}

static void on_failed(void *owner, int error, int64_t now) {
    dv_items_feed *feed = owner;
    (void)now;
    if (error == feed->error) return;
    feed->error = error;
    dv_command_say("%s%s cannot be read: %s", feed->list.count ? "warning: " : "", feed->znode, divvy_strerror(error));
    fail(feed);
}

static void on_gone(void *owner, int64_t now) {
    dv_items_feed *feed = owner;
    (void)now;
    feed->watch = NULL;
    feed->due_ms = dv_session_now_ms() + AGAIN_MS;
}

static void begin_watching(dv_items_feed *feed) {
    static const dv_patience patience = {STILL_MS, STILL_MS, STILL_MAX_MS};
    static const dv_patient_watch_events events = {
        .changed = on_changed, .settled = on_settled, .failed = on_failed, .gone = on_gone};
    if (dv_client_enter(feed->client) != 0) return;
    feed->watch = dv_patient_watch_start(feed->client, feed->path, &patience, &events, feed);
    dv_client_unlock(feed->client);
    if (!feed->watch) feed->due_ms = dv_session_now_ms() + AGAIN_MS;
}

static void step_znode(dv_items_feed *feed) {
    if (!feed->watch && dv_session_now_ms() >= feed->due_ms) begin_watching(feed);
    if (feed->read.count) take(feed, &feed->read);
}

/* ---- both ---- */

int dv_items_feed_open(dv_items_feed *feed, divvy_client *client) {
    feed->client = client;
    feed->run.output_fd = -1;
    if (!feed->znode) return 0;
    feed->path = dv_client_path(client, feed->znode);
    return feed->path ? 0 : -1;
}

void dv_items_feed_close(dv_items_feed *feed) {
    dv_shell_run_forget(&feed->run);
    dv_item_list_free(&feed->list);
    dv_item_list_free(&feed->read);
    free(feed->path);
    *feed = (dv_items_feed){.command = NULL};
}

bool dv_items_feed_step(dv_items_feed *feed) {
    if (feed->command) step_command(feed);
    else if (feed->znode) step_znode(feed);
    if (feed->again_ms && dv_session_now_ms() >= feed->again_ms) feed->fresh = true;
    bool fresh = feed->fresh && feed->list.count;
    if (fresh) feed->fresh = false;
    if (fresh) feed->again_ms = 0;
    return fresh;
}

void dv_items_feed_tell_again(dv_items_feed *feed) {
    feed->again_ms = dv_session_now_ms() + TELL_AGAIN_MS;
}

void dv_items_feed_hurry(dv_items_feed *feed) {
    feed->due_ms = 0;
    feed->error = 0;
    if (feed->command) feed->again = true;
    else feed->fresh = true;
}

int dv_items_feed_fd(const dv_items_feed *feed) {
    return dv_shell_run_fd(&feed->run);
}

static int64_t left_ms(int64_t at_ms) {
    int64_t left = at_ms - dv_session_now_ms();
    return left > 0 ? left : 0;
}

int64_t dv_items_feed_next_ms(const dv_items_feed *feed) {
    int64_t next_ms = feed->again_ms ? left_ms(feed->again_ms) : -1;
    if (feed->run.process) return dv_session_sooner(next_ms, dv_shell_run_until_ms(&feed->run));
    if (feed->read.count || (feed->fresh && feed->list.count)) return 0;
    if (feed->watch || (!feed->command && !feed->znode)) return next_ms;
    return dv_session_sooner(next_ms, left_ms(feed->due_ms));
}
