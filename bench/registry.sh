#!/bin/bash
# The registry: divvy beside Curator and the native client, on one server. SPDX-License-Identifier: Apache-2.0
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly ROOT PYTHON=${PYTHON:-/usr/bin/python3} JARS=${JARS:-/usr/share/java}

usage() {
    cat <<'TEXT'
usage: bench/registry.sh [--rounds N] [--seconds S] [--services N] [--watchers N] [--json FILE] [--without-curator]
                         [--build DIR]

Starts a private ZooKeeper, and measures on it, in slices of 300 ms that take turns: the least that the native client
can do, with everything pipelined (the floor), divvy's registry, and Curator's ServiceDiscovery and ServiceCache. Prints
the medians of the rounds: heartbeats a second, entries read a second, what a look into a live view costs, also
while services change, and for one change the time until all watchers know it and the packets at the server. Takes about
a minute and a half.

--rounds           5 by default
--seconds          for which each peer sends heartbeats, and reads, in a round; 1.5 by default
--services         of each peer, in ten roles; 1000 by default
--watchers         sessions of each peer that follow one role; 100 by default
--json             where to write a JSON line for each measure of each round
--without-curator  where Debian's libcurator-discovery-java and libcurator-recipes-java are not installed
--build            build folder, `build` in the checkout by default; configured and built if needed

Exit status: 0 done; 1 a run failed, or a look into divvy's view sent a request; 2 wrong usage, or something is missing.
TEXT
}

die() {
    printf 'bench/registry: %s\n' "${@:2}" >&2
    exit "$1"
}

ROUNDS=5 SECONDS_EACH=1.5 SERVICES=1000 WATCHERS=100 JSON='' BUILD=$ROOT/build WITH_CURATOR=1
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
    --rounds | --seconds | --services | --watchers | --json | --build) (($# >= 2)) || die 2 "$1 needs a value" ;;
    *) die 2 "unknown argument $1 (see --help)" ;;
    esac
    case $1 in
    --rounds) ROUNDS=$2 ;;
    --seconds) SECONDS_EACH=$2 ;;
    --services) SERVICES=$2 ;;
    --watchers) WATCHERS=$2 ;;
    --json) JSON=$2 ;;
    --build) BUILD=$2 ;;
    esac
    shift 2
done
[[ $ROUNDS =~ ^[1-9][0-9]{0,2}$ ]] || die 2 "--rounds: a number from 1, not $ROUNDS"
[[ $SECONDS_EACH =~ ^[0-9]{1,3}(\.[0-9]+)?$ ]] || die 2 "--seconds: a number, not $SECONDS_EACH"
[[ $SERVICES =~ ^[1-9][0-9]{0,3}0$ ]] || die 2 "--services: a multiple of ten up to 10000, not $SERVICES"
((SERVICES <= 10000)) || die 2 "--services: a multiple of ten up to 10000, not $SERVICES"
[[ $WATCHERS =~ ^[1-9][0-9]{0,2}$ ]] || die 2 "--watchers: a number from 1 to 999, not $WATCHERS"
if [[ $WITH_CURATOR ]]; then
    for jar in curator-x-discovery curator-recipes; do
        [[ -e $JARS/$jar.jar ]] ||
            die 2 "no $JARS/$jar.jar;" \
                "install libcurator-discovery-java and libcurator-recipes-java, or --without-curator"
    done
fi

if [[ ! -e $BUILD/CMakeCache.txt ]]; then cmake -S "$ROOT" -B "$BUILD" >&2; fi
cmake --build "$BUILD" --target bench_registry --target bench_raw_registry --target bench_raw_limit >&2

started=$("$ROOT/bench/start-server" "$BUILD" $$)
eval "$(sed -nE "s/^(DIVVY_CONNECT|DIVVY_ENSEMBLE_TICK_MS|ZOOKEEPER_LOCAL_DIR)=(.*)/\1='\2'/p" <<<"$started")"
export DIVVY_ENSEMBLE_TICK_MS
trap '"$ROOT/tools/zookeeper-local" stop "$ZOOKEEPER_LOCAL_DIR"' EXIT

quote() {
    printf '%q ' "$@" "$DIVVY_CONNECT"
}

peers=(
    "floor=$(quote "$BUILD/bench/bench_raw_registry")"
    "divvy=$(quote "$BUILD/bench/bench_registry")"
)
if [[ $WITH_CURATOR ]]; then
    classes=$JARS/curator-x-discovery.jar:$JARS/curator-recipes.jar:$JARS/slf4j-nop.jar
    peers+=("curator=$(quote java -cp "$classes" "$ROOT/bench/registry_curator.java")")
fi
options=(--rounds "$ROUNDS" --seconds "$SECONDS_EACH" --services "$SERVICES" --watchers "$WATCHERS")
if [[ $JSON ]]; then options+=(--json "$JSON"); fi
"$PYTHON" -B "$ROOT/bench/registry.py" "${options[@]}" "${peers[@]}"
