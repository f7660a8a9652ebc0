/* Odd answers: telling the user of them. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/container.h"
#include "client/client.h"
#include "znode/path.h"

enum { TELL_AGAIN_MS = 60000 };

static const char *verb_of(const dv_odd_answer *answer) {
    static const char *const verbs[DV_KINDS] = {"create", "delete",  "set data of", "check",
                                                "read",   "look at", "list",        "read the access list of"};
    return answer->is_multi ? "a transaction that begins with" : verbs[answer->op->kind];
}

/* ---- codes ---- */

/* Returns whether to tell of the code: once a minute, or more often where there are more codes than places. */
static bool is_to_be_told(dv_odd_answers *odd, int code, int64_t now) {
    size_t i = 0;
    while (i < DV_ODD_CODES && odd->codes[i].code != code) i++;
    if (i < DV_ODD_CODES && now - odd->codes[i].warned_at < TELL_AGAIN_MS) return false;
    if (i == DV_ODD_CODES) {
        i = odd->next_code;
        odd->next_code = (i + 1) % DV_ODD_CODES;
    }
    odd->codes[i].code = code;
    odd->codes[i].warned_at = now;
    return true;
}

static void tell_code(divvy_client *client, const dv_odd_answer *answer, int64_t now) {
    const dv_answer_meaning *meaning = &answer->meaning;
    const char *name = meaning->name ? meaning->name : "a code that divvy does not know";
    if (!is_to_be_told(&client->odd, meaning->code, now)) return;
    if (meaning->verdict == DV_VERDICT_AGAIN)
        dv_client_warn(client, DIVVY_WARN_ANSWER,
                       "the servers did not carry out: %s %.200s (%s, %d); it is sent again. They are overloaded, or "
                       "throttle: see request_throttle_* and throttledOpWaitTime in their configuration",
                       verb_of(answer), answer->op->path, name, meaning->code);
    else if (meaning->verdict == DV_VERDICT_TOLD)
        dv_client_warn(client, DIVVY_WARN_ANSWER,
                       "the servers refuse: %s %.200s (%s, %d); it is tried again. Their sessions are local ones: set "
                       "localSessionsUpgradingEnabled=true",
                       verb_of(answer), answer->op->path, name, meaning->code);
    else
        dv_client_warn(client, DIVVY_WARN_ANSWER,
                       "the servers answered %d (%s) to: %s %.200s; what came of it is looked at, and it is tried "
                       "again. Look into their logs",
                       meaning->code, name, verb_of(answer), answer->op->path);
}

/* ---- quotas: docs/protocol.md, B12 ---- */

static void tell_quota(divvy_client *client, const char *limits) {
    dv_odd_answers *odd = &client->odd;
    const char *path = odd->quota_known ? odd->quota : odd->refused;
    dv_client_warn(client, DIVVY_WARN_QUOTA,
                   "the quota of %.200s%s%s%s is used up: the servers refuse to %s %.200s. What is owned stays owned, "
                   "and it is tried again every few seconds; raise the quota (setquota in zkCli.sh), or give the pool "
                   "less",
                   odd->quota_known ? path : "a node above", limits ? " (" : "", limits ? limits : "",
                   limits ? ")" : "", odd->verb, odd->refused);
}

static void copy_limits(char *text, const dv_reply *reply) {
    size_t bytes = reply->data_bytes < DV_QUOTA_TEXT_BYTES ? reply->data_bytes : DV_QUOTA_TEXT_BYTES - 1;
    for (size_t i = 0; i < bytes; i++) {
        char c = ((const char *)reply->data)[i];
        text[i] = (char)(c > ' ' && c < 0x7f ? c : '?');
    }
    text[bytes] = '\0';
}

static void look_up(divvy_client *client);

static void on_limits(void *context, const dv_reply *reply, int64_t now) {
    divvy_client *client = context;
    dv_odd_answers *odd = &client->odd;
    char limits[DV_QUOTA_TEXT_BYTES];
    (void)now;
    odd->reading = false;
    if (dv_session_over(reply->error)) return;
    odd->quota_known = reply->error == 0;
    if (reply->error == 0) copy_limits(limits, reply);
    char *slash = strrchr(odd->quota, '/');
    if (reply->error == DIVVY_ENOENT && slash && slash != odd->quota) {
        *slash = '\0';
        look_up(client);
    } else {
        tell_quota(client, reply->error == 0 ? limits : NULL);
    }
}

/* The limits of a path's quota stand below a path of their own: of those above a node the nearest counts. */
static void look_up(divvy_client *client) {
    dv_odd_answers *odd = &client->odd;
    char *path = NULL;
    assert(!odd->reading && odd->quota);
    if (asprintf(&path, "/zookeeper/quota%s/zookeeper_limits", odd->quota) >= 0) {
        odd->reading = dv_znode_get(client->znode, path, NULL, on_limits, client) == 0;
        free(path);
    }
    if (!odd->reading) tell_quota(client, NULL);
}

static bool is_at_or_below(const char *path, const char *top) {
    size_t bytes = strlen(top);
    return strncmp(path, top, bytes) == 0 && (path[bytes] == '\0' || path[bytes] == '/');
}

static void note_refusal(divvy_client *client, const dv_odd_answer *answer, int64_t now) {
    dv_odd_answers *odd = &client->odd;
    odd->refused_at = now;
    if (odd->reading) return;
    char *refused = strdup(answer->op->path);
    if (!refused) return;
    bool same = odd->quota && odd->quota_known && is_at_or_below(refused, odd->quota);
    bool to_tell = !same || now - odd->quota_told_at >= TELL_AGAIN_MS;
    free(odd->refused);
    odd->refused = refused;
    if (!to_tell) return;
    /* Without the path of a quota, each refusal would look for it. */
    if (!odd->quota_known && odd->quota && now - odd->quota_told_at < TELL_AGAIN_MS) return;
    odd->quota_told_at = now;
    odd->verb = answer->op->kind == DV_SET ? "set data of" : "create";
    free(odd->quota);
    odd->quota_known = false;
    odd->quota = strdup(refused);
    if (odd->quota) look_up(client);
}

bool dv_client_quota_refuses(const divvy_client *client, const char *path, int64_t since) {
    const dv_odd_answers *odd = &client->odd;
    if (!odd->refused || odd->refused_at < since) return false;
    if (odd->quota_known && odd->quota) return is_at_or_below(path, odd->quota);
    return is_at_or_below(odd->refused, path) || is_at_or_below(path, odd->refused);
}

/* ---- what again.c asks for ---- */

static void on_timer(dv_timer *timer, int64_t now) {
    divvy_client *client = DV_CONTAINER(timer, divvy_client, odd.timer);
    dv_again_run(client->znode, now);
}

static void wake(void *context, int64_t at) {
    divvy_client *client = context;
    if (!client->odd.timer.link || at < client->odd.timer.at) dv_timer_set(client, &client->odd.timer, at);
}

static void tell(void *context, const dv_odd_answer *answer, int64_t now) {
    if (answer->meaning.error == DIVVY_EQUOTA) note_refusal(context, answer, now);
    else tell_code(context, answer, now);
}

void dv_odd_answers_begin(divvy_client *client) {
    client->odd.timer.fire = on_timer;
    client->znode->again = (dv_again){.wake = wake, .tell = tell, .context = client};
}

void dv_odd_answers_free(divvy_client *client) {
    free(client->odd.refused);
    free(client->odd.quota);
}
