/* The meaning of each answer of a server. SPDX-License-Identifier: Apache-2.0 */
#include "znode/answers.h"

#include <assert.h>
#include <stddef.h>

/* Raw errors lie far below all others. A code that would not fit cannot be told from the next one, and need not be. */
enum { RAW_BASE = -2000000000, CODE_MAX = 1000000000 };

static const dv_answer_meaning table[] = {
#define ROW(name, code, verdict, error) {code, DV_VERDICT_##verdict, error, #name},
    DV_ANSWERS(ROW)
#undef ROW
};

dv_answer_meaning dv_answer_of(int code) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].code == code) return table[i];
    }
    return (dv_answer_meaning){code, DV_VERDICT_MAYBE, DIVVY_ECONNECTION, NULL};
}

int dv_answer_error(int code) {
    dv_answer_meaning meaning = dv_answer_of(code);
    if (meaning.verdict < DV_VERDICT_AGAIN) return meaning.error;
    int kept = code > CODE_MAX ? CODE_MAX : code < -CODE_MAX / 10 ? -CODE_MAX / 10 : code;
    return RAW_BASE + kept;
}

bool dv_answer_is_raw(int error) {
    return error <= RAW_BASE + CODE_MAX;
}

int dv_answer_code(int error) {
    assert(dv_answer_is_raw(error));
    return error - RAW_BASE;
}

const char *dv_answer_errname(int error) {
    if (!dv_answer_is_raw(error)) return divvy_errname(error);
    const char *name = dv_answer_of(dv_answer_code(error)).name;
    return name ? name : "an unknown answer";
}
