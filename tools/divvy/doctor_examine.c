/* An examination, as `divvy doctor` and the page make it. SPDX-License-Identifier: Apache-2.0 */
#include "doctor_examine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "connection.h"
#include "doctor_judge.h"

int64_t dv_doctor_environment_tick_ms(void) {
    const char *text = getenv("DIVVY_ENSEMBLE_TICK_MS");
    char *end = NULL;
    errno = 0;
    long long tick_ms = text && *text ? strtoll(text, &end, 10) : 0;
    return end && !*end && !errno && tick_ms > 0 && tick_ms <= 3600000 ? tick_ms : 0;
}

static void note_failure(dv_doctor *d, const dv_look *look, int error) {
    const char *path = look ? dv_look_failed_path(look) : "", *text = divvy_strerror(error);
    d->look_error = error;
    if (error == DIVVY_EAUTH && look) text = dv_session_why(dv_look_client(look), error);
    if (error == DIVVY_EAUTH) path = "";
    if (error == DIVVY_ETIMEDOUT) text = "the servers have not told all of it within --timeout";
    snprintf(d->failed_path, sizeof d->failed_path, "%s", path);
    snprintf(d->look_reason, sizeof d->look_reason, "%s", *text ? text : divvy_strerror(error));
}

/* The memory of a plan outlasts the look that it was read by. */
static int begin_plan(dv_pool_plan *plan, dv_look *look, const char *path) {
    if (!plan->path) return dv_pool_plan_init(plan, look, path);
    plan->look = look;
    return 0;
}

static int examine_pool(dv_doctor *d, const dv_look_options *given, dv_pool_plan *plan, const char *command,
                        int stop_fd, const char *connect) {
    dv_look_options options = *given;
    dv_look *look = NULL;
    options.connect = connect;
    options.session_timeout_ms = d->session_timeout_ms;
    d->opened_ms = dv_look_wall_ms();
    int code = dv_look_open(&look, &options, command, stop_fd);
    if (code == 0 && d->path && begin_plan(plan, look, d->path) != 0) code = dv_command_out_of_memory();
    d->status.plan = plan;
    int error = code == 0 ? dv_look_at(look, dv_doctor_read, d) : 0;
    if (error == DIVVY_ENOMEM) code = dv_command_out_of_memory();
    else if (error) note_failure(d, look, error);
    if (code == 0 && dv_servers_ask_clients(&d->servers, &given->tls, d->server_timeout_ms) != 0)
        code = dv_command_out_of_memory();
    dv_look_close(look);
    return code;
}

int dv_doctor_examine(dv_doctor *d, const dv_look_options *options, dv_pool_plan *plan, const char *command,
                      int stop_fd) {
    const char *reason = "";
    d->hides_names = options->tls.ca_file || options->tls.sasl_user || options->tls.sasl_mechanism;
    d->status = (dv_status){.path = d->path, .skip_denied = true, .owners_by_name = true};
    int error = dv_servers_ask(&d->servers, options->connect, &options->tls, d->server_timeout_ms, &reason);
    char *good = error ? NULL : dv_servers_good(&d->servers);
    int code = 0;
    d->is_served = good && *good;
    if (error == DIVVY_EINVAL) code = dv_command_misused(command, "--connect: \"%.200s\" %s", options->connect, reason);
    else if (error || !good) code = dv_command_out_of_memory();
    else code = *good ? examine_pool(d, options, plan, command, stop_fd, good) : 0;
    free(good);
    return code;
}

void dv_doctor_judge(const dv_doctor *d, dv_findings *findings) {
    dv_doctor_judge_servers(d, findings);
    if (!d->path || !d->is_served || d->look_error) return;
    dv_doctor_judge_pool(d, findings);
    dv_doctor_judge_members(d, findings);
    dv_doctor_judge_items(d, findings);
    dv_doctor_judge_rules(d, findings);
}
