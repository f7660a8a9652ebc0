#!/bin/sh
# Works on one item until it is told to stop. SPDX-License-Identifier: Apache-2.0
#
#   divvy partition --path /work_queues --items-from queues.txt -- ./worker.sh {item}
#
# Start that on as many machines as there are. Each item has one worker, on one of them; when a machine comes or goes,
# workers are stopped on one and started on another. SIGTERM asks for an end, of this script and of all that it has
# started. So a piece of work ignores it: what is at hand is finished, within --drain. The next worker begins then.
if [ $# -ne 1 ]; then
    echo "usage: worker.sh ITEM" >&2
    exit 2
fi
item=$1
stopping=
trap 'stopping=yes' TERM

while [ -z "$stopping" ]; do
    # A store that remembers the largest token that it saw can refuse a worker that comes too late.
    echo "$item: a piece of work, with token $DIVVY_TOKEN"
    (trap '' TERM; exec sleep "${PIECE_SECONDS:-1}") && echo "$item: done"
done
echo "$item: stopped"
