/* The scenarios, a file for each recipe. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SWEEP_SCENARIOS_H
#define DV_SWEEP_SCENARIOS_H

#include "sweep.h"

/* group, name, whether it runs on an ensemble */
#define SWEEP_SCENARIOS(X)             \
    X(client, chroot, true)            \
    X(client, batch, true)             \
    X(command, status, true)           \
    X(command, status_json, true)      \
    X(command, status_format, true)    \
    X(command, explain, true)          \
    X(command, explain_paused, true)   \
    X(command, history, true)          \
    X(command, history_json, true)     \
    X(command, doctor, true)           \
    X(command, doctor_json, true)      \
    X(command, locks, true)            \
    X(command, locks_one, true)        \
    X(command, locks_json, true)       \
    X(command, services, true)         \
    X(command, services_healthy, true) \
    X(command, services_none, true)    \
    X(command, services_json, true)    \
    X(command, plan, true)             \
    X(command, plan_json, true)        \
    X(command, drain, true)            \
    X(command, drain_undo, true)       \
    X(command, drain_dry_run, true)    \
    X(command, pin, true)              \
    X(command, unpin, true)            \
    X(command, move, true)             \
    X(command, pause, true)            \
    X(command, resume, true)           \
    X(command, need, true)             \
    X(command, need_list, true)        \
    X(command, set, true)              \
    X(command, set_list, true)         \
    X(command, explain_format, true)   \
    X(command, history_format, true)   \
    X(command, locks_format, true)     \
    X(command, need_undo, true)        \
    X(command, plan_members, true)     \
    X(command, plan_page, true)        \
    X(command, services_format, true)  \
    X(command, set_default, true)      \
    X(command, unpin_wait, true)       \
    X(command, page, true)             \
    X(member, works, true)             \
    X(member, is_measured, true)       \
    X(member, is_told, true)           \
    X(member, is_many, true)           \
    X(native, open, false)             \
    X(native, attach, false)           \
    X(death_watch, told, true)         \
    X(election, asked, true)           \
    X(election, preferred, true)       \
    X(handover, prepared, true)        \
    X(loads, told, true)               \
    X(lock, exclusive, true)           \
    X(lock, read, true)                \
    X(lock, write, true)               \
    X(party, deep, true)               \
    X(party, shallow, true)            \
    X(partitioner, incremental, true)  \
    X(partitioner, eager, true)        \
    X(partitioner, kazoo, true)        \
    X(pool, asked, true)               \
    X(print, lines, true)              \
    X(print, ledger, true)             \
    X(print, locks, true)              \
    X(print, forecast, true)           \
    X(print, changes, true)            \
    X(print, history, true)            \
    X(print, rows, true)               \
    X(print, status, true)             \
    X(print, explain, true)            \
    X(print, doctor, true)             \
    X(print, operator, true)           \
    X(pure, assign, false)             \
    X(pure, note, false)               \
    X(pure, plan, false)               \
    X(registry, heartbeats, true)      \
    X(registry, automatic, true)       \
    X(registry, unique, true)          \
    X(registry, view, true)            \
    X(registry, view_of_all, true)     \
    X(roll, followed, true)            \
    X(run, lock, true)                 \
    X(run, lock_slot, true)            \
    X(run, elect, true)                \
    X(run, elect_watch, true)          \
    X(run, announce, true)             \
    X(run, announce_load, true)        \
    X(semaphore, error, true)          \
    X(semaphore, stored, true)         \
    X(semaphore, provided, true)

#define SWEEP_DECLARE(group, name, ensemble) void sweep_##group##_##name(sweep *s);
SWEEP_SCENARIOS(SWEEP_DECLARE)
#undef SWEEP_DECLARE

#endif
