#!/bin/bash
# The machines of a cluster come up at the same time, and join it one at a time. SPDX-License-Identifier: Apache-2.0
#
#   bootstrap.sh CLUSTER NODE      run it when machine NODE boots
#
# The process that finds no cluster founds one. When two look at the same time, neither sees the other, and there are
# two clusters from then on; so each machine looks, and joins, under a lock. The second one waits until the first one is
# done, and so never meets a member that is only half there.
#
# CLUSTER is a folder that all share, and stands for what you have: a replica set, a quorum, a key-value store.
set -euo pipefail

if [ "${1:-}" != --locked ]; then
    if [ $# -ne 2 ]; then
        echo "usage: bootstrap.sh CLUSTER NODE" >&2
        exit 2
    fi
    # 10 minutes are enough for all others. --max-run: a machine that hangs must not stop those behind it.
    exec divvy lock --timeout 10m --max-run 1m cluster-bootstrap bash "$0" --locked "$@"
fi

cluster=$2
node=$3
if [ ! -e "$cluster/primary" ]; then
    echo "$node: there is no cluster yet; founding it"
    sleep 0.2 # what takes its time: making a file system, starting a server
    echo "$node" >"$cluster/primary"
else
    echo "$node: joining the cluster of $(cat "$cluster/primary")"
fi
echo "$node" >>"$cluster/members"
