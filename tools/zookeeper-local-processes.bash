# Part of zookeeper-local: processes that are on record in a file, and free ports. SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

readonly POLL_S=0.02

# die STATUS MESSAGE...
die() {
    local status=$1
    shift
    printf 'zookeeper-local: %s\n' "$*" >&2
    exit "$status"
}

# Sets NOW_MS. The wall clock may jump, the uptime does not.
clock_read() {
    local uptime
    read -r uptime _ </proc/uptime
    NOW_MS=$((10#${uptime/./} * 10))
}

# process_read PID: sets PROCESS_STATE and PROCESS_START; fails if there is no such process.
process_read() {
    local line fields
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    # The second field is the command in parentheses and may hold anything, so that we count from its end.
    read -ra fields <<<"${line##*) }"
    PROCESS_STATE=${fields[0]}
    PROCESS_START=${fields[19]}
}

# process_is PID START: whether that very process still runs. A zombie has ended, whether or not anyone reaps it.
process_is() {
    process_read "$1" && [[ $PROCESS_START == "$2" && $PROCESS_STATE != [ZX] ]]
}

# recorded_is FILE: whether the process that FILE records runs; sets RECORDED_PID.
recorded_is() {
    local start
    { read -r RECORDED_PID start <"$1"; } 2>/dev/null || return 1
    process_is "$RECORDED_PID" "$start"
}

# recorded_end FILE...: kills the processes recorded and waits until they are gone. SIGKILL, for the data are thrown
# away, and a frozen process heeds nothing else.
recorded_end() {
    local file deadline_ms
    for file in "$@"; do
        if recorded_is "$file"; then kill -KILL "$RECORDED_PID" 2>/dev/null || true; fi
    done
    clock_read
    deadline_ms=$((NOW_MS + 10000))
    for file in "$@"; do
        while recorded_is "$file"; do
            clock_read
            ((NOW_MS < deadline_ms)) || die 1 "process $RECORDED_PID does not end"
            sleep "$POLL_S"
        done
    done
}

# Cuts the present subshell loose from our caller: the reader of our output waits for every holder of the pipe, and
# a lock file or a socket of the caller must not live on in a server. LD_PRELOAD is a matter of the caller too.
detach() {
    local fd
    for fd in /proc/"$BASHPID"/fd/*; do
        fd=${fd##*/}
        if ((fd > 2)); then exec {fd}>&-; fi
    done
    unset LD_PRELOAD
}

# record_self FILE: notes the present subshell's process. It does so itself, before it execs, and not its parent
# afterwards: so the process is on record from the beginning, even if the parent is killed between.
record_self() {
    process_read "$BASHPID"
    printf '%s %s\n' "$BASHPID" "$PROCESS_START" >"$1"
}

# wait_recorded FILE: waits for record_self in a child.
wait_recorded() {
    local tries
    for ((tries = 0; tries < 500; tries++)); do
        if [[ -s $1 ]]; then return 0; fi
        sleep "$POLL_S"
    done
    die 1 "no process has come up for $1"
}

# --- ports -------------------------------------------------------------------------------------------------------

# choose_ports BASE COUNT: sets PORTS. They lie below the range from which the kernel takes ports for outgoing
# connections: so none of those takes the port of a server that is down for a restart, and no client that tries to
# reconnect to it ends up connected to itself.
choose_ports() {
    local base=$1 count=$2 low=20000 high=32767 ephemeral port address
    local -A taken=()
    read -r ephemeral _ </proc/sys/net/ipv4/ip_local_port_range
    if ((ephemeral > low + 1000 && ephemeral <= high)); then high=$((ephemeral - 1)); fi
    while read -r _ address _; do
        if [[ $address == *:* ]]; then taken[$((16#${address##*:}))]=1; fi
    done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
    # A neighbour's server may be down for a restart; and on its port for followers it listens only while it leads.
    while read -r port; do
        taken[$port]=1
    done < <(grep -Ehow '[0-9]{5}' "$base"/zookeeper-local.*/*/zoo.cfg 2>/dev/null)
    PORTS=()
    while ((${#PORTS[@]} < count)); do
        port=$((low + SRANDOM % (high - low + 1)))
        if [[ -z ${taken[$port]:-} ]]; then
            taken[$port]=1
            PORTS+=("$port")
        fi
    done
}
