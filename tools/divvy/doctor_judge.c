/* The faults of servers and a session. SPDX-License-Identifier: Apache-2.0 */
#include "doctor_judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "shell_word.h"

/* SLOW_MS: a read that takes so long slows each change of a pool down. SKEW_MS: ages that are off by less mislead
 * nobody. PATIENCE_MS: as release_warn_ms of a member; what lasts for less is on its way. */
enum { SLOW_MS = 100, SKEW_MS = 2000, PATIENCE_MS = 10000, COMFORTABLE_TICKS = 5 };

static const char whitelist[] = "set 4lw.commands.whitelist=srvr,conf,cons,mntr in zoo.cfg of each server";

/* ---- clocks and connections ---- */

const dv_word_connection *dv_doctor_connection(const dv_doctor *d, int64_t session) {
    for (size_t i = 0; i < d->servers.connection_count; i++) {
        if (d->servers.connections[i].session == session) return &d->servers.connections[i];
    }
    return NULL;
}

/* A server dates each connection. Ours was made between two looks at our own clock. */
int64_t dv_doctor_skew_ms(const dv_doctor *d) {
    const dv_word_connection *ours = d->looked ? dv_doctor_connection(d, d->session) : NULL;
    if (!ours || ours->established_ms <= 0) return 0;
    if (ours->established_ms > d->connected_ms) return ours->established_ms - d->connected_ms;
    return ours->established_ms < d->opened_ms ? ours->established_ms - d->opened_ms : 0;
}

int64_t dv_doctor_age_ms(const dv_doctor *d, int64_t since_ms) {
    int64_t age_ms = d->status.read_at_ms + dv_doctor_skew_ms(d) - since_ms;
    return age_ms > 0 ? age_ms : 0;
}

int64_t dv_doctor_plan_age_ms(const dv_doctor *d) {
    return d->planned_ms ? dv_doctor_age_ms(d, d->planned_ms) : 0;
}

dv_doctor_level dv_doctor_level_of(int64_t age_ms) {
    return age_ms >= PATIENCE_MS ? DV_DOCTOR_WARNING : DV_DOCTOR_NOTE;
}

const char *dv_doctor_root(const dv_doctor *d) {
    return strcmp(d->path, "/") == 0 ? "" : d->path;
}

static void judge_clock(const dv_doctor *d, dv_findings *f) {
    bool known = d->looked && dv_doctor_connection(d, d->session);
    int64_t skew_ms = dv_doctor_skew_ms(d), off_ms = skew_ms < 0 ? -skew_ms : skew_ms;
    if (!known) return;
    dv_finding *finding =
        dv_findings_add(f, off_ms >= SKEW_MS ? DV_DOCTOR_WARNING : DV_DOCTOR_OK, "clock", "this machine");
    if (off_ms < SKEW_MS) {
        dv_finding_what(finding, "its clock agrees with that of the servers to %d s", SKEW_MS / 1000);
        return;
    }
    dv_finding_what(finding, "its clock is %.1f s %s that of the servers", (double)off_ms / 1000,
                    skew_ms > 0 ? "behind" : "ahead of");
    dv_finding_why(finding, "ages that commands show are wrong by that; no ownership depends on it");
    dv_finding_todo(finding, "chronyc makestep, where the clock is wrong: there or here");
}

/* ---- servers ---- */

static void judge_absent(const dv_doctor *d, const dv_server *s, dv_finding *finding) {
    char host[DV_SHELL_WORD_BYTES];
    switch (s->state) {
    case DV_SERVER_UNRESOLVED:
        dv_finding_what(finding, "the host name cannot be resolved: %s", s->reason);
        dv_finding_why(finding, "no client can reach this server");
        dv_finding_todo(finding, "correct the name in --connect, or in DNS: getent hosts %s",
                        dv_shell_word(host, "HOST", "%.*s", (int)strcspn(s->host, ":"), s->host));
        break;
    case DV_SERVER_UNREACHABLE:
        dv_finding_what(finding, "the server cannot be reached at %s: %s", s->address, s->reason);
        dv_finding_why(finding, "it does not run, or something between drops connections");
        dv_finding_todo(finding, "start it, as by systemctl start zookeeper; or take it out of --connect");
        break;
    case DV_SERVER_CLOSES:
        dv_finding_what(finding, "the server closes each connection at once");
        dv_finding_why(finding,
                       "it has no room for one more from here (maxClientCnxns) or from anywhere (maxCnxns), or "
                       "is still starting");
        dv_finding_todo(finding,
                        "ss -tnp dst %s shows those from here: end what leaks them, or raise maxClientCnxns in "
                        "zoo.cfg",
                        s->address);
        break;
    case DV_SERVER_REFUSED:
        dv_finding_what(finding, "the server must not be used over TLS: %s", s->reason);
        dv_finding_todo(finding, "renew its certificate, or name its secureClientPort in --connect");
        break;
    default:
        dv_finding_what(finding, "the server takes connections, and has not answered within %" PRId64 " ms",
                        d->server_timeout_ms);
        dv_finding_why(finding, "it is frozen, swaps, collects garbage, or is overloaded");
        dv_finding_todo(finding, "look at its process on that machine; if it is only slow: --server-timeout 5s");
    }
}

static void judge_present(const dv_server *s, dv_finding *finding) {
    if (s->srvr.not_serving) {
        dv_finding_what(finding, "the server is up and serves nobody: it sees no majority of the ensemble");
        dv_finding_why(finding, "more than half of all servers must run and reach one another");
        dv_finding_todo(finding, "start the other servers, or mend the network between them");
    } else if (s->srvr.read_only) {
        dv_finding_what(finding, "the server is read-only: it sees no majority of the ensemble");
        dv_finding_why(finding, "nothing can be owned, as that takes writes; more than half of all servers must run");
        dv_finding_todo(finding, "start the other servers, or mend the network between them");
    } else if (s->srvr.told) {
        dv_finding_what(finding, "%s, answers within %" PRId64 " ms", s->srvr.mode, s->took_ms);
    } else {
        dv_finding_what(finding, "answers within %" PRId64 " ms, and does not tell its role", s->took_ms);
        dv_finding_why(finding, "the word srvr is not allowed there, so that not all can be checked");
        dv_finding_todo(finding, "%s", whitelist);
    }
}

static void judge_connections(const dv_doctor *d, dv_findings *f) {
    size_t good = 0;
    for (size_t i = 0; i < d->servers.count; i++) good += dv_server_serves(&d->servers.list[i]);
    /* A pool bears the loss of a minority. */
    dv_doctor_level bad = 2 * good > d->servers.count ? DV_DOCTOR_WARNING : DV_DOCTOR_ERROR;
    for (size_t i = 0; i < d->servers.count; i++) {
        const dv_server *s = &d->servers.list[i];
        dv_doctor_level level = !dv_server_serves(s) ? bad : s->srvr.told ? DV_DOCTOR_OK : DV_DOCTOR_NOTE;
        dv_finding *finding = dv_findings_add(f, level, "connection", s->host);
        if (s->state == DV_SERVER_ANSWERS) judge_present(s, finding);
        else judge_absent(d, s, finding);
    }
}

/* Judges what a server had not applied when it was asked after all others had answered. */
static void judge_lag(const dv_doctor *d, dv_findings *f) {
    uint64_t newest = 0;
    for (size_t i = 0; i < d->servers.count; i++) {
        if (d->servers.list[i].srvr.zxid > newest) newest = d->servers.list[i].srvr.zxid;
    }
    for (size_t i = 0; i < d->servers.count; i++) {
        const dv_server *s = &d->servers.list[i];
        uint64_t zxid = s->later.zxid;
        if (!s->later.told || zxid == 0 || zxid >= newest) continue;
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "lag", s->host);
        if (zxid >> 32 == newest >> 32)
            dv_finding_what(finding, "the %s is %" PRIu64 " transactions behind", s->srvr.mode, newest - zxid);
        else dv_finding_what(finding, "the %s has not applied anything since the last election", s->srvr.mode);
        dv_finding_why(finding, "its clients see old data, and learn late of a change");
        dv_finding_todo(finding, "look at the load and the disk of its machine: iostat -x 1");
    }
}

/* Returns whether no other server has the data, or it is not known that one has. */
static bool stands_alone(const dv_server *s) {
    if (strcmp(s->srvr.mode, "standalone") == 0) return true;
    return s->conf.server_count == 1 || (s->conf.server_count == 0 && !s->srvr.told);
}

/* `wrong` of `all` servers are so. */
static void judge_tree(const dv_server *s, size_t wrong, size_t all, dv_findings *f) {
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_ERROR, "tree", s->host);
    if (stands_alone(s)) {
        dv_finding_what(finding, "after %" PRId64 " transactions its tree was not what its log says", s->mismatches);
        dv_finding_why(finding, "it lacks nodes, or shows deleted ones, and no other server has them");
        dv_finding_todo(finding, "stop it, and copy the folders version-2 of its dataDir and dataLogDir away; then "
                                 "restore a backup, or compare its nodes with one");
        return;
    }
    dv_finding_why(finding, "it lacks nodes, or shows deleted ones: an item could have two owners");
    if (2 * wrong < all) {
        dv_finding_what(finding, "after %" PRId64 " transactions its tree was not its leader's", s->mismatches);
        dv_finding_todo(finding, "while all other servers run, stop it, empty the folders version-2 of its dataDir and "
                                 "dataLogDir, and start it");
    } else {
        dv_finding_what(finding,
                        "after %" PRId64 " transactions its tree was not its leader's; so it is on %zu of %zu "
                        "servers",
                        s->mismatches, wrong, all);
        dv_finding_todo(finding, "copy the folders version-2 of all servers away, and find out whose nodes are right; "
                                 "then empty those of one wrong server, and wait until it follows before the next");
    }
}

/* A server that lost transactions, or has some that never were, says so itself: each has a digest of the tree behind
 * it. */
static void judge_trees(const dv_doctor *d, dv_findings *f) {
    size_t wrong = 0, all = d->servers.count;
    for (size_t i = 0; i < d->servers.count; i++) {
        wrong += d->servers.list[i].mismatches > 0;
        if (d->servers.list[i].conf.server_count > all) all = d->servers.list[i].conf.server_count;
    }
    for (size_t i = 0; i < d->servers.count; i++) {
        if (d->servers.list[i].mismatches > 0) judge_tree(&d->servers.list[i], wrong, all, f);
    }
}

/* ---- the session ---- */

/* The first one that tells. */
static const dv_word_conf *known_conf(const dv_doctor *d) {
    for (size_t i = 0; i < d->servers.count; i++) {
        if (d->servers.list[i].conf.tick_ms) return &d->servers.list[i].conf;
    }
    return NULL;
}

/* Returns the servers' tick, or what we were told of it; 0: it is not known. */
static int64_t ensemble_tick_ms(const dv_doctor *d) {
    const dv_word_conf *conf = known_conf(d);
    return conf ? conf->tick_ms : d->tick_ms;
}

static void judge_session(const dv_doctor *d, dv_findings *f) {
    if (!d->look_error) return;
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_ERROR, "connection", d->failed_path);
    dv_finding_what(finding, "%s", d->look_reason);
    if (d->look_error == DIVVY_EAUTH) {
        dv_finding_why(finding, "the servers do not take our credentials");
        dv_finding_todo(finding, "give or correct --auth-file, --sasl-user and its password, or --tls-cert");
    } else {
        dv_finding_why(finding, "nothing of the pool could be read");
        dv_finding_todo(finding, "run it again with --verbose, which shows what the connection does");
    }
}

static int compare_times(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void judge_latency(const dv_doctor *d, dv_findings *f) {
    int64_t times_us[DV_DOCTOR_READS];
    if (d->read_count == 0 || d->look_error) return; /* A refused read tells no time. */
    memcpy(times_us, d->read_us, d->read_count * sizeof *times_us);
    qsort(times_us, d->read_count, sizeof *times_us, compare_times);
    double median_ms = (double)times_us[d->read_count / 2] / 1000;
    double longest_ms = (double)times_us[d->read_count - 1] / 1000;
    bool slow = median_ms >= SLOW_MS;
    dv_finding *finding = dv_findings_add(f, slow ? DV_DOCTOR_WARNING : DV_DOCTOR_OK, "latency", "");
    dv_finding_what(finding, "a read takes %.1f ms, the longest of %zu took %.1f ms", median_ms, d->read_count,
                    longest_ms);
    if (!slow) return;
    dv_finding_why(finding, "each step of a change takes that long, and heartbeats do");
    int64_t ticks_ms = COMFORTABLE_TICKS * ensemble_tick_ms(d);
    if (ticks_ms)
        dv_finding_todo(finding, "name nearer servers in --connect, or set --session-timeout to more than %.0f ms",
                        4 * longest_ms + (double)ticks_ms);
    else dv_finding_todo(finding, "name nearer servers in --connect");
}

/* ---- ticks and timeouts ---- */

static void judge_ticks_alike(const dv_doctor *d, int64_t tick_ms, dv_findings *f) {
    for (size_t i = 0; i < d->servers.count; i++) {
        const dv_server *s = &d->servers.list[i];
        if (!s->conf.tick_ms || s->conf.tick_ms == tick_ms) continue;
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_ERROR, "tick", s->host);
        dv_finding_what(finding, "its tickTime is %" PRId64 " ms, and that of another server %" PRId64 " ms",
                        s->conf.tick_ms, tick_ms);
        dv_finding_why(finding, "after an election another tick counts, and an item could have two owners");
        dv_finding_todo(finding, "set the same tickTime in zoo.cfg of all servers");
    }
}

static void judge_tick(const dv_doctor *d, dv_findings *f) {
    const dv_word_conf *conf = known_conf(d);
    int64_t tick_ms = conf ? conf->tick_ms : 0, told_ms = d->tick_ms;
    if (!conf) {
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_NOTE, "tick", "");
        dv_finding_what(finding, "no server tells its tickTime");
        dv_finding_why(finding, "a client that is told a smaller one than they have cannot find the mistake");
        dv_finding_todo(finding, "%s", whitelist);
        return;
    }
    judge_ticks_alike(d, tick_ms, f);
    dv_finding *finding =
        dv_findings_add(f, told_ms == tick_ms ? DV_DOCTOR_OK : DV_DOCTOR_NOTE, "tick", "DIVVY_ENSEMBLE_TICK_MS");
    dv_finding_what(finding, "the servers' tickTime is %" PRId64 " ms", tick_ms);
    if (told_ms == tick_ms) return;
    dv_finding_todo(finding, "export DIVVY_ENSEMBLE_TICK_MS=%" PRId64, tick_ms);
    if (told_ms == 0) {
        dv_finding_why(finding, "it is not set here, and members do not start without it or --ensemble-tick");
    } else if (told_ms > tick_ms) {
        dv_finding_what(finding, "we are told a tick of %" PRId64 " ms, and the servers have %" PRId64 " ms", told_ms,
                        tick_ms);
        dv_finding_why(finding, "that is safe, and costs time");
    } else {
        finding->level = DV_DOCTOR_ERROR;
        dv_finding_what(finding, "we are told a tick of %" PRId64 " ms, and the servers have %" PRId64 " ms", told_ms,
                        tick_ms);
        dv_finding_why(finding, "a member that believes it would own items for too long: it is refused");
    }
}

static void judge_bounds(const dv_doctor *d, const dv_word_conf *conf, dv_findings *f) {
    int64_t asked_ms = d->session_timeout_ms, given_ms = asked_ms;
    if (conf && conf->max_timeout_ms && given_ms > conf->max_timeout_ms) given_ms = conf->max_timeout_ms;
    if (conf && given_ms < conf->min_timeout_ms) given_ms = conf->min_timeout_ms;
    bool granted = d->looked && d->granted_ms > 0;
    if (granted) given_ms = d->granted_ms;
    if (!granted && !conf) return; /* Nobody has said anything. */
    dv_finding *finding = dv_findings_add(f, given_ms == asked_ms ? DV_DOCTOR_OK : DV_DOCTOR_WARNING, "timeouts", "");
    dv_finding_what(finding, "a session that asks for %" PRId64 " ms gets %" PRId64 " ms", asked_ms, given_ms);
    if (given_ms == asked_ms) return;
    if (conf)
        dv_finding_why(finding, "the servers allow %" PRId64 " to %" PRId64 " ms", conf->min_timeout_ms,
                       conf->max_timeout_ms);
    dv_finding_todo(finding, "set --session-timeout to %" PRId64 "ms, or %s in zoo.cfg to %" PRId64, given_ms,
                    given_ms < asked_ms ? "maxSessionTimeout" : "minSessionTimeout", asked_ms);
}

static void judge_timeouts(const dv_doctor *d, dv_findings *f) {
    int64_t tick_ms = ensemble_tick_ms(d), asked_ms = d->session_timeout_ms;
    judge_bounds(d, known_conf(d), f);
    if (!tick_ms || asked_ms >= COMFORTABLE_TICKS * tick_ms) return;
    int64_t least_ms = (int64_t)(((double)tick_ms / 2 + 121) / 0.64) + 1; /* client.h: session_timeout_ms */
    dv_finding *finding = dv_findings_add(f, asked_ms < least_ms ? DV_DOCTOR_ERROR : DV_DOCTOR_WARNING, "timeouts", "");
    dv_finding_what(finding, "a session timeout of %" PRId64 " ms is short for a tick of %" PRId64 " ms", asked_ms,
                    tick_ms);
    dv_finding_why(finding, "the least that can own something is %" PRId64 " ms; shorter breaks of a connection end it",
                   least_ms);
    dv_finding_todo(finding, "set --session-timeout to %" PRId64 "ms or more", COMFORTABLE_TICKS * tick_ms);
}

/* ---- the whole ---- */

static void judge_words(const dv_doctor *d, dv_findings *f) {
    size_t mute = 0, twofold = 0, all = d->servers.ensemble_count;
    for (size_t i = 0; i < d->servers.count; i++) {
        const dv_server *s = &d->servers.list[i];
        mute += dv_server_serves(s) && !s->lists_clients;
        twofold += dv_server_serves(s) && s->conf.has_two_ports;
    }
    bool unnamed = mute + twofold == 0 && d->servers.count < all;
    if (d->servers.all_clients || !d->looked || mute + twofold + unnamed == 0) return;
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_NOTE, "connection", "");
    dv_finding_why(finding, "so a member that has died cannot be told from one that is connected elsewhere");
    if (mute) {
        dv_finding_what(finding, "%zu of the servers do%s not list their clients", mute, mute == 1 ? "es" : "");
        dv_finding_why(finding, "so neither ghosts and frozen members nor clocks can be told");
        dv_finding_todo(finding, "%s; if the list is only slow: --server-timeout 5s", whitelist);
    } else if (twofold) {
        dv_finding_what(finding, "servers serve clients in plain text and over TLS, and list those of our kind only");
    } else {
        dv_finding_what(finding, "the ensemble has %zu servers, and we have seen the clients of %zu", all,
                        d->servers.listing_count);
        dv_finding_todo(finding, "name all servers in --connect");
    }
}

void dv_doctor_judge_servers(const dv_doctor *d, dv_findings *f) {
    judge_connections(d, f);
    judge_session(d, f);
    judge_words(d, f);
    judge_lag(d, f);
    judge_trees(d, f);
    if (!d->looked && !known_conf(d)) return; /* No server has told anything. */
    judge_tick(d, f);
    judge_timeouts(d, f);
    judge_latency(d, f);
    judge_clock(d, f);
}
