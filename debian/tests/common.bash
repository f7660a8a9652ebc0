# What the tests of the installed packages share. SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sets SOURCE, and TEMP, the folder that the test is in. All processes of it end with it.
set -euo pipefail

SOURCE=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
TEMP=$(mktemp -d "${AUTOPKGTEST_TMP:-${TMPDIR:-/tmp}}/divvy.XXXXXXXX")
readonly SOURCE TEMP
cd -- "$TEMP"

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

clean_up() {
    local pids
    pids=$(jobs -p)
    if [[ -n $pids ]]; then kill -KILL $pids 2>/dev/null || true; fi
    if [[ -n ${ZOOKEEPER_LOCAL_DIR:-} ]]; then "$SOURCE/tools/zookeeper-local" stop "$ZOOKEEPER_LOCAL_DIR"; fi
    rm -rf -- "$TEMP"
}
trap clean_up EXIT

# Starts a private ZooKeeper of the release that is installed. Sets DIVVY_CONNECT and DIVVY_ENSEMBLE_TICK_MS.
start_zookeeper() {
    local lines
    lines=$("$SOURCE/tools/zookeeper-local" start --parent $$)
    set -a
    eval "$lines"
    set +a
}

# wait_until WHAT COMMAND...: until COMMAND succeeds, which is asked again and again for two minutes at most.
wait_until() {
    local what=$1 deadline=$((SECONDS + 120))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || fail "not within two minutes: $what"
        sleep 0.2
    done
    printf '%s\n' "$what"
}
