/* A client behind a proxy, with a registry. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_LIVE_REGISTRY_FIXTURE_H
#define DV_TEST_LIVE_REGISTRY_FIXTURE_H

#include "divvy/registry.h"
#include "lib/proxy.h"
#include "one_server.h"
#include "test_client_witness.h"

enum { SESSION_MS = 10000 };
#define SERVICES "/divvy/services"

typedef struct {
    witness witness;
    dv_test_proxy *proxy;
    divvy_client *client;
    divvy_registry *registry;
} party;

static inline void enter_as(party *p, const divvy_registry_config *config, int manual) {
    p->proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config of_client = witness_config(&p->witness, dv_test_proxy_address(p->proxy));
    of_client.session_timeout_ms = SESSION_MS;
    of_client.ensemble_tick_ms = TICK_MS;
    of_client.manual = manual;
    p->client = open_connected(&of_client);
    assert_int_equal(divvy_registry_open(&p->registry, p->client, config), 0);
}

static inline void enter(party *p, const divvy_registry_config *config) {
    enter_as(p, config, 0);
}

static inline void leave(party *p) {
    divvy_registry_close(p->registry);
    divvy_client_close(p->client);
    dv_test_proxy_stop(p->proxy);
    witness_end(&p->witness);
}

#endif
