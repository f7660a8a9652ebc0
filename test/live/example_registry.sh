#!/bin/bash
# Runs the example of the registry, workers and one who asks, on a private server, each by a clock that is wrong by an
# hour in another direction: the least loaded is found, the one leader is one, and what ends is gone.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

readonly REGISTRY=${1:?usage: example_registry.sh REGISTRY WALL_CLOCK} WALL_CLOCK=${2:?}
readonly LOCAL=$(dirname -- "${BASH_SOURCE[0]}")/../../tools/zookeeper-local

fail() {
    printf 'example_registry: %s\n' "$*" >&2
    exit 1
}

# by_clock SECONDS WORD...: by a wall clock that is off by +3600 or -3600 seconds. Called in subshells, which become the
# program.
by_clock() {
    exec env LD_PRELOAD="$WALL_CLOCK" DIVVY_TEST_WALL_CLOCK="$FILE$1" "${@:2}"
}
ahead() {
    by_clock +3600 "$REGISTRY" "$DIVVY_CONNECT" "$@"
}
behind() {
    by_clock -3600 "$REGISTRY" "$DIVVY_CONNECT" "$@"
}

# until_in FILE TEXT: it is printed there, within a time that a busy machine keeps.
until_in() {
    for ((i = 0; i < 300; i++)); do
        if grep -qs -- "$2" "$1"; then return; fi
        sleep 0.1
    done
    fail "\"$2\" is not in what $1 has: $(cat "$1")"
}

eval "$("$LOCAL" start --parent $$)"
export DIVVY_ENSEMBLE_TICK_MS
readonly FILE=$ZOOKEEPER_LOCAL_DIR/out
trap '"$LOCAL" stop "$ZOOKEEPER_LOCAL_DIR"' EXIT
for seconds in +3600 -3600; do
    python3 -c 'import struct, sys; open(sys.argv[1], "wb").write(struct.pack("q", int(sys.argv[2])))' \
        "$FILE$seconds" "$seconds"
done
(($(by_clock +3600 date +%s) > $(date +%s) + 3000)) || fail "no clock is wrong"

[[ $(ahead find resizer) == nobody ]] || fail "somebody is found where nobody is"
ahead work resizer 600 >"$FILE.a" &
worker_a=$!
behind work resizer 600 >"$FILE.b" &
worker_b=$!
disown "$worker_a" "$worker_b"
until_in "$FILE.a" announced
until_in "$FILE.b" announced
behind lead boss 600 >"$FILE.c" &
boss=$!
until_in "$FILE.c" leading
ahead lead boss 600 >"$FILE.d" &
other=$!
disown "$boss" "$other"
until_in "$FILE.d" following
sleep 6 # longer than the ttl, so that only heartbeats keep them

found=$(ahead find resizer)
[[ $found =~ ^found.*pid\ ([0-9]+)\  ]] || fail "no worker is found by a clock that is ahead: $found"
least=${BASH_REMATCH[1]}
[[ $least == "$worker_a" || $least == "$worker_b" ]] || fail "$found is no worker of $worker_a and $worker_b"
[[ $(behind find resizer) =~ ^found ]] || fail "no worker is found by a clock that is behind"
! grep -q leading "$FILE.d" || fail "two lead"
kill -9 "$boss"
until_in "$FILE.d" leading

kill -9 "$worker_a" "$worker_b" "$other"
for ((i = 0; i < 300; i++)); do
    gone=$(ahead find resizer)
    if [[ $gone == nobody ]]; then break; fi
    sleep 0.1
done
[[ $gone == nobody ]] || fail "workers that are gone are found: $gone"

status=0
"$REGISTRY" 2>/dev/null || status=$?
((status == 2)) || fail "without arguments it ended with $status"
