/* An in-memory ensemble without delays, and one client of it. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_ENSEMBLE_CLIENT_FIXTURE_H
#define DV_TEST_ENSEMBLE_CLIENT_FIXTURE_H

#include "test_ensemble.h"

static divvy_testing_ensemble *e;
static divvy_client *c;

static int set_up(void **state) {
    (void)state;
    e = open_ensemble(NULL);
    c = open_client(e, 10000, -1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_client_close(c);
    close_ensemble(e);
    return 0;
}

#endif
