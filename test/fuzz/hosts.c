/* Fuzzes the connect string. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/hosts.h"
#include "divvy/error.h"
#include "fuzz.h"
#include "znode/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_input in = fuzz_begin(data, bytes);
    char *text = fuzz_text(&in, '\0');
    dv_hosts hosts;
    const char *reason = NULL;
    int error = dv_hosts_parse(&hosts, text, &reason);
    FUZZ_CHECK(error == 0 || (error == DIVVY_EINVAL && reason));
    if (error == 0) {
        FUZZ_CHECK(hosts.count > 0 && hosts.chroot);
        FUZZ_CHECK(!*hosts.chroot || dv_path_check(hosts.chroot, NULL) == 0);
        FUZZ_CHECK(!strpbrk(hosts.chroot, ",; "));
        for (size_t i = 0; i < hosts.count; i++) {
            long port = strtol(hosts.hosts[i].port, NULL, 10);
            FUZZ_CHECK(*hosts.hosts[i].name && port >= 1 && port <= 65535);
        }
        if (dv_hosts_are_literal(&hosts)) {
            /* The native client wants an odd number of addresses, each with its port. */
            char *refusals, *literals = dv_hosts_resolve(&hosts, 7, NULL, &refusals, &error);
            FUZZ_CHECK(literals || error == DIVVY_ERESOLVE);
            size_t count = 1;
            for (const char *at = literals; at && *at; at++) count += *at == ',';
            FUZZ_CHECK(!literals || count % 2 == 1);
            free(literals);
        }
        dv_hosts_free(&hosts);
    }
    free(text);
    return 0;
}
