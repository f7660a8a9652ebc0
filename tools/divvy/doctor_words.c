/* A server's answers to four letter words. SPDX-License-Identifier: Apache-2.0 */
#include "doctor_words.h"

#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS_MAX = 100000 };

/* A piece of the text, which ends in no NUL. */
typedef struct {
    const char *at, *end;
} span;

/* Cuts the first line off. */
static span take_line(span *rest) {
    const char *newline = memchr(rest->at, '\n', (size_t)(rest->end - rest->at));
    span line = {rest->at, newline ? newline : rest->end};
    rest->at = newline ? newline + 1 : rest->end;
    if (line.end > line.at && line.end[-1] == '\r') line.end--;
    return line;
}

static bool begins(span text, const char *with) {
    size_t bytes = strlen(with);
    return (size_t)(text.end - text.at) >= bytes && memcmp(text.at, with, bytes) == 0;
}

static bool contains(span text, const char *what) {
    return memmem(text.at, (size_t)(text.end - text.at), what, strlen(what)) != NULL;
}

/* Returns the number that stands at the beginning, -1 where none does or it is out of bounds. */
static int64_t number_at(span text, int base) {
    uint64_t number = 0;
    const char *at = text.at;
    for (; at < text.end; at++) {
        int digit = *at >= '0' && *at <= '9' ? *at - '0' : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10 : 99;
        if (digit >= base) break;
        if (number > (UINT64_MAX - 15) / (uint64_t)base) return -1;
        number = number * (uint64_t)base + (uint64_t)digit;
    }
    /* Sessions of servers with high numbers are negative. */
    return at == text.at || (base == 10 && number > INT64_MAX) ? -1 : (int64_t)number;
}

static int64_t number_behind(span text, const char *key, int base) {
    const char *found = memmem(text.at, (size_t)(text.end - text.at), key, strlen(key));
    return found ? number_at((span){found + strlen(key), text.end}, base) : -1;
}

static void copy(char *out, size_t bytes, span text) {
    size_t length = (size_t)(text.end - text.at);
    if (length >= bytes) length = bytes - 1;
    memcpy(out, text.at, length);
    out[length] = '\0';
}

static bool is_not_allowed(span text) {
    return contains(text, "not in the whitelist");
}

dv_word_srvr dv_word_srvr_parse(const char *text, size_t bytes) {
    dv_word_srvr srvr = {.told = false};
    span rest = {text, text + bytes};
    srvr.not_allowed = is_not_allowed(rest);
    srvr.not_serving = contains(rest, "not currently serving requests");
    while (rest.at < rest.end) {
        span line = take_line(&rest);
        if (begins(line, "Zxid: 0x")) {
            int64_t zxid = number_at((span){line.at + strlen("Zxid: 0x"), line.end}, 16);
            srvr.zxid = zxid > 0 ? (uint64_t)zxid : 0;
        } else if (begins(line, "Mode: ")) {
            srvr.told = true;
            copy(srvr.mode, sizeof srvr.mode, (span){line.at + strlen("Mode: "), line.end});
            srvr.read_only = strcmp(srvr.mode, "read-only") == 0;
        }
    }
    return srvr;
}

dv_word_conf dv_word_conf_parse(const char *text, size_t bytes) {
    static const char *const keys[] = {
        "tickTime=", "minSessionTimeout=", "maxSessionTimeout=", "serverId=", "clientPort=", "secureClientPort="};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    int64_t values[KEYS] = {0};
    size_t servers = 0;
    span rest = {text, text + bytes};
    while (rest.at < rest.end) {
        span line = take_line(&rest);
        servers += begins(line, "server.");
        for (size_t k = 0; k < KEYS; k++) {
            int64_t value = begins(line, keys[k]) ? number_behind(line, keys[k], 10) : -1;
            if (value > 0 && value <= INT32_MAX) values[k] = value;
        }
    }
    if (servers == 0 && values[0]) servers = 1;
    return (dv_word_conf){values[0], values[1], values[2], values[3], servers, values[4] && values[5]};
}

int64_t dv_word_mntr_mismatches(const char *text, size_t bytes) {
    const char *end = bytes ? memrchr(text, '\n', bytes) : NULL; /* A number without it may be cut. */
    int64_t count = end ? number_behind((span){text, end}, "zk_digest_mismatches_count\t", 10) : 0;
    return count > 0 ? count : 0;
}

/* " /127.0.0.1:42352[1](queued=0,recved=9,sent=9,sid=0x1000,lop=PING,est=1700000000000,to=10000,...,lresp=123,...)" */
static bool parse_connection(span line, dv_word_connection *out, int64_t *responded) {
    const char *slash = memchr(line.at, '/', (size_t)(line.end - line.at));
    const char *bracket = slash ? memchr(slash, '[', (size_t)(line.end - slash)) : NULL;
    int64_t session = number_behind(line, "sid=0x", 16);
    if (!bracket || session == -1) return false;
    *out = (dv_word_connection){.session = session,
                                .timeout_ms = number_behind(line, ",to=", 10),
                                .established_ms = number_behind(line, ",est=", 10)};
    *responded = number_behind(line, ",lresp=", 10);
    copy(out->address, sizeof out->address, (span){slash + 1, bracket});
    return true;
}

bool dv_word_cons_parse(const char *text, size_t bytes, dv_word_connection **list, size_t *count) {
    span rest = {text, text + bytes};
    size_t first = *count, room = *count;
    int64_t newest = 0;
    if (bytes == 0 || is_not_allowed(rest) || !contains(rest, "(queued=")) return false;
    while (rest.at < rest.end && *count < CONNECTIONS_MAX) {
        dv_word_connection connection;
        if (!parse_connection(take_line(&rest), &connection, &connection.silent_ms)) continue;
        if (connection.silent_ms > newest) newest = connection.silent_ms;
        if (*count == room) {
            room = room ? 2 * room : 64;
            dv_word_connection *grown = realloc(*list, room * sizeof *grown);
            if (!grown) return false;
            *list = grown;
        }
        (*list)[(*count)++] = connection;
    }
    /* So far it was the time of the last answer, by the clock of a server that counts from its start. */
    for (size_t i = first; i < *count; i++) {
        int64_t responded = (*list)[i].silent_ms;
        (*list)[i].silent_ms = responded > 0 ? newest - responded : 0;
    }
    return rest.at == rest.end;
}
