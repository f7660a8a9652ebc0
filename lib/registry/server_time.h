/* Server time: the servers' clock, as far as it is known. SPDX-License-Identifier: Apache-2.0
 *
 * Pure. Our clock is the seam's, which knows nothing of the time of day. docs/protocol.md, V6. */
#ifndef DV_SERVER_TIME_H
#define DV_SERVER_TIME_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DV_SERVER_TIME_FRESH_MS = 30000, /* older than this, it is to be learned again: another leader has another clock */
    DV_SERVER_TIME_DRIFT_PPM = 200,  /* of two clocks against each other, at most */
};

typedef struct {
    bool known;
    int64_t ahead_least_ms, ahead_most_ms; /* when it was learned */
    int64_t learned_at;                    /* of the seam's clock; of the bounds */
    int64_t confirmed_at;                  /* when a write last agreed with them */
} dv_server_time;

typedef struct {
    int64_t earliest_ms, latest_ms; /* since 1970 */
} dv_server_now;

void dv_server_time_learn(dv_server_time *time, int64_t sent_at, int64_t answered_at, int64_t mtime_ms);
/* Returns both bounds; only if known. */
dv_server_now dv_server_time_at(const dv_server_time *time, int64_t now);
bool dv_server_time_is_old(const dv_server_time *time, int64_t now);
/* Returns the middle of the bounds, for texts. */
int64_t dv_server_time_likely_ms(const dv_server_time *time, int64_t now);
/* "2026-11-21T22:56:42.123Z" */
enum { DV_ISO_BYTES = 40 };
void dv_iso_print(int64_t unix_ms, char out[DV_ISO_BYTES]);

#endif
