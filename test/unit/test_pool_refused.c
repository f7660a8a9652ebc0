/* Tests of an operator's calls on servers that refuse one of their requests. SPDX-License-Identifier: Apache-2.0 */
#include "pool_place.h"

enum { NOAUTH = -102, REQUESTS_MOST = 16 };

static int set_weight(place *p) {
    return divvy_pool_set_weight(p->client, "/pool", "member-1", 500, &p->request);
}

static int pin(place *p) {
    return divvy_pool_pin(p->client, "/pool", "item-00001", "member-1", &p->request);
}

/* Makes the call with the answer to one of its requests a refusal. Returns what it returns. */
static int refuse_one(int (*call)(place *p), unsigned skip) {
    place p;
    place_open(&p, 2);
    assert_int_equal(divvy_testing_answer(p.pool.ensemble, p.client, NOAUTH, 0, skip, 1), 0);
    int error = call(&p);
    if (error) assert_said(&p, "/pool/p"); /* the party or the plan */
    assert_int_equal(p.pool.plan_writes, error ? 0 : 1);
    settle(&p.pool);
    assert_at_rest(&p.pool);
    place_close(&p);
    return error;
}

/* Returns how many of its requests the call cannot do without. */
static int refuse_each(int (*call)(place *p)) {
    int refused = 0;
    for (unsigned skip = 0; skip < REQUESTS_MOST; skip++) {
        int error = refuse_one(call, skip);
        if (error && error != DIVVY_EACCES) fail_msg("without request %u: %s", skip, divvy_errname(error));
        refused += error != 0;
    }
    return refused;
}

/* Where a request is refused that an operator's call cannot do without, the call says so, names the node, and has
 * written no plan. Where it can, all is as if nothing had been. */
TEST(test_refused) {
    int weight = refuse_each(set_weight), pins = refuse_each(pin);
    print_message("requests that were needed: %d for a weight, %d for a pin\n", weight, pins);
    assert_true(weight >= 3 && weight < REQUESTS_MOST);
    assert_true(pins >= 3 && pins < REQUESTS_MOST);
}
