/* Clients with a session of their own on real servers. SPDX-License-Identifier: Apache-2.0 */
#include "zookeeper/open.h"

#include "znode/apache/backend.h"

int divvy_client_open(divvy_client **out, const divvy_client_config *config) {
    return dv_client_open_on(out, config, false, dv_apache_new, NULL);
}

int dv_client_open_to_look(divvy_client **out, const divvy_client_config *config) {
    return dv_client_open_on(out, config, true, dv_apache_new, NULL);
}
