/* One member of a pool in `divvy partition`. SPDX-License-Identifier: Apache-2.0 */
#include "partition_member.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "log.h"

/* ---- what is owned ---- */

/* Answers DIVVY_RELEASE as soon as our commands have stopped. Work of the reader of our lines is not ours to wait for.
 * Where it could not be written, the process ends anyway. DIVVY_ESTATE: the state has moved on meanwhile, and is told
 * next. */
static void release_if_clear(dv_partition_member *m) {
    if (!m->to_release || (m->supervisor && !dv_supervisor_is_clear(m->supervisor))) return;
    m->to_release = false;
    divvy_partitioner_release_set(m->p);
}

/* Tells the guardians until when commands may run. After a loss the client soon has another session, which is of no use
 * to commands that run under the old one. */
static void tell_deadline(dv_partition_member *m) {
    assert(m->supervisor && m->guardians);
    int64_t now_ms = dv_guardians_now_ms(), id = divvy_client_session_id(m->session.client);
    bool runs = dv_supervisor_running(m->supervisor) > 0;
    if (runs && id != m->session_id) m->session_over = true;
    if (!runs) m->session_over = false;
    m->session_id = id;
    int64_t left_ms = m->session_over ? 0 : divvy_client_time_left_ms(m->session.client);
    assert(left_ms >= 0);
    dv_supervisor_set_time_left(m->supervisor, now_ms, left_ms);
}

/* ---- what the library tells ---- */

static void supervise_items(dv_partition_member *m, const divvy_items_event *event) {
    assert(m->supervisor);
    /* After --allocate-timeout the locks are there until we finish: time to drain. */
    if (event->reason == DIVVY_REASON_TIMEOUT) dv_supervisor_revoke(m->supervisor, event->lost, event->lost_count);
    else dv_supervisor_lose(m->supervisor, event->lost, event->lost_count);
    dv_supervisor_gain(m->supervisor, event->gained, event->gained_tokens, event->gained_count);
    dv_supervisor_revoke(m->supervisor, event->revoked, event->revoked_count);
    if (event->reason == DIVVY_REASON_SESSION) dv_supervisor_dismiss(m->supervisor);
    if (m->options.standby) dv_supervisor_prepare(m->supervisor, event->prepare, event->prepare_count);
    if (event->reason == DIVVY_REASON_SESSION && dv_supervisor_running(m->supervisor) > 0) m->session_over = true;
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p;
    dv_partition_member *m = user;
    /* Commands first: the reader of the line may let us wait. */
    if (m->supervisor) supervise_items(m, event);
    dv_ledger_items(&m->ledger, event);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from;
    dv_partition_member *m = user;
    char reason[DV_SESSION_REASON_BYTES] = "";
    if (to == DIVVY_FAILURE && divvy_partitioner_failure(p, reason, sizeof reason) == DIVVY_ECANCELED &&
        *m->session.ending)
        snprintf(reason, sizeof reason, "%s", m->session.ending);
    dv_ledger_state(&m->ledger, to, to == DIVVY_FAILURE ? reason : NULL);
    m->to_release = to == DIVVY_RELEASE;
    release_if_clear(m);
}

static bool is_owned(const char *item, void *user) {
    return divvy_partitioner_owns(((dv_partition_member *)user)->p, item);
}

static void on_ready(const char *item, void *user) {
    divvy_partitioner_prepared(((dv_partition_member *)user)->p, item);
}

static void on_child(const dv_child_event *event, void *user) {
    dv_partition_member *m = user;
    dv_partition_load_child(&m->load, event);
    dv_ledger_child(&m->ledger, event);
    dv_quarantine_child(&m->quarantine, event);
}

/* ---- the beginning ---- */

void dv_partition_member_init(dv_partition_member *m) {
    const dv_partition_options *o = &m->options;
    m->session = (dv_session){.command = "partition",
                              .what_ends = "ownership",
                              .failed = DV_EXIT_FAILED,
                              .unreachable = DV_EXIT_UNREACHABLE,
                              .options = &o->session,
                              .member = o->sessions > 1 ? o->identifier : NULL};
    m->load = (dv_partition_load){.options = o, .ledger = &m->ledger};
    m->quarantine = (dv_quarantine){.options = o};
}

int dv_partition_member_prepare(dv_partition_member *m, const char *program) {
    const dv_partition_options *o = &m->options;
    if (!m->guardians) return 0;
    dv_supervise_config config = {.program = program,
                                  .arguments = o->arguments,
                                  .restart = (dv_restart)o->restart,
                                  .session_timeout_ms = o->session.session_timeout_ms,
                                  .drain_ms = o->drain_ms,
                                  .standby = o->standby,
                                  .is_owned = is_owned,
                                  .on_child = on_child,
                                  .on_ready = on_ready,
                                  .user = m};
    return dv_supervisor_open(&m->supervisor, &config, m->guardians);
}

int dv_partition_member_open(dv_partition_member *m) {
    m->session.watched_by = m->guardians; /* NULL: what reads our lines works on when we have died. */
    int code = dv_session_open(&m->session);
    if (code != 0) return code;
    dv_partition_load_open(&m->load, m->session.client);
    dv_quarantine_open(&m->quarantine, m->session.client);
    return 0;
}

int dv_partition_member_join(dv_partition_member *m, const char *const *items, size_t item_count) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    dv_log_about(m->session.member);
    dv_partition_options_fill(&m->options, &config);
    config.items = items;
    config.item_count = item_count;
    config.on_session_loss = m->ledger.rejoins ? DIVVY_REJOIN : DIVVY_FAIL;
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = m;
    int error = divvy_partitioner_create(&m->p, m->session.client, &config);
    m->load.p = m->quarantine.p = m->p;
    int code = error ? dv_session_refused(&m->session, error) : 0;
    if (code == 0) dv_ledger_state(&m->ledger, DIVVY_ALLOCATING, NULL);
    dv_log_about(NULL);
    return code;
}

int dv_partition_member_check(dv_partition_member *m) {
    if (m->p && divvy_partitioner_failure(m->p, NULL, 0) != 0) return 0;
    dv_log_about(m->session.member);
    int code = dv_session_check(&m->session);
    dv_log_about(NULL);
    return code;
}

/* ---- the loop ---- */

int64_t dv_partition_member_next_ms(const dv_partition_member *m) {
    int64_t wait_ms = divvy_client_next_deadline(m->session.client);
    wait_ms = dv_session_sooner(wait_ms, dv_session_until_metrics_ms(&m->session));
    if (m->supervisor) wait_ms = dv_session_sooner(wait_ms, dv_supervisor_next_ms(m->supervisor));
    wait_ms = dv_session_sooner(wait_ms, dv_partition_load_next_ms(&m->load));
    return dv_session_sooner(wait_ms, dv_quarantine_next_ms(&m->quarantine));
}

void dv_partition_member_poll(const dv_partition_member *m, struct pollfd *fds) {
    fds[0] = (struct pollfd){.fd = divvy_client_fd(m->session.client), .events = POLLIN};
    fds[1] = (struct pollfd){.fd = m->supervisor ? dv_supervisor_fd(m->supervisor) : -1, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = dv_partition_load_fd(&m->load), .events = POLLIN};
}

void dv_partition_member_step(dv_partition_member *m) {
    dv_log_about(m->session.member);
    divvy_client_process(m->session.client, 0);
    if (m->supervisor) {
        tell_deadline(m);
        dv_supervisor_process(m->supervisor);
        dv_session_keep(&m->session, dv_supervisor_works(m->supervisor));
        release_if_clear(m);
    }
    dv_partition_load_step(&m->load);
    dv_quarantine_step(&m->quarantine);
    dv_session_write_metrics(&m->session);
    dv_log_about(NULL);
}

size_t dv_partition_member_running(const dv_partition_member *m) {
    return m->supervisor ? dv_supervisor_running(m->supervisor) : 0;
}

bool dv_partition_member_must_end(const dv_partition_member *m) {
    return m->ledger.out_of_memory || m->ledger.state == DIVVY_FAILURE ||
           (m->supervisor && dv_supervisor_error(m->supervisor));
}

bool dv_partition_member_is_replaced(const dv_partition_member *m) {
    bool idle = m->ledger.owned_count == 0 && m->ledger.state != DIVVY_RELEASE && dv_partition_member_running(m) == 0;
    return m->options.replace && idle && divvy_partitioner_is_replaced(m->p);
}

/* ---- the end ---- */

static int judge(dv_partition_member *m) {
    if (m->supervisor && dv_supervisor_error(m->supervisor))
        return dv_session_end(&m->session, DV_EXIT_FAILED, "no more commands can be started: %s",
                              strerror(dv_supervisor_error(m->supervisor)));
    if (m->ledger.out_of_memory) return dv_session_end(&m->session, DV_EXIT_FAILED, "out of memory");
    if (m->ledger.state != DIVVY_FAILURE) return DV_EXIT_DONE;
    char reason[DV_SESSION_REASON_BYTES] = "";
    divvy_partitioner_failure(m->p, reason, sizeof reason);
    return dv_session_end(&m->session, DV_EXIT_FAILED, "FAILURE: %s", reason);
}

int dv_partition_member_judge(dv_partition_member *m) {
    dv_log_about(m->session.member);
    int code = judge(m);
    dv_log_about(NULL);
    return code;
}

static bool is_connected(const dv_partition_member *m) {
    return divvy_client_state(m->session.client) == DIVVY_CONNECTED;
}

/* A static member comes back, and its items wait for it. Without a connection there is nobody to hand over to. */
void dv_partition_member_hand_over(dv_partition_member *m) {
    const dv_partition_options *o = &m->options;
    m->hands_over = o->handover_timeout_ms > 0 && o->mode == DIVVY_INCREMENTAL && o->assign == DIVVY_ASSIGN_AUTO &&
                    o->rejoin_delay_ms == 0 && is_connected(m);
    if (m->hands_over) divvy_partitioner_leave(m->p, DIVVY_LEAVE_WORKING, 0);
}

bool dv_partition_member_is_handing_over(const dv_partition_member *m) {
    return m->hands_over && !dv_partition_member_must_end(m) && is_connected(m);
}

void dv_partition_member_end_commands(dv_partition_member *m, bool at_once) {
    if (m->supervisor) dv_supervisor_end(m->supervisor, at_once ? 0 : m->options.drain_ms);
}

void dv_partition_member_tell_end(dv_partition_member *m) {
    dv_log_about(m->session.member);
    while (m->ledger.state != DIVVY_FAILURE && divvy_client_process(m->session.client, 0) > 0) continue;
    if (m->ledger.state != DIVVY_FAILURE)
        dv_ledger_state(&m->ledger, DIVVY_FAILURE, *m->session.ending ? m->session.ending : DV_LEDGER_FINISHED);
    dv_log_about(NULL);
}

void dv_partition_member_close(dv_partition_member *m) {
    dv_log_about(m->session.member);
    dv_metrics_file_end(&m->session.metrics, m->session.client); /* while the pool is among them */
    dv_quarantine_close(&m->quarantine);
    divvy_partitioner_destroy(m->p);
    dv_session_close(&m->session);
    dv_log_about(NULL);
}

void dv_partition_member_free(dv_partition_member *m) {
    dv_partition_load_close(&m->load);
    dv_supervisor_close(m->supervisor);
    dv_guardians_close(m->guardians);
    dv_ledger_free(&m->ledger);
}
