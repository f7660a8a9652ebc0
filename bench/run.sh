#!/bin/bash
# divvy against kazoo and the raw C client, in one run on one private server. SPDX-License-Identifier: Apache-2.0
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly ROOT
readonly PYTHON=${PYTHON:-/usr/bin/python3}
readonly RAW_COUNT=10000
# What one round takes on a small machine, in seconds, so that nobody wonders whether it hangs.
readonly ROUND_S_1000=14 ROUND_S_10000=45

usage() {
    cat <<'TEXT'
usage: bench/run.sh [--quick] [--repeats N] [--members M] [--boundary MS] [--json FILE] [--build DIR]

Starts a private ZooKeeper, runs the raw C client, divvy (sticky, rendezvous, eager with round robin) and
kazoo (its members as threads, and as processes) in turn on it, with 1,000 and 10,000 items, and prints a table of the
medians.

--quick      1,000 items only
--repeats    rounds, 3 by default
--members    members before the join, 4 by default
--boundary   time boundary of the pools in ms, 500 by default
--json       where to write a JSON line for each run; by default they follow the table
--build      build folder, `build` in the checkout by default; configured and built if needed

Exit status: 0 done; 1 a run failed, or divvy disturbed an item that did not move; 2 wrong usage, or something is
missing.
TEXT
}

say() {
    printf 'bench: %s\n' "$*" >&2
}

die() {
    say "${@:2}"
    exit "$1"
}

parse() {
    SIZES=(1000 10000) REPEATS=3 MEMBERS=4 BOUNDARY_MS=500 JSON='' BUILD=$ROOT/build
    while (($# > 0)); do
        case $1 in
        --quick)
            SIZES=(1000)
            shift
            continue
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        --repeats | --members | --boundary | --json | --build) (($# >= 2)) || die 2 "$1 needs a value" ;;
        *) die 2 "unknown argument $1 (see --help)" ;;
        esac
        case $1 in
        --repeats) REPEATS=$2 ;;
        --members) MEMBERS=$2 ;;
        --boundary) BOUNDARY_MS=$2 ;;
        --json) JSON=$2 ;;
        --build) BUILD=$2 ;;
        esac
        shift 2
    done
    [[ $REPEATS =~ ^[1-9][0-9]{0,2}$ ]] || die 2 "--repeats: a number from 1, not $REPEATS"
    [[ $MEMBERS =~ ^[1-9][0-9]{0,2}$ ]] || die 2 "--members: a number from 1, not $MEMBERS"
    [[ $BOUNDARY_MS =~ ^(0|[1-9][0-9]{0,5})$ ]] || die 2 "--boundary: a number of milliseconds, not $BOUNDARY_MS"
}

check_ground() {
    local tool
    for tool in cmake java "$PYTHON"; do
        command -v "$tool" >/dev/null || die 2 "no $tool; see README.md of this folder for what is needed"
    done
    "$PYTHON" -c 'import kazoo' 2>/dev/null || die 2 "$PYTHON has no kazoo; install Debian's package python3-kazoo"
    # Now rather than after minutes of measuring.
    if [[ -n $JSON ]]; then : >"$JSON" || die 2 "--json: $JSON cannot be written"; fi
}

build() {
    say "building in $BUILD"
    if [[ ! -e $BUILD/CMakeCache.txt ]]; then cmake -S "$ROOT" -B "$BUILD" >&2; fi
    cmake --build "$BUILD" --target bench_rebalance bench_raw_limit -j "$(nproc)" >"$SCRATCH/build.log" 2>&1 || {
        tail -n 30 "$SCRATCH/build.log" >&2
        die 1 "the build failed"
    }
}

# shellcheck disable=SC2317 # The trap calls it.
clean_up() {
    if [[ -n ${CHILD:-} ]]; then kill "$CHILD" 2>/dev/null || true; fi
    if [[ -n ${ZOOKEEPER_LOCAL_DIR:-} ]]; then "$ROOT/tools/zookeeper-local" stop "$ZOOKEEPER_LOCAL_DIR" || true; fi
    if [[ -n ${SCRATCH:-} ]]; then rm -rf -- "$SCRATCH"; fi
}

# measure WHAT COMMAND...: runs it and keeps its line. In the background, for bash heeds a signal only between commands
# that it waits for, and during a wait.
measure() {
    say "$1"
    "${@:2}" >"$SCRATCH/line" &
    CHILD=$!
    wait "$CHILD" || die 1 "failed: $1"
    CHILD=
    cat "$SCRATCH/line" >>"$SCRATCH/lines"
}

# round NUMBER: every peer once, so that whatever disturbs the machine for a while disturbs them all.
round() {
    local items at="round $1 of $REPEATS"
    measure "$at: raw C client" "$BUILD/bench/bench_raw_limit" "$DIVVY_CONNECT" "$RAW_COUNT"
    for items in "${SIZES[@]}"; do
        local -a pool=("$DIVVY_CONNECT" "$MEMBERS" "$items" "$BOUNDARY_MS")
        measure "$at: divvy sticky, K=$items" "$BUILD/bench/bench_rebalance" "${pool[@]}"
        measure "$at: divvy rendezvous, K=$items" "$BUILD/bench/bench_rebalance" --assign rendezvous "${pool[@]}"
        measure "$at: divvy eager, K=$items" \
            "$BUILD/bench/bench_rebalance" --mode eager --assign round_robin "${pool[@]}"
        measure "$at: kazoo in threads, K=$items (about $((3 + items / 500)) s)" \
            "$PYTHON" "$ROOT/bench/peers/kazoo_partition.py" "${pool[@]}"
        measure "$at: kazoo in processes, K=$items (about $((3 + items / 800)) s)" \
            "$PYTHON" "$ROOT/bench/peers/kazoo_partition.py" --processes "${pool[@]}"
    done
}

main() {
    local number round_s=$ROUND_S_1000 environment status=0
    parse "$@"
    check_ground
    trap clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    SCRATCH=$(mktemp -d)
    build
    environment=$("$ROOT/bench/start-server" "$BUILD" $$)
    eval "$environment"
    export DIVVY_ENSEMBLE_TICK_MS
    if ((${#SIZES[@]} > 1)); then round_s=$((round_s + ROUND_S_10000)); fi
    say "$REPEATS rounds, about $((REPEATS * round_s)) s in all; keep the machine quiet meanwhile"
    for ((number = 1; number <= REPEATS; number++)); do round "$number"; done
    "$PYTHON" "$ROOT/bench/summary.py" "$SCRATCH/lines" || status=$?
    if [[ -n $JSON ]]; then
        cat "$SCRATCH/lines" >"$JSON"
    else
        printf '\n'
        cat "$SCRATCH/lines"
    fi
    exit "$status"
}

main "$@"
