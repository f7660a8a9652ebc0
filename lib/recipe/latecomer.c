/* Latecomer: a node that R1 took for never made, and that may come yet. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/latecomer.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"

/* R3: on top of the session timeout. No leader keeps a server that is out of touch for so long. */
enum { OUT_OF_TOUCH_MS = 60000 };

typedef struct {
    dv_node node; /* unmade between two looks */
    dv_timer until;
    bool is_over; /* the next look is the last */
    char directory[];
} latecomer;

static latecomer *of_node(dv_node *node) {
    return DV_CONTAINER(node, latecomer, node);
}

/* C9: its czxid is of before, so it says nothing of tokens. */
static void on_found(dv_node *node, int64_t czxid, int64_t now) {
    (void)czxid, (void)now;
    dv_client_log(node->client, DIVVY_LOG_INFO, "%s was made after all, late, and is deleted", dv_node_path(node));
    if (dv_node_made(node, 0)) dv_node_leave(node);
}

static void on_not_found(dv_node *node, int64_t now) {
    (void)now;
    if (of_node(node)->is_over || node->numbered) dv_node_leave(node);
}

static void hear(dv_node *node, dv_session_event event, int64_t now) {
    (void)now;
    if (event == DV_SESSION_LOST || event == DV_SESSION_CLOSING) dv_node_leave(node);
    if (event != DV_SESSION_CONNECTED || node->stage != DV_NODE_UNMADE) return;
    dv_node_enter(node, DV_NODE_CREATING);
    dv_node_resolve(node);
}

static void on_time(dv_timer *timer, int64_t now) {
    latecomer *l = DV_CONTAINER(timer, latecomer, until);
    (void)now;
    l->is_over = true;
    if (l->node.stage == DV_NODE_UNMADE && dv_client_connected(l->node.client)) dv_node_leave(&l->node);
}

static void on_failed(dv_node *node, int error, int64_t now) {
    (void)node, (void)error, (void)now;
}

static void on_gone(dv_node *node, int64_t now) {
    latecomer *l = of_node(node);
    (void)now;
    dv_timer_cancel(&l->until);
    node->client->latecomer_count--;
    free(l);
}

static const dv_node_kind KIND = {
    .found = on_found, .not_found = on_not_found, .hear = hear, .failed = on_failed, .gone = on_gone};

void dv_latecomer_expect(const dv_node *node, int64_t now) {
    size_t bytes = strlen(node->directory) + 1;
    if (node->kind == &KIND) return; /* It is looked for already. */
    if (node->client->state != DIVVY_CONNECTED && node->client->state != DIVVY_SUSPENDED) return;
    latecomer *l = calloc(1, sizeof *l + bytes);
    char *path = strdup(dv_node_path(node));
    if (!l || !path) {
        free(l);
        free(path);
        return;
    }
    memcpy(l->directory, node->directory, bytes);
    l->node = (dv_node){.client = node->client,
                        .kind = &KIND,
                        .directory = l->directory,
                        .sequential = node->sequential,
                        .own.path = path};
    l->until.fire = on_time;
    if (dv_node_open(&l->node, 0, 0) != 0) {
        free(l);
        return;
    }
    node->client->latecomer_count++;
    dv_timer_set(node->client, &l->until, now + atomic_load(&node->client->timeout_ms) + OUT_OF_TOUCH_MS);
}
