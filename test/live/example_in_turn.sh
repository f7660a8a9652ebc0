#!/bin/bash
# Runs the examples of lock and semaphore, several of each at once, on a private server: never more of them at work than
# may be, each comes to its end, and nothing stays behind. One that was lost in its last step says so.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

readonly LOCK=${1:?usage: example_in_turn.sh LOCK SEMAPHORE}
readonly SEMAPHORE=${2:?usage: example_in_turn.sh LOCK SEMAPHORE}
readonly LOCAL=$(dirname -- "${BASH_SOURCE[0]}")/../../tools/zookeeper-local
readonly PROCESSES=4

fail() {
    printf 'example_in_turn: %s\n' "$*" >&2
    exit 1
}

# at_once FILE PROGRAM ARGUMENT...: all write lines to FILE, in the order in which they come.
at_once() {
    local file=$1 pids=() i
    shift
    for ((i = 0; i < PROCESSES; i++)); do
        "$@" >>"$file" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || fail "$1 ended with status $?"; done
}

# lost_in_last_step FILE PROGRAM ARGUMENT...: it stands still in its last step until its session is over.
lost_in_last_step() {
    local file=$1 program=$2 pid status=0 tries=0
    shift
    "$@" >"$file" 2>&1 &
    pid=$!
    until grep -q '^step 5' "$file"; do
        ((++tries < 3000)) || fail "$program has not come to its last step"
        sleep 0.01
    done
    kill -STOP "$pid"
    sleep 12 # a session lasts 10 s
    kill -CONT "$pid"
    wait "$pid" || status=$?
    ((status == 1)) && grep -q 'lost on the way' "$file" || fail "$program was lost in its last step, and says $status"
}

# most_at_work FILE: how many were between "acquired" and "releasing" at a time.
most_at_work() {
    awk '$1 == "acquired" { if (++n > most) most = n } $1 == "releasing" { n-- } END { print most + 0, n + 0 }' "$1"
}

eval "$("$LOCAL" start --parent $$)"
export DIVVY_ENSEMBLE_TICK_MS
readonly FILE=$ZOOKEEPER_LOCAL_DIR/out
trap '"$LOCAL" stop "$ZOOKEEPER_LOCAL_DIR"' EXIT

at_once "$FILE.lock" "$LOCK" "$DIVVY_CONNECT" /example-lock
[[ $(most_at_work "$FILE.lock") == "1 0" ]] || fail "locks: at work at most, and left: $(most_at_work "$FILE.lock")"
[[ $(grep -c '^step' "$FILE.lock") == $((5 * PROCESSES)) ]] || fail "locks: not all steps were done"

at_once "$FILE.semaphore" "$SEMAPHORE" "$DIVVY_CONNECT" /example-semaphore 2
[[ $(most_at_work "$FILE.semaphore") == "2 0" ]] ||
    fail "semaphores: at work at most, and left: $(most_at_work "$FILE.semaphore")"
[[ $(grep -c '^step' "$FILE.semaphore") == $((5 * PROCESSES)) ]] || fail "semaphores: not all steps were done"
! grep -E '^step .* licence ([^01]|[0-9]{2,})' "$FILE.semaphore" || fail "semaphores: a licence that there is not"
lost_in_last_step "$FILE.lost-lock" "$LOCK" "$DIVVY_CONNECT" /lost-lock &
lost=$!
lost_in_last_step "$FILE.lost-semaphore" "$SEMAPHORE" "$DIVVY_CONNECT" /lost-semaphore 1
wait "$lost" || fail "a lock that was lost"
for usage in "$LOCK" "$SEMAPHORE"; do
    status=0
    "$usage" 2>/dev/null || status=$?
    ((status == 2)) || fail "$usage without arguments ended with $status"
done
