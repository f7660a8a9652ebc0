/* Faults of the members' certificates, where sessions go over TLS. SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_TLS names a folder with two certificates of one CA's, client and next. In each round members are given
 * client.pem and client.key in the round's folder: at first client's, and from renewal to renewal the other's. */
#include "chaos.h"

#include <errno.h>
#include <string.h>

static bool is_over_tls(const chaos *c) {
    (void)c;
    return getenv("DIVVY_TEST_TLS") != NULL;
}

/* Copies both files beside those in use, and renames them over those, right after each other. */
static void put(const chaos *c, const char *name) {
    static const char *const kinds[] = {"key", "pem"};
    char command[4 * CHAOS_PATH_BYTES], fresh[CHAOS_PATH_BYTES], used[CHAOS_PATH_BYTES];
    snprintf(command, sizeof command, "cp '%s/%s.key' '%s/new.key' && cp '%s/%s.pem' '%s/new.pem'",
             getenv("DIVVY_TEST_TLS"), name, c->dir, getenv("DIVVY_TEST_TLS"), name, c->dir);
    if (system(command) != 0) dv_test_die("failed: %s", command);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(fresh, sizeof fresh, "%s/new.%s", c->dir, kinds[i]);
        snprintf(used, sizeof used, "%s/client.%s", c->dir, kinds[i]);
        if (rename(fresh, used)) dv_test_die("%s: %s", used, strerror(errno));
    }
}

void chaos_certificates_give(chaos *c) {
    char path[CHAOS_PATH_BYTES];
    if (!is_over_tls(c)) return;
    put(c, "client");
    snprintf(path, sizeof path, "%s/client.pem", c->dir);
    setenv("DIVVY_TLS_CERTIFICATE_FILE", path, 1);
    snprintf(path, sizeof path, "%s/client.key", c->dir);
    setenv("DIVVY_TLS_KEY_FILE", path, 1);
}

/* One member's connection breaks too, and is made again with the new certificate. The others go on with the old one
 * until they lose theirs. */
static void begin_renewal(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
    for (int i = 0; i < CHAOS_SERVERS; i++) dv_test_proxy_cut(c->members[fault->target].proxies[i]);
    c->certificate_is_next = !c->certificate_is_next;
    put(c, c->certificate_is_next ? "next" : "client");
}

static void end_renewal(chaos *c, chaos_fault *fault) {
    for (int i = 0; i < CHAOS_SERVERS; i++) dv_test_proxy_restore(c->members[fault->target].proxies[i]);
}

const chaos_kind chaos_certificate_kinds[] = {
    {"certificate_renewed", CHAOS_OF_LINKS, 10, CHAOS_SESSION_MS / 2, begin_renewal, end_renewal, false, is_over_tls},
    {0},
};
