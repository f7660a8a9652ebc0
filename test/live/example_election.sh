#!/bin/bash
# Runs the example of the election, three of it, on a private server: the first leads, all are told so, a request moves
# leadership on, a preferred one takes it, and each ends with its input. One that may not stand says so.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

readonly ELECTION=${1:?usage: example_election.sh ELECTION}
readonly LOCAL=$(dirname -- "${BASH_SOURCE[0]}")/../../tools/zookeeper-local
readonly DEADLINE_S=60

fail() {
    printf 'example_election: %s\n' "$*" >&2
    tail -n 50 "$FILE".* >&2
    exit 1
}

# says NAME LINE TIMES: waits until NAME has printed the line so often.
says() {
    local until=$((SECONDS + DEADLINE_S))
    while (($(grep -cFx -- "$2" "$FILE.$1" || true) < $3)); do
        ((SECONDS < until)) || fail "$1 has not said \"$2\" $3 times"
        sleep 0.02
    done
}

# begin NAME [PREFERENCE]: its input is a pipe, which stays open in a descriptor of ours.
begin() {
    mkfifo "$FILE.$1.in"
    "$ELECTION" "$DIVVY_CONNECT" /example-election "$@" <"$FILE.$1.in" >"$FILE.$1" 2>&1 &
    pids[$1]=$!
    exec {fd}>"$FILE.$1.in"
    inputs[$1]=$fd
}

eval "$("$LOCAL" start --parent $$)"
export DIVVY_ENSEMBLE_TICK_MS
readonly FILE=$ZOOKEEPER_LOCAL_DIR/out
trap '"$LOCAL" stop "$ZOOKEEPER_LOCAL_DIR"' EXIT
declare -A pids inputs

/usr/bin/python3 - <<END
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE
client = KazooClient("$DIVVY_CONNECT")
client.start()
client.create("/example-denied", acl=READ_ACL_UNSAFE)
END
mkfifo "$FILE.dora.in"
"$ELECTION" "$DIVVY_CONNECT" /example-denied dora <"$FILE.dora.in" >"$FILE.dora" 2>&1 &
exec {fd}>"$FILE.dora.in"
says dora "election: it stands no longer: the access list of the node denies this" 1
exec {fd}>&-

begin anna
says anna "I lead" 1
begin berta
says berta "anna leads" 1
# Berta may not stand yet when she asks: then Anna leads again, and is asked again. A request too many is to herself.
until=$((SECONDS + DEADLINE_S))
until grep -qFx "I lead" "$FILE.berta"; do
    ((SECONDS < until)) || fail "berta has never led"
    printf '\n' >&"${inputs[berta]}"
    sleep 1
done
says anna "berta asks me to step down, and I do" 1
says anna "berta leads" 1
begin clara 10
says clara "I lead" 1
says anna "clara leads" 1
grep -qFx "clara asks me to step down, and I do" "$FILE.anna" "$FILE.berta" || fail "clara has asked nobody"
for name in clara berta anna; do
    fd=${inputs[$name]}
    exec {fd}>&-
    wait "${pids[$name]}" || fail "$name ended with status $?"
done
status=0
"$ELECTION" 2>/dev/null || status=$?
((status == 2)) || fail "without arguments it ended with $status"
