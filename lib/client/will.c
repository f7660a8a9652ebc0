/* The will of a client, as a message. SPDX-License-Identifier: Apache-2.0 */
#include "client/will.h"

#include <assert.h>
#include <string.h>

#include "divvy/error.h"

/* The numbers come first, then each text: a byte that says whether it is set, its bytes, and a NUL. */
typedef struct {
    uint32_t format;
    int32_t acl;
    int64_t session_id, timeout_ms, delay_ms;
    uint64_t pool_count;
    char password[DV_SESSION_PASSWORD_BYTES];
} numbers;

enum { FORMAT = 1, UNSET = 'u', SET = 's' };

/* ---- printing ---- */

typedef struct {
    char *at, *end; /* NULL in `at`: the room did not do */
} printer;

static void print(printer *p, const void *bytes, size_t count) {
    if (p->at && (size_t)(p->end - p->at) >= count) {
        memcpy(p->at, bytes, count);
        p->at += count;
    } else {
        p->at = NULL;
    }
}

static void print_text(printer *p, const char *text) {
    const char kind = text ? SET : UNSET;
    print(p, &kind, 1);
    if (text) print(p, text, strlen(text) + 1);
}

size_t dv_will_print(const dv_will *will, char *out, size_t room) {
    printer p = {out, out + room};
    assert(will->pool_count <= DV_WILL_POOLS_MAX);
    numbers n;
    memset(&n, 0, sizeof n); /* No chance bytes between its fields leave the process. */
    n.format = FORMAT;
    n.acl = will->acl;
    n.session_id = will->session_id;
    n.timeout_ms = will->timeout_ms;
    n.delay_ms = will->delay_ms;
    n.pool_count = will->pool_count;
    memcpy(n.password, will->password, sizeof n.password);
    print(&p, &n, sizeof n);
    for (int i = 0; i < DV_WILL_TEXTS; i++) print_text(&p, will->texts[i]);
    for (size_t i = 0; i < will->pool_count; i++) {
        print_text(&p, will->pools[i].path);
        print_text(&p, will->pools[i].member);
    }
    explicit_bzero(&n, sizeof n);
    if (!p.at) explicit_bzero(out, room);
    return p.at ? (size_t)(p.at - out) : 0;
}

/* ---- parsing ---- */

typedef struct {
    const char *at, *end;
    bool broken;
} scanner;

static const char *scan_text(scanner *s) {
    if (s->at == s->end || (*s->at != SET && *s->at != UNSET)) s->broken = true;
    if (s->broken) return NULL;
    bool set = *s->at++ == SET;
    if (!set) return NULL;
    const char *text = s->at, *nul = memchr(text, '\0', (size_t)(s->end - text));
    if (nul) s->at = nul + 1;
    else s->broken = true;
    return nul ? text : NULL;
}

static void scan_pool(scanner *s, dv_will_pool *pool) {
    pool->path = scan_text(s);
    pool->member = scan_text(s);
    if (!pool->path || !pool->member) s->broken = true;
}

static bool are_sound(const numbers *n) {
    return n->format == FORMAT && n->pool_count <= DV_WILL_POOLS_MAX && n->timeout_ms >= 0 &&
           n->timeout_ms <= DV_WILL_TIMEOUT_MAX_MS && n->delay_ms >= 0 && n->delay_ms <= DV_WILL_TIMEOUT_MAX_MS;
}

static bool parse(dv_will *out, const numbers *n, scanner s) {
    for (int i = 0; i < DV_WILL_TEXTS; i++) out->texts[i] = scan_text(&s);
    for (size_t i = 0; i < n->pool_count; i++) scan_pool(&s, &out->pools[i]);
    if (s.broken || s.at != s.end || (n->session_id && !out->texts[DV_WILL_HOSTS])) return false;
    out->session_id = n->session_id;
    out->timeout_ms = n->timeout_ms;
    out->delay_ms = n->delay_ms;
    out->acl = n->acl;
    out->pool_count = (size_t)n->pool_count;
    memcpy(out->password, n->password, sizeof out->password);
    return true;
}

int dv_will_parse(dv_will *out, const char *message, size_t bytes) {
    numbers n;
    memset(out, 0, sizeof *out);
    if (bytes < sizeof n) return DIVVY_EPROTO;
    memcpy(&n, message, sizeof n);
    bool sound = are_sound(&n) && parse(out, &n, (scanner){message + sizeof n, message + bytes, false});
    explicit_bzero(&n, sizeof n);
    if (!sound) memset(out, 0, sizeof *out);
    return sound ? 0 : DIVVY_EPROTO;
}

bool dv_will_is_due(bool told, bool process_ended, bool all_gone) {
    if (!told || !process_ended) return false;
    return all_gone;
}
