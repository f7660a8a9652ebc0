#!/bin/bash
# What a join costs over TLS, beside plain text, in one run on one private ZooKeeper.
# SPDX-License-Identifier: Apache-2.0
#
# usage: bench/tls.sh [--repeats N] [--items K] [--build DIR]
#
# Both go by the same native client, built with OpenSSL (test/tls/build_client), and by the same server, whose ports are
# both Netty's. They run in turns, each first in every other round. Prints the medians and their ratios.
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly ROOT
readonly MEMBERS=4 BOUNDARY_MS=500 RATIO_MAX=1.3 WARM_UPS=5 WARM_UP_MEMBERS=60

die() {
    printf 'bench/tls.sh: %s\n' "${*:2}" >&2
    exit "$1"
}

parse() {
    REPEATS=7 ITEMS=10000 BUILD=$ROOT/build
    while (($# > 0)); do
        (($# >= 2)) || die 2 "$1: no such option, or its value is missing"
        case $1 in
        --repeats) REPEATS=$2 ;;
        --items) ITEMS=$2 ;;
        --build) BUILD=$2 ;;
        *) die 2 "unknown argument $1" ;;
        esac
        shift 2
    done
    [[ $REPEATS =~ ^[1-9][0-9]{0,2}$ ]] || die 2 "--repeats: a number from 1, not $REPEATS"
    [[ $ITEMS =~ ^[1-9][0-9]{0,5}$ ]] || die 2 "--items: a number from 1, not $ITEMS"
    [[ -x $BUILD/bench/bench_rebalance ]] || die 2 "no $BUILD/bench/bench_rebalance; build the project first"
}

# shellcheck disable=SC2317 # The trap calls it.
clean_up() {
    if [[ -n ${ZOOKEEPER_LOCAL_DIR:-} ]]; then "$ROOT/tools/zookeeper-local" stop "$ZOOKEEPER_LOCAL_DIR" || true; fi
    if [[ -n ${SCRATCH:-} ]]; then rm -rf -- "$SCRATCH"; fi
}

# measure HOW [MEMBERS]: one run, a line in the file HOW.
measure() {
    local -a pool=("${2:-$MEMBERS}" "$ITEMS" "$BOUNDARY_MS")
    if [[ $1 == tls ]]; then
        env "${TLS[@]}" "$BUILD/bench/bench_rebalance" --counters "$ZOOKEEPER_LOCAL_PLAIN" "$DIVVY_CONNECT" \
            "${pool[@]}" >>"$SCRATCH/tls"
    else
        "$BUILD/bench/bench_rebalance" "$ZOOKEEPER_LOCAL_PLAIN" "${pool[@]}" >>"$SCRATCH/plain"
    fi
}

print_ratios() {
    /usr/bin/python3 - "$SCRATCH" "$RATIO_MAX" <<'PYTHON'
import json
import statistics
import sys

runs = {how: [json.loads(line) for line in open(f"{sys.argv[1]}/{how}", encoding="utf-8")] for how in ("plain", "tls")}
print("| K = %d, %d runs each | plain text, s | TLS, s | ratio |" % (runs["tls"][0]["items"], len(runs["tls"])))
print("| --- | --- | --- | --- |")
for what, key in (("first allocation", "first_beyond_boundary_s"), ("join", "join_beyond_boundary_s")):
    plain, tls = (statistics.median(run[key] for run in runs[how]) for how in ("plain", "tls"))
    print("| %s beyond the boundary | %.3f | %.3f | %.2f |" % (what, plain, tls, tls / plain))
verdict = "met" if tls / plain <= float(sys.argv[2]) else "MISSED"
print("Wanted of a join: at most %s. It is %s." % (sys.argv[2], verdict))
PYTHON
}

main() {
    local i environment
    parse "$@"
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    SCRATCH=$(mktemp -d)
    LD_LIBRARY_PATH=$("$ROOT/test/tls/build_client")
    export LD_LIBRARY_PATH
    environment=$("$ROOT/bench/start-server" "$BUILD" $$ --tls)
    eval "$environment"
    export DIVVY_ENSEMBLE_TICK_MS
    TLS=("DIVVY_TLS_CA_FILE=$DIVVY_TLS_CA_FILE" "DIVVY_TLS_CERTIFICATE_FILE=$DIVVY_TLS_CERTIFICATE_FILE"
        "DIVVY_TLS_KEY_FILE=$DIVVY_TLS_KEY_FILE" "SSL_CERT_FILE=$SSL_CERT_FILE" "SSL_CERT_DIR=$SSL_CERT_DIR")
    printf 'bench/tls.sh: warming up\n' >&2
    # Java compiles what it has run often enough, and a handshake is much code: servers in production have made many.
    for ((i = 0; i < WARM_UPS; i++)); do measure tls "$WARM_UP_MEMBERS" && measure plain "$WARM_UP_MEMBERS"; done
    rm -- "$SCRATCH/tls" "$SCRATCH/plain"
    for ((i = 0; i < REPEATS; i++)); do
        printf 'bench/tls.sh: round %d of %d\n' "$((i + 1))" "$REPEATS" >&2
        if ((i % 2)); then measure plain && measure tls; else measure tls && measure plain; fi
    done
    print_ratios
}

main "$@"
