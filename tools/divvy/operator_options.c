/* The operator's commands: options that they have in common. SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "base/utf8.h"
#include "command.h"
#include "operator.h"
#include "plan/wish.h"

static const char *contradiction(const dv_operator_options *o) {
    if (o->wait && o->dry_run) return "--wait is of no use with --dry-run, which changes nothing";
    if (o->reason && !dv_is_utf8(o->reason)) return "--reason is not UTF-8";
    if (o->reason && strlen(o->reason) > DV_WISH_WHY_BYTES_MAX) return "--reason has more than 512 bytes";
    if ((o->look.acl == DIVVY_ACL_CREATOR || o->look.acl == DIVVY_ACL_READABLE) && !o->look.auth_file &&
        !dv_tls_options_given(&o->look.tls))
        return "--acl creator and readable need credentials; give --auth-file, or use TLS or SASL";
    return NULL;
}

/* A reason is shown in one line of a table, so a line break in it becomes a space. It is a word of argv, which may be
 * written to. */
static void make_one_line(const char *reason) {
    for (char *at = (char *)(uintptr_t)reason; *at; at++) {
        if (*at == '\n' || *at == '\r' || *at == '\t') *at = ' ';
    }
}

int dv_operator_parse(const char *command, const dv_option *table, dv_operator_options *o, int argc, char **argv,
                      int *rest) {
    *rest = argc;
    int code = dv_options_parse_among(command, table, o, argc, argv, rest);
    if (code == 0) code = dv_options_check_pool(command, o->path);
    if (code != 0) return code;
    o->wait = o->wait || o->wait_timeout_ms > 0;
    if (o->reason) make_one_line(o->reason);
    const char *wrong = contradiction(o);
    if (wrong) return dv_command_misused(command, "%s", wrong);
    return dv_look_options_finish(&o->look, command);
}

/* "anna@host1", of at most so many bytes; what is no UTF-8 is left out. */
static void tell_user(char by[DV_OPERATOR_BY_BYTES]) {
    char host[HOST_NAME_MAX + 1] = "", texts[4096];
    struct passwd entry, *user = NULL;
    bool known = getpwuid_r(getuid(), &entry, texts, sizeof texts, &user) == 0 && user && *user->pw_name;
    const char *name = known ? user->pw_name : getenv("USER");
    if (gethostname(host, sizeof host - 1) != 0 || !dv_is_utf8(host)) strcpy(host, "?");
    if (!name || !*name || !dv_is_utf8(name)) name = "?";
    snprintf(by, DV_OPERATOR_BY_BYTES, "%.60s@%.60s", name, host);
    if (!dv_is_utf8(by)) snprintf(by, DV_OPERATOR_BY_BYTES, "?@%.60s", host);
    if (!dv_is_utf8(by)) strcpy(by, "?");
}

void dv_operator_sign(dv_ask *ask, const dv_operator_options *o, char by[DV_OPERATOR_BY_BYTES]) {
    tell_user(by);
    ask->by = by;
    ask->facts = true; /* for dv_outcome_make() */
    ask->why = o->reason;
    ask->at_ms = dv_look_wall_ms();
    ask->dry_run = o->dry_run != 0;
}
