/* divvy elect --watch and --step-down, which do not stand. SPDX-License-Identifier: Apache-2.0 */
#include "elect_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "dispositions.h"
#include "lock_options.h"
#include "output.h"
#include "text.h"

divvy_election_config dv_elect_config(const dv_elect_options *options) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    config.path = options->path;
    config.data = options->data;
    config.container = strcmp(options->root, DV_OWN_ROOT) == 0; /* as of divvy lock */
    return config;
}

/* ---- watching ---- */

static void on_leader(divvy_election *election, const divvy_leader *leader, void *user) {
    static const char nobody[] = "nobody\n";
    char *data = leader ? dv_text_readable(leader->data) : NULL, *line = NULL, short_line[64];
    (void)election;
    if (data && asprintf(&line, "leader %" PRId64 " %s\n", leader->token, data) < 0) line = NULL;
    /* Without memory a line comes all the same. */
    if (leader) snprintf(short_line, sizeof short_line, "leader %" PRId64 " ?\n", leader->token);
    const char *told = !leader ? nobody : line ? line : short_line;
    dv_output_write(user, told, strlen(told));
    free(data);
    free(line);
}

/* Until a signal comes, or the reader of our output has gone. */
static int watch_until_asked(dv_session *session, dv_output *output) {
    int code = 0;
    for (bool asked = false; !asked && !output->ended && code == 0;) {
        code = dv_session_check(session);
        int64_t wait_ms =
            dv_session_sooner(dv_session_until_check_ms(session), divvy_client_next_deadline(session->client));
        wait_ms = dv_session_sooner(wait_ms, dv_session_until_metrics_ms(session));
        struct pollfd fds[] = {{.fd = divvy_client_fd(session->client), .events = POLLIN},
                               {.fd = output->stop_fd, .events = POLLIN},
                               {.fd = dv_output_fd(output)}};
        poll(fds, 3, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
        asked = fds[1].revents != 0;
        dv_output_heard(output, fds[2].revents);
        divvy_client_process(session->client, 0);
        dv_session_write_metrics(session);
    }
    if (output->error) dv_command_say("cannot write: %s", strerror(output->error));
    return output->error ? DV_EXIT_TROUBLE : code;
}

int dv_elect_watch(const dv_elect_options *options, dv_session *session) {
    divvy_election_config config = dv_elect_config(options);
    divvy_election *election;
    dv_output output = {.stop_fd = dv_dispositions_receive_ends()};
    if (output.stop_fd < 0) { /* Nothing could end it. */
        dv_command_say("cannot receive signals: %s", strerror(errno));
        return DV_EXIT_TROUBLE;
    }
    config.on_leader = on_leader;
    config.user = &output;
    int error = divvy_election_create(&election, session->client, &config);
    int code = error ? dv_session_refused(session, error) : watch_until_asked(session, &output);
    divvy_election_destroy(election);
    close(output.stop_fd);
    return code;
}

/* ---- asking ---- */

static int tell(const dv_elect_options *options, const dv_session *session, int error) {
    if (error == 0) return DV_EXIT_DONE;
    if (error == DIVVY_ENOENT) dv_command_say("nobody leads \"%s\"", options->name);
    else if (error == DIVVY_ETIMEDOUT)
        dv_command_say("the leader of \"%s\" has not stepped down within %" PRId64 " ms", options->name,
                       options->timeout_ms);
    else return dv_session_refused(session, error);
    return DV_EXIT_TIMED_OUT;
}

int dv_elect_step_down(const dv_elect_options *options, dv_session *session) {
    divvy_election_config config = dv_elect_config(options);
    divvy_election *election;
    int error, code = 0;
    while ((code = dv_session_check(session)) == 0 && !session->connected) {
        int64_t wait_ms = dv_session_until_check_ms(session);
        divvy_client_process(session->client, wait_ms < 0 || wait_ms > INT_MAX ? 1000 : (int)wait_ms);
    }
    if (code) return code;
    error = divvy_election_create(&election, session->client, &config);
    if (error) return dv_session_refused(session, error);
    code = tell(options, session, divvy_election_ask_step_down(election, options->timeout_ms));
    divvy_election_destroy(election);
    return code;
}
