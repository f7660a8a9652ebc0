#!/bin/bash
# Locks: divvy beside kazoo, Curator and the native client, on one server. SPDX-License-Identifier: Apache-2.0
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly ROOT PYTHON=${PYTHON:-/usr/bin/python3} CURATOR=${CURATOR:-/usr/share/java/curator-recipes.jar}

usage() {
    cat <<'TEXT'
usage: bench/locks.sh [--rounds N] [--seconds S] [--json FILE] [--without-curator] [--build DIR]

Starts a private ZooKeeper, and measures on it, in slices of 100 ms that take turns: the least that the native client
can do (the floor), divvy's lock and semaphore, kazoo's Lock and Semaphore, Curator's InterProcessMutex and
InterProcessSemaphoreV2. Prints the medians of the rounds: uncontended pairs of acquire and release a second, and
microseconds from a release to the next one's acquire, with 2 and with 50 waiters; what requests a hand-over of divvy
takes with 2, 10 and 50 waiters; round trips and requests of an uncontended pair, on a link of 100 ms; and the targets.
Takes about three minutes.

--rounds           5 by default
--seconds          for which each peer acquires and releases in a round, lock and semaphore each; 3 by default
--json             where to write a JSON line for each measure of each round
--without-curator  where Debian's libcurator-recipes-java is not installed
--build            build folder, `build` in the checkout by default; configured and built if needed

Exit status: 0 done; 1 a run failed, or a hand-over took more requests than it may; 2 wrong usage, or something is
missing.
TEXT
}

die() {
    printf 'bench/locks: %s\n' "${@:2}" >&2
    exit "$1"
}

ROUNDS=5 SECONDS_EACH=3 JSON='' BUILD=$ROOT/build WITH_CURATOR=1
while (($# > 0)); do
    case $1 in
    -h | --help)
        usage
        exit 0
        ;;
    --without-curator)
        WITH_CURATOR=''
        shift
        continue
        ;;
    --rounds | --seconds | --json | --build) (($# >= 2)) || die 2 "$1 needs a value" ;;
    *) die 2 "unknown argument $1 (see --help)" ;;
    esac
    case $1 in
    --rounds) ROUNDS=$2 ;;
    --seconds) SECONDS_EACH=$2 ;;
    --json) JSON=$2 ;;
    --build) BUILD=$2 ;;
    esac
    shift 2
done
[[ $ROUNDS =~ ^[1-9][0-9]{0,2}$ ]] || die 2 "--rounds: a number from 1, not $ROUNDS"
[[ $SECONDS_EACH =~ ^[0-9]{1,3}(\.[0-9]+)?$ ]] || die 2 "--seconds: a number, not $SECONDS_EACH"
"$PYTHON" -c 'import kazoo' 2>/dev/null || die 2 "$PYTHON has no kazoo; install Debian's package python3-kazoo"
if [[ $WITH_CURATOR && ! -e $CURATOR ]]; then
    die 2 "no $CURATOR; install libcurator-recipes-java, or --without-curator"
fi

if [[ ! -e $BUILD/CMakeCache.txt ]]; then cmake -S "$ROOT" -B "$BUILD" >&2; fi
cmake --build "$BUILD" --target bench_locks --target bench_raw_locks --target bench_raw_limit >&2

started=$("$ROOT/bench/start-server" "$BUILD" $$)
eval "$(sed -nE "s/^(DIVVY_CONNECT|DIVVY_ENSEMBLE_TICK_MS|ZOOKEEPER_LOCAL_DIR)=(.*)/\1='\2'/p" <<<"$started")"
export DIVVY_ENSEMBLE_TICK_MS
trap '"$ROOT/tools/zookeeper-local" stop "$ZOOKEEPER_LOCAL_DIR"' EXIT

quote() {
    printf '%q ' "$@" "$DIVVY_CONNECT"
}

peers=(
    "floor=$(quote "$BUILD/bench/bench_raw_locks")"
    "divvy=$(quote "$BUILD/bench/bench_locks")"
    "kazoo=$(quote "$PYTHON" -B "$ROOT/bench/locks_kazoo.py")"
)
if [[ $WITH_CURATOR ]]; then
    peers+=("curator=$(quote java -cp "$CURATOR:${CURATOR%/*}/slf4j-nop.jar" "$ROOT/bench/locks_curator.java")")
fi
options=(--rounds "$ROUNDS" --seconds "$SECONDS_EACH" --round-trips)
if [[ $JSON ]]; then options+=(--json "$JSON"); fi
"$PYTHON" -B "$ROOT/bench/locks.py" "${options[@]}" "${peers[@]}"
