#!/bin/bash
# All machines start the hourly report at the same time; one makes it. SPDX-License-Identifier: Apache-2.0
#
#   hourly-report.sh DATA [HOUR]      run it by cron on every machine, at the full hour
#
# Making it twice does no harm, but two that make it at the same time would mix up their results. So all run it under a
# lock, one after the other, and those who come later find it made. When the machine that makes it dies, the next one
# makes it.
#
# DATA is a folder that all share, with the numbers to be added up in *.count.
set -euo pipefail

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: hourly-report.sh DATA [HOUR]" >&2
    exit 2
fi
here=$(dirname -- "${BASH_SOURCE[0]}")
. "${DIVVY_SHARE:-$here/../../tools/divvy}/divvy-lock.bash" # installed: /usr/share/divvy/divvy-lock.bash

makeReport() {
    local data=$1 hour=$2 report=$1/report-$2
    if [ -e "$report" ]; then
        echo "$HOSTNAME: the report of $hour is there already"
        return
    fi
    # The token grows with each holder of the lock: it tells which of two reports is the later one.
    cat "$data"/*.count | awk -v token="$DIVVY_LOCK_TOKEN" '{ sum += $1 } END { print sum, token }' >"$report.new"
    mv "$report.new" "$report" # a reader sees all of it or none
    echo "$HOSTNAME: made the report of $hour"
}

divvyLock --timeout 30m hourly-report makeReport "$1" "${2:-$(date +%Y-%m-%dT%H)}"
