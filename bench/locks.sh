#!/bin/bash
# Locks: divvy beside kazoo, Curator and the native client, on one server. SPDX-License-Identifier: Apache-2.0
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly ROOT PYTHON=${PYTHON:-/usr/bin/python3} CURATOR=${CURATOR:-/usr/share/java/curator-recipes.jar}

usage() {
    cat <<'TEXT'
usage: bench/locks.sh [--repeats N] [--pairs N] [--without-curator] [--build DIR]

Starts a private ZooKeeper, and measures on it in turn: the native client's synchronous creates and deletes, divvy's
lock, kazoo's Lock and Curator's InterProcessMutex. Prints a JSON line for each run, and a table of the medians: pairs
of acquire and release a second, and microseconds from a release to the next one's acquire, with 2 and 50 waiters.

--repeats          rounds, 5 by default
--pairs            of acquire and release in a round, 3000 by default
--without-curator  where Debian's libcurator-recipes-java is not installed
--build            build folder, `build` in the checkout by default; its target bench_locks is built

Exit status: 0 done; 1 a run failed; 2 wrong usage, or something is missing.
TEXT
}

die() {
    printf 'bench/locks: %s\n' "${@:2}" >&2
    exit "$1"
}

REPEATS=5 PAIRS=3000 BUILD=$ROOT/build WITH_CURATOR=1
while (($# > 0)); do
    case $1 in
    -h | --help)
        usage
        exit 0
        ;;
    --without-curator)
        WITH_CURATOR=
        shift
        continue
        ;;
    --repeats | --pairs | --build) (($# >= 2)) || die 2 "$1 needs a value" ;;
    *) die 2 "unknown argument $1 (see --help)" ;;
    esac
    case $1 in
    --repeats) REPEATS=$2 ;;
    --pairs) PAIRS=$2 ;;
    --build) BUILD=$2 ;;
    esac
    shift 2
done
[[ $REPEATS =~ ^[1-9][0-9]{0,2}$ ]] || die 2 "--repeats: a number from 1, not $REPEATS"
[[ $PAIRS =~ ^[1-9][0-9]{1,6}$ ]] || die 2 "--pairs: a number from 10, not $PAIRS"
"$PYTHON" -c 'import kazoo' 2>/dev/null || die 2 "$PYTHON has no kazoo; install Debian's package python3-kazoo"
if [[ $WITH_CURATOR && ! -e $CURATOR ]]; then die 2 "no $CURATOR; install libcurator-recipes-java, or --without-curator"; fi

if [[ ! -e $BUILD/CMakeCache.txt ]]; then cmake -S "$ROOT" -B "$BUILD" >&2; fi
cmake --build "$BUILD" --target bench_locks >&2

LINES_FILE=$(mktemp)
started=$("$ROOT/tools/zookeeper-local" start --parent $$ --timeout 60)
eval "$(sed -nE "s/^(DIVVY_CONNECT|ZOOKEEPER_LOCAL_DIR)=(.*)/\1='\2'/p" <<<"$started")"
trap 'rm -f -- "$LINES_FILE"; "$ROOT/tools/zookeeper-local" stop "$ZOOKEEPER_LOCAL_DIR"' EXIT

for ((i = 1; i <= REPEATS; i++)); do
    {
        "$BUILD/bench/bench_locks" "$DIVVY_CONNECT" "$PAIRS"
        "$PYTHON" -B "$ROOT/bench/locks_kazoo.py" "$DIVVY_CONNECT" "$((PAIRS / 3 + 10))"
        if [[ $WITH_CURATOR ]]; then java -cp "$CURATOR" "$ROOT/bench/locks_curator.java" "$DIVVY_CONNECT" "$PAIRS" 2>/dev/null; fi
    } | tee -a "$LINES_FILE"
done

"$PYTHON" - "$LINES_FILE" <<'TABLE'
import collections, json, statistics, sys
runs = collections.defaultdict(list)
for line in open(sys.argv[1]):
    run = json.loads(line)
    runs[run["peer"]].append(run)
print("\n%-14s %12s %22s %22s" % ("median", "pairs/s", "hand-over, 2 (us)", "hand-over, 50 (us)"))
pairs = {}
for peer, found in runs.items():
    values = [[run[key] for run in found if key in run] for key in ("pairs_per_s", "hand_over_2_us", "hand_over_50_us")]
    medians = [statistics.median(value) if value else None for value in values]
    pairs[peer] = medians[0]
    print("%-14s %12s %22s %22s" % (peer, *("%.0f" % m if m is not None else "-" for m in medians)))
for peer in pairs:
    if peer != "divvy":
        print("divvy / %s: %.2f" % (peer, pairs["divvy"] / pairs[peer]))
TABLE
