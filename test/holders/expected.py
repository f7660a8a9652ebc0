"""What is expected of each peer of test/holders/run, written before it was run. SPDX-License-Identifier: Apache-2.0

Numbers are seconds within the 14 s from a fault's beginning on.
"""

# What a peer's answer rests on. This decides what comes of a fault.
CLOCK = "its own clock, and the servers' tick as told"
ENDS = "the same; and the command ends when it is told to"
POOL_CLOCK = "the same as divvy's lock; what is free is given out after 1 s of quiet"
LEASE = "its own clock, looked at twice a second"
LISTENER = "the client hears of it before the servers give the lock away"
POOL_LISTENER = "the same as a listener; what is free is given out after 1 s of quiet"
NOTHING = "the session never ends while it works"
PEERS = {
    "divvy": ("divvy, divvy_lock_held()", CLOCK),
    "divvy-command": ("divvy lock NAME COMMAND", ENDS),
    "divvy-partitioner": ("divvy, divvy_partitioner_owns()", POOL_CLOCK),
    "kazoo": ("kazoo Lock", NOTHING),
    "kazoo-listener": ("kazoo Lock, with listener", LISTENER),
    "kazoo-partitioner": ("kazoo SetPartitioner", POOL_LISTENER),
    "curator": ("Curator InterProcessMutex", NOTHING),
    "curator-listener": ("Curator InterProcessMutex, with listener", LISTENER),
    "latch": ("Curator LeaderLatch", LISTENER),
    "latch-listener": ("Curator LeaderLatch, with listener", LISTENER),
    "textbook": ("textbook recipe, C client", NOTHING),
    "textbook-listener": ("textbook recipe, C client, with listener", LISTENER),
    "etcd": ("etcdctl lock NAME", LEASE),
    "etcd-command": ("etcdctl lock NAME COMMAND", NOTHING),
}
NEVER = (0, 0)
ALWAYS = (0, 0.2)  # Somebody holds always, but for a pause of the machine.
FORCED = ("forced", "tick")  # An assumption of divvy's is broken.

# Of each fault: (least, most) in which both hold, and in which nobody does.
CUT = {CLOCK: (NEVER, (0, 3)), ENDS: (NEVER, (0, 3)), POOL_CLOCK: (NEVER, (0, 5)), LEASE: ((0, 1), (0, 2)),
       LISTENER: (NEVER, (0, 3)), POOL_LISTENER: (NEVER, (0, 6)), NOTHING: ((9, 11.5), ALWAYS)}
EXPECTED = {
    # The servers give the lock away after 2.7 to 4.5 s, as the last heartbeat was up to a third of the session ago.
    "cut": CUT,
    # Nobody claims anything until the session has ended. At 8 s the first one goes on.
    "stopped": {CLOCK: (NEVER, (2.5, 5)), ENDS: ((0, 0.2), (2.5, 5)), POOL_CLOCK: (NEVER, (2.5, 6.5)),
                LEASE: ((0, 0.6), (2.5, 5)), LISTENER: ((0, 0.5), (2.5, 5)), POOL_LISTENER: ((0, 0.5), (2.5, 7)),
                NOTHING: ((5, 6.1), (2.5, 5))},
    # No client that is here counts by the wall clock, as far as is known. etcd's are linked so that they cannot be
    # given another clock, and take no part.
    "ahead": {CLOCK: (NEVER, ALWAYS), ENDS: (NEVER, ALWAYS), POOL_CLOCK: (NEVER, ALWAYS), LISTENER: (NEVER, ALWAYS),
              POOL_LISTENER: (NEVER, ALWAYS), NOTHING: (NEVER, ALWAYS)},
    # As cut. A deadline by the wall clock would be an hour late.
    "behind": CUT,
    # The servers give nothing away while they are frozen. Whether the session lives on then is theirs to say.
    "frozen": {CLOCK: (NEVER, (4, 14)), ENDS: (NEVER, (4, 14)), POOL_CLOCK: (NEVER, (4, 14)), LEASE: (NEVER, (4, 14)),
               LISTENER: (NEVER, (4, 14)), POOL_LISTENER: (NEVER, (4, 14)), NOTHING: ((0, 6), ALWAYS)},
    # The client finds another server within its session. A listener has heard SUSPENDED by then, and kazoo's
    # partitioner has given all back. divvy's keeps it while its clock allows.
    "killed": {CLOCK: (NEVER, ALWAYS), ENDS: (NEVER, ALWAYS), POOL_CLOCK: (NEVER, ALWAYS), LEASE: (NEVER, ALWAYS),
               LISTENER: (NEVER, (0, 3)), POOL_LISTENER: (NEVER, (1, 6)), NOTHING: (NEVER, ALWAYS)},
    # As killed, but all wait for an election. The new leader gives each session its whole time again. An election of
    # more than 2 s may end what divvy holds, and then the session has to end.
    "leader": {CLOCK: (NEVER, (0, 7)), ENDS: (NEVER, (0, 7)), POOL_CLOCK: (NEVER, (0, 9)), LEASE: (NEVER, (0, 1)),
               LISTENER: (NEVER, (0, 7)), POOL_LISTENER: (NEVER, (1, 9)), NOTHING: (NEVER, ALWAYS)},
    # Servers answer pings without their disk, so sessions live on. divvy's heartbeats are writes, which take one to two
    # seconds now, and it needs three in a row within its session. So it stops, and the other one cannot begin before
    # the disks are fast again. Whether etcd keeps its leader for long enough is not known.
    "slow": {CLOCK: (NEVER, (2, 11)), ENDS: (NEVER, (2, 12)), POOL_CLOCK: (NEVER, (2, 14)), LEASE: (NEVER, (0, 14)),
             LISTENER: (NEVER, ALWAYS), POOL_LISTENER: (NEVER, ALWAYS), NOTHING: (NEVER, ALWAYS)},
    # The other one has the lock at once. The first one's clock says so after 2 to 4 s only.
    "forced": {CLOCK: ((1.5, 4), (0, 0.5))},
    # The server dies 1.9 s after it has told the leader of the session for the last time. The leader ends that 2.45 s
    # later: it counts 4 s from then on, and rounds up to a tick, which is 0.35 s here. The newest request that the
    # first one takes for proven is 0.4 to 0.8 s old as the server dies. So its clock stops it 3.1 to 3.6 s later.
    "tick": {CLOCK: ((0.3, 1.2), ALWAYS)},
}


def takes_part(peer, fault):
    """Returns whether the peer can be in that fault."""
    if fault in FORCED:
        return peer == "divvy"
    return fault not in ("ahead", "behind") or not peer.startswith("etcd")
