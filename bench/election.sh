#!/bin/bash
# Elections: from a leader's resignation to the next leader's callback, divvy beside kazoo and Curator.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly ROOT PYTHON=${PYTHON:-/usr/bin/python3} CURATOR=${CURATOR:-/usr/share/java/curator-recipes.jar}

usage() {
    cat <<'TEXT'
usage: bench/election.sh [--rounds N] [--turns N] [--build DIR]

Starts a private ZooKeeper. In each round divvy's election, the same with 50 observers, kazoo's Election and Curator's
LeaderLatch take turns: of two candidates the leader resigns, TURNS times. Prints the median and the 99th percentile of
the microseconds until the callback of the next leader begins, and each median as a multiple of divvy's.

--rounds  5 by default
--turns   in each round; 200 by default
--build   build folder, `build` in the checkout by default; configured and built if needed

Exit status: 0 done; 1 a run failed; 2 wrong usage, or something is missing.
TEXT
}

die() {
    printf 'bench/election: %s\n' "${@:2}" >&2
    exit "$1"
}

ROUNDS=5 TURNS=200 BUILD=$ROOT/build
while (($# > 0)); do
    case $1 in
    -h | --help)
        usage
        exit 0
        ;;
    --rounds | --turns | --build) (($# >= 2)) || die 2 "$1 needs a value" ;;
    *) die 2 "unknown argument $1 (see --help)" ;;
    esac
    case $1 in
    --rounds) ROUNDS=$2 ;;
    --turns) TURNS=$2 ;;
    --build) BUILD=$2 ;;
    esac
    shift 2
done
[[ $ROUNDS =~ ^[1-9][0-9]{0,2}$ ]] || die 2 "--rounds: a number from 1, not $ROUNDS"
[[ $TURNS =~ ^[1-9][0-9]{0,4}$ ]] || die 2 "--turns: a number from 1, not $TURNS"
"$PYTHON" -c 'import kazoo' 2>/dev/null || die 2 "$PYTHON has no kazoo; install Debian's package python3-kazoo"
[[ -e $CURATOR ]] || die 2 "no $CURATOR; install libcurator-recipes-java"

if [[ ! -e $BUILD/CMakeCache.txt ]]; then cmake -S "$ROOT" -B "$BUILD" >&2; fi
cmake --build "$BUILD" --target bench_election >&2

started=$("$ROOT/bench/start-server" "$BUILD" $$)
eval "$(sed -nE "s/^(DIVVY_CONNECT|DIVVY_ENSEMBLE_TICK_MS|ZOOKEEPER_LOCAL_DIR)=(.*)/\1='\2'/p" <<<"$started")"
export DIVVY_ENSEMBLE_TICK_MS
lines=$(mktemp)
trap 'rm -f "$lines"; "$ROOT/tools/zookeeper-local" stop "$ZOOKEEPER_LOCAL_DIR"' EXIT

measure() {
    printf '%s ' "$1" >>"$lines"
    "${@:2}" >>"$lines"
}

for ((round = 1; round <= ROUNDS; round++)); do
    measure divvy "$BUILD/bench/bench_election" "$DIVVY_CONNECT" "/divvy-$round" "$TURNS"
    measure observed "$BUILD/bench/bench_election" "$DIVVY_CONNECT" "/observed-$round" "$TURNS" 50
    measure kazoo "$PYTHON" -B "$ROOT/bench/election_kazoo.py" "$DIVVY_CONNECT" "/kazoo-$round" "$TURNS"
    measure curator java -cp "$CURATOR:${CURATOR%/*}/slf4j-nop.jar" "$ROOT/bench/election_curator.java" \
        "$DIVVY_CONNECT" "/curator-$round" "$TURNS"
done

"$PYTHON" - "$lines" <<'TEXT'
import json
import statistics
import sys

NAMES = {"divvy": "divvy", "observed": "divvy, 50 observers", "kazoo": "kazoo's Election",
         "curator": "Curator's LeaderLatch"}
times = {}
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        kind, text = line.split(" ", 1)
        times.setdefault(kind, []).extend(json.loads(text)["us"])
base = statistics.median(times["divvy"])
print("| | median, us | 99th percentile, us | multiple of divvy's median |\n| --- | --- | --- | --- |")
for kind, name in NAMES.items():
    middle, high = statistics.median(times[kind]), statistics.quantiles(times[kind], n=100)[98]
    print("| %s | %.0f | %.0f | %.2f |" % (name, middle, high, middle / base))
TEXT
