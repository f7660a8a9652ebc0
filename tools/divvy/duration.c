/* Durations as people write them. SPDX-License-Identifier: Apache-2.0 */
#include "duration.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t ms;
} units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};

static int64_t find_unit(const char *name) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(units[i].name, name) == 0) return units[i].ms;
    }
    return 0;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* `count` digits of a fraction, times `unit_ms`, rounded up. From the last digit on, so that nothing overflows. */
static int64_t fraction_ms(const char *digits, size_t count, int64_t unit_ms) {
    /* Billionths are kept; a digit beyond them that is not zero makes the rest a little more than it is. */
    int64_t billionths = 0, scale = 100000000;
    bool more = false;
    for (size_t i = 0; i < count; i++, scale /= 10) {
        billionths += (digits[i] - '0') * scale;
        if (scale == 0 && digits[i] != '0') more = true;
    }
    int64_t product = billionths * unit_ms + (more ? 1 : 0);
    return (product + 999999999) / 1000000000;
}

int dv_duration_parse(const char *text, int64_t *out_ms) {
    int64_t whole = 0;
    const char *at = text;
    for (; is_digit(*at); at++) {
        if (whole <= DV_DURATION_MAX_MS) whole = whole * 10 + (*at - '0');
    }
    bool some = at > text;
    const char *fraction = at;
    size_t fraction_digits = 0;
    if (*at == '.') {
        fraction = ++at;
        while (is_digit(*at)) at++;
        fraction_digits = (size_t)(at - fraction);
        some = some && fraction_digits > 0;
    }
    int64_t unit_ms = some ? find_unit(at) : 0;
    if (unit_ms == 0) return -1;
    if (whole > DV_DURATION_MAX_MS / unit_ms) return -2;
    int64_t ms = whole * unit_ms + fraction_ms(fraction, fraction_digits, unit_ms);
    if (ms > DV_DURATION_MAX_MS) return -2;
    *out_ms = ms;
    return 0;
}
