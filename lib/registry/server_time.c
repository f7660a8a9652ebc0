/* Server time: the servers' clock, as far as it is known. SPDX-License-Identifier: Apache-2.0 */
#include "registry/server_time.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

enum { PPM = 1000000 };

/* Returns how far two clocks may have drifted apart since the bounds were learned, each way. */
static int64_t drift_ms(const dv_server_time *time, int64_t now) {
    int64_t age_ms = now > time->learned_at ? now - time->learned_at : 0;
    return age_ms / (PPM / DV_SERVER_TIME_DRIFT_PPM) + (age_ms > 0);
}

/* V6. Both clocks tell whole milliseconds, so each bound is one further out than its difference says. A time
 * contradicts the bounds when the clock was set, or another leader's counts now. */
void dv_server_time_learn(dv_server_time *time, int64_t sent_at, int64_t answered_at, int64_t mtime_ms) {
    assert(sent_at <= answered_at);
    int64_t least = mtime_ms - answered_at - 1, most = mtime_ms - sent_at + 1;
    int64_t drift = time->known ? drift_ms(time, answered_at) : 0;
    bool agrees = time->known && most >= time->ahead_least_ms - drift && least <= time->ahead_most_ms + drift;
    if (!agrees || most - least <= time->ahead_most_ms - time->ahead_least_ms + 2 * drift) {
        time->ahead_least_ms = least;
        time->ahead_most_ms = most;
        time->learned_at = answered_at;
    }
    time->known = true;
    time->confirmed_at = answered_at;
}

dv_server_now dv_server_time_at(const dv_server_time *time, int64_t now) {
    assert(time->known);
    int64_t drift = drift_ms(time, now);
    return (dv_server_now){now + time->ahead_least_ms - drift, now + time->ahead_most_ms + drift};
}

bool dv_server_time_is_old(const dv_server_time *time, int64_t now) {
    return !time->known || now - time->confirmed_at >= DV_SERVER_TIME_FRESH_MS;
}

int64_t dv_server_time_likely_ms(const dv_server_time *time, int64_t now) {
    dv_server_now bounds = dv_server_time_at(time, now);
    return bounds.earliest_ms + (bounds.latest_ms - bounds.earliest_ms) / 2;
}

void dv_iso_print(int64_t unix_ms, char out[DV_ISO_BYTES]) {
    if (unix_ms < 0) unix_ms = 0;
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc;
    char text[DV_ISO_BYTES - 8] = "";
    if (gmtime_r(&seconds, &utc)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, DV_ISO_BYTES, "%s.%03dZ", text, (int)(unix_ms % 1000));
}
