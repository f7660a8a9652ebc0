/* What a member owns by the events that it was told: divvy/ledger.h. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "divvy/ledger.h"
#include "lib/test.h"

enum { BYTES = 4096 };

static const char *const names[] = {"a", "b", "c"};
static const int64_t tokens[] = {7, 8, 9};

static void gain(dv_ledger *ledger, const char *const *gained, size_t count) {
    dv_ledger_items(ledger, &(divvy_items_event){.gained = gained, .gained_tokens = tokens, .gained_count = count});
}

static void lose(dv_ledger *ledger, int reason) {
    ledger->state = DIVVY_ACQUIRED;
    dv_ledger_items(ledger, &(divvy_items_event){.lost = names, .lost_count = 1, .reason = reason});
}

/* A plan, our own release, and a node that somebody deletes take items and leave the state; the session ends it, unless
 * the member joins again. */
TEST(test_state_of_losses) {
    static const int kept[] = {DIVVY_REASON_MEMBERS, DIVVY_REASON_JOIN,     DIVVY_REASON_LEAVE,  DIVVY_REASON_LOSS,
                               DIVVY_REASON_WEIGHT,  DIVVY_REASON_SET,      DIVVY_REASON_DRAIN,  DIVVY_REASON_OPERATOR,
                               DIVVY_REASON_LOAD,    DIVVY_REASON_RELEASED, DIVVY_REASON_FOREIGN};
    dv_output output = {.ended = true};
    dv_ledger ledger;
    dv_ledger_init(&ledger, &output);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        lose(&ledger, kept[i]);
        assert_int_equal(ledger.state, DIVVY_ACQUIRED);
    }
    lose(&ledger, DIVVY_REASON_SESSION);
    assert_int_equal(ledger.state, DIVVY_FAILURE);
    ledger.rejoins = true;
    lose(&ledger, DIVVY_REASON_SESSION);
    assert_int_equal(ledger.state, DIVVY_RELEASE);
    assert_false(ledger.out_of_memory);
    dv_ledger_free(&ledger);
}

/* Items stand sorted, each once and with its newest token; what is lost or revoked is out. */
TEST(test_owned) {
    static const char *const unsorted[] = {"c", "a", "b"};
    dv_output output = {.ended = true};
    dv_ledger ledger;
    dv_ledger_init(&ledger, &output);
    assert_null(dv_ledger_find(&ledger, "a"));
    gain(&ledger, unsorted, 3);
    assert_int_equal(ledger.owned_count, 3);
    for (size_t i = 0; i < 3; i++) assert_string_equal(ledger.owned[i].name, names[i]);
    assert_int_equal(dv_ledger_find(&ledger, "c")->token, 7);
    gain(&ledger, names, 3);
    assert_int_equal(ledger.owned_count, 3);
    assert_int_equal(dv_ledger_find(&ledger, "c")->token, 9);
    lose(&ledger, DIVVY_REASON_FOREIGN);
    assert_null(dv_ledger_find(&ledger, "a"));
    dv_ledger_items(&ledger, &(divvy_items_event){.revoked = names, .revoked_count = 2});
    assert_int_equal(ledger.owned_count, 1);
    assert_int_equal(ledger.state, DIVVY_RELEASE);
    dv_ledger_free(&ledger);
    assert_null(ledger.owned);
}

/* The last line revokes all that is owned, once. */
TEST(test_revoke_all) {
    char text[BYTES] = "";
    dv_output output = {.instead_fd = memfd_create("lines", MFD_CLOEXEC), .stop_fd = -1};
    dv_ledger ledger;
    assert_true(output.instead_fd > 0);
    dv_ledger_init(&ledger, &output);
    dv_ledger_revoke_all(&ledger);
    gain(&ledger, names, 2);
    dv_ledger_revoke_all(&ledger);
    dv_ledger_revoke_all(&ledger);
    assert_true(pread(output.instead_fd, text, sizeof text - 1, 0) > 0);
    assert_string_equal(text, "ALLOCATING  gained 2: a, b  owned 2: a, b\n"
                              "ALLOCATING  revoked 2: a, b  owned 0\n");
    assert_int_equal(ledger.owned_count, 0);
    close(output.instead_fd);
    dv_ledger_free(&ledger);
}
