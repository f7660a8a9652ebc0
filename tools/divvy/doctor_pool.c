/* The facts about a session and a pool that `divvy doctor` reads. SPDX-License-Identifier: Apache-2.0
 *
 * Reads the pool as `divvy status` does, and besides: access lists, the notes of members that hand something over, and
 * how long a read takes. */
#include "doctor_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <divvy/divvy.h>

#include "client/client.h"
#include "plan/member_name.h"
#include "status_plan.h"
#include "status_room.h"
#include "znode/path.h"

/* The most items whose access lists are read; those that nobody owns come first. */
enum { DIRECTORIES_MAX = 1000 };

static const char *const roots[DV_DOCTOR_ROOTS] = {NULL, "party", "locks", "plan", "notes"};

typedef struct {
    dv_doctor *doctor;
    dv_look *look;
    char *root; /* at the servers */
    char *notes;
    const size_t *note_members; /* whose note is the i-th that is read */
} survey;

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- the session ---- */

static char *root_path(void *context, size_t i) {
    (void)i;
    return strdup(((const survey *)context)->root);
}

static int take_nothing(void *context, size_t i, const dv_reply *reply) {
    (void)context;
    (void)i;
    (void)reply;
    return 0;
}

/* Reads one thing a few times, one read after the other. */
static int measure(survey *s) {
    dv_doctor *d = s->doctor;
    int error = 0;
    for (d->read_count = 0; !error && d->read_count < DV_DOCTOR_READS; d->read_count++) {
        dv_reads one = {DV_EXISTS, 1, root_path, take_nothing, s};
        int64_t began_us = now_us();
        error = dv_look_read(s->look, &one);
        d->read_us[d->read_count] = now_us() - began_us;
    }
    return error;
}

static void note_session(survey *s) {
    dv_doctor *d = s->doctor;
    const divvy_client *client = dv_look_client(s->look);
    if (!d->looked) d->connected_ms = dv_look_wall_ms();
    d->looked = true;
    d->session = divvy_client_session_id(client);
    d->granted_ms = atomic_load(&client->timeout_ms);
}

/* ---- access lists ---- */

static char *acl_path(void *context, size_t i) {
    const survey *s = context;
    return dv_look_path(s->look, s->doctor->acls[i].path);
}

static int take_acl(void *context, size_t i, const dv_reply *reply) {
    dv_doctor_acl *acl = &((const survey *)context)->doctor->acls[i];
    acl->error = reply->error;
    if (reply->error) return 0;
    acl->entries = (char **)calloc(reply->child_count + 1, sizeof *acl->entries);
    for (; acl->entries && acl->entry_count < reply->child_count; acl->entry_count++) {
        char *entry = strdup(reply->children[acl->entry_count]);
        if (!entry) return DIVVY_ENOMEM;
        acl->entries[acl->entry_count] = entry;
    }
    return acl->entries ? 0 : DIVVY_ENOMEM;
}

static int add_acl(dv_doctor *d, char *path, bool is_directory, size_t item) {
    if (!path) return DIVVY_ENOMEM;
    d->acls[d->acl_count++] = (dv_doctor_acl){.path = path, .is_directory = is_directory, .item = item};
    return 0;
}

static int add_directories(dv_doctor *d, const char *locks, bool owned) {
    int error = 0;
    for (size_t i = 0; !error && i < d->status.item_count && d->acl_count < DIRECTORIES_MAX + DV_DOCTOR_ROOTS; i++) {
        const dv_status_item *item = &d->status.items[i];
        if (item->there && (item->head != NULL) == owned) error = add_acl(d, dv_path_join(locks, item->node), true, i);
    }
    return error;
}

static int read_acls(survey *s) {
    dv_doctor *d = s->doctor;
    d->acls = calloc(DIRECTORIES_MAX + DV_DOCTOR_ROOTS + 1, sizeof *d->acls);
    char *locks = dv_path_join(d->path, "locks");
    int error = d->acls && locks ? 0 : DIVVY_ENOMEM;
    for (size_t i = 0; !error && i < DV_DOCTOR_ROOTS; i++)
        error = add_acl(d, roots[i] ? dv_path_join(d->path, roots[i]) : strdup(d->path), false, 0);
    if (!error) error = add_directories(d, locks, false);
    if (!error) error = add_directories(d, locks, true);
    free(locks);
    dv_reads acls = {DV_ACL, d->acl_count, acl_path, take_acl, s};
    return error ? error : dv_look_read(s->look, &acls);
}

/* ---- members, and their notes ---- */

static int read_settings(dv_doctor *d) {
    d->settings = calloc(d->status.member_count + 1, sizeof *d->settings);
    d->notes = calloc(d->status.member_count + 1, sizeof *d->notes);
    if (!d->settings || !d->notes) return DIVVY_ENOMEM;
    for (size_t i = 0; i < d->status.member_count; i++) {
        dv_member m = dv_member_parse(d->status.members[i].node); /* It changes nothing of it. */
        d->settings[i] = (dv_doctor_settings){m.has_set, m.set, m.max_moves, m.round_timeout_ms};
    }
    return 0;
}

static char *note_path(void *context, size_t i) {
    const survey *s = context;
    return dv_path_join(s->notes, s->doctor->status.members[s->note_members[i]].node);
}

static int take_note(void *context, size_t i, const dv_reply *reply) {
    const survey *s = context;
    dv_doctor_note *note = &s->doctor->notes[s->note_members[i]];
    const dv_plan *plan = dv_status_plan(&s->doctor->status);
    if (reply->error || !plan) return 0; /* A member that has none, or hides it, takes part in no handover. */
    int error = dv_note_parse(&note->note, reply->data, reply->data_bytes, NULL);
    if (error) return error == DIVVY_ENOMEM ? error : 0;
    note->there = dv_note_is_of(&note->note, plan->set);
    note->written_ms = reply->stat->mtime_ms;
    return 0;
}

/* Reads the notes of those who have an item that another is to have, and of those others. */
static int read_notes(survey *s) {
    const dv_status *status = &s->doctor->status;
    bool *wanted = calloc(status->member_count + 1, sizeof *wanted);
    size_t *members = calloc(status->member_count + 1, sizeof *members), count = 0;
    int error = wanted && members ? 0 : DIVVY_ENOMEM;
    for (size_t i = 0; !error && status->in_force && i < status->item_count; i++) {
        const dv_status_item *item = &status->items[i];
        size_t next = item->planned ? item->planned->member : DV_NO_MEMBER;
        if (item->member == DV_NO_MEMBER || item->member == next) continue;
        wanted[item->member] = true;
        if (next != DV_NO_MEMBER) wanted[next] = true;
    }
    for (size_t i = 0; !error && i < status->member_count; i++) {
        if (wanted[i]) members[count++] = i;
    }
    s->note_members = members;
    s->notes = dv_path_join(s->root, "notes");
    if (!s->notes) error = DIVVY_ENOMEM;
    dv_reads notes = {DV_GET, count, note_path, take_note, s};
    if (!error) error = dv_look_read(s->look, &notes);
    free(s->notes);
    free(wanted);
    free(members);
    return error;
}

/* ---- the plan's node, and what lists are like ---- */

static char *list_path(void *context, size_t i) {
    const survey *s = context;
    return dv_path_join(s->root, i == 0 ? "plan" : i == 1 ? "notes" : i == 2 ? "party" : "locks");
}

static size_t count_left_notes(const dv_doctor *d, const dv_reply *reply) {
    size_t left = 0;
    for (size_t i = 0; i < reply->child_count; i++) {
        bool there = false;
        for (size_t k = 0; k < d->status.member_count && !there; k++)
            there = strcmp(reply->children[i], d->status.members[k].node) == 0;
        left += !there;
    }
    return left;
}

static int take_list(void *context, size_t i, const dv_reply *reply) {
    dv_doctor *d = ((const survey *)context)->doctor;
    size_t bytes = 0;
    if (reply->error) return 0;
    for (size_t k = 0; k < reply->child_count; k++) bytes += dv_path_cost(reply->children[k]);
    if (i == 0) d->planned_ms = reply->stat->mtime_ms;
    else if (i == 1) d->left_notes = count_left_notes(d, reply);
    else if (i == 2) d->party_bytes = bytes;
    else d->locks_bytes = bytes;
    return 0;
}

/* Counts what the list of a pool's queues takes, as take_list() does. Those of kazoo's that stand inside of others are
 * not in it. */
static size_t count_list(const dv_status *status) {
    size_t bytes = 0;
    for (size_t i = 0; i < status->item_count; i++) {
        const dv_status_item *item = &status->items[i];
        if (item->there && !strchr(item->node, '/')) bytes += dv_path_cost(item->node);
    }
    return bytes;
}

/* ---- the whole ---- */

static int read_status(survey *s) {
    dv_doctor *d = s->doctor;
    int error = d->follow ? d->follow(s->look, d) : 0;
    if (!error && d->is_followed) dv_status_room_count(&d->status, strlen(d->path) + strlen(d->servers.chroot));
    return error || d->is_followed ? error : dv_status_pool_read(s->look, &d->status);
}

/* Nobody has read the queues of a pool that is followed: one whose access list is denied is denied, too. */
static void note_denied(dv_doctor *d) {
    for (size_t i = 0; d->is_followed && i < d->acl_count; i++) {
        if (!d->acls[i].is_directory || d->acls[i].error != DIVVY_EACCES) continue;
        d->status.items[d->acls[i].item].denied = true;
        d->status.denied_count++;
    }
}

static int read_pool(survey *s) {
    dv_doctor *d = s->doctor;
    int error = read_status(s);
    snprintf(d->failed_path, sizeof d->failed_path, "%s", error ? dv_look_failed_path(s->look) : "");
    d->pool_error = error == DIVVY_EACCES ? error : 0;
    if (error && error != DIVVY_EACCES) return error;
    if (error) dv_status_pool_clear(&d->status);
    error = read_acls(s);
    if (error || d->pool_error) return error;
    note_denied(d);
    error = read_settings(d);
    if (!error) error = read_notes(s);
    dv_reads lists = {DV_CHILDREN, d->is_followed ? 3 : 4, list_path, take_list, s};
    if (d->is_followed) d->locks_bytes = count_list(&d->status);
    return error ? error : dv_look_read(s->look, &lists);
}

static void clear_pool(dv_doctor *d) {
    for (size_t i = 0; i < d->acl_count; i++) {
        for (size_t k = 0; k < d->acls[i].entry_count; k++) free(d->acls[i].entries[k]);
        free((void *)d->acls[i].entries);
        free(d->acls[i].path);
    }
    for (size_t i = 0; d->notes && i < d->status.member_count; i++) dv_note_clear(&d->notes[i].note);
    free(d->acls);
    free(d->notes);
    free(d->settings);
    d->acls = NULL;
    d->notes = NULL;
    d->settings = NULL;
    d->is_followed = false;
    d->acl_count = d->left_notes = d->party_bytes = d->locks_bytes = 0;
    d->planned_ms = 0;
}

int dv_doctor_read(dv_look *look, void *context) {
    dv_doctor *d = context;
    clear_pool(d);
    survey s = {.doctor = d, .look = look, .root = dv_look_path(look, d->path ? d->path : "/")};
    if (!s.root) return DIVVY_ENOMEM;
    note_session(&s);
    int error = measure(&s);
    if (!error && d->path) error = read_pool(&s);
    free(s.root);
    return error;
}

void dv_doctor_clear(dv_doctor *d) {
    clear_pool(d);
    dv_status_pool_clear(&d->status);
    dv_servers_clear(&d->servers);
}
