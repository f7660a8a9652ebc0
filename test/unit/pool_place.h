/* A pool, and an operator's program beside it. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_POOL_PLACE_H
#define DV_TEST_POOL_PLACE_H

#include "plan_pool.h"

enum { ITEMS = 60, DELAY_MS = 20000 };

/* A pool, and somebody beside it who is no member. */
typedef struct {
    pool pool;
    divvy_client *client;
    divvy_pool_result result;
    divvy_pool_request request;
} place;

static inline void place_open(place *p, size_t members) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    pool_open(&p->pool, ITEMS);
    for (size_t n = 0; n < members; n++) add(&p->pool, n, NULL);
    if (members > 0) settle(&p->pool);
    config.manual = 1;
    assert_int_equal(divvy_testing_client_open(&p->client, p->pool.ensemble, &config), 0);
    p->result = (divvy_pool_result)DIVVY_POOL_RESULT_INIT;
    p->request = (divvy_pool_request)DIVVY_POOL_REQUEST_INIT;
    p->request.result = &p->result;
    p->pool.plan_writes = 0;
}

static inline void place_close(place *p) {
    divvy_client_close(p->client);
    pool_close(&p->pool);
}

static inline size_t load_of(const place *p, size_t n) {
    owners o = look(&p->pool);
    size_t load = o.loads[n];
    owners_free(&o);
    return load;
}

static inline void assert_said(const place *p, const char *part) {
    const char *said = divvy_client_error(p->client);
    if (!strstr(said, part)) fail_msg("\"%s\" does not say \"%s\"", said, part);
}

#endif
