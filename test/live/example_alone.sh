#!/bin/bash
# Runs an example without arguments on a private server; it must end by itself, having owned all items at some time.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

readonly PROGRAM=${1:?usage: example_alone.sh PROGRAM}
readonly LOCAL=$(dirname -- "${BASH_SOURCE[0]}")/../../tools/zookeeper-local

eval "$("$LOCAL" start --parent $$)"
trap '"$LOCAL" stop "$ZOOKEEPER_LOCAL_DIR"' EXIT
export DIVVY_CONNECT DIVVY_ENSEMBLE_TICK_MS
output=$("$PROGRAM")
printf '%s\n' "$output"
for item in alpha beta gamma delta; do
    [[ $output == *" $item"* ]]
done
