"""What members were told of who leads, held against the truth. SPDX-License-Identifier: Apache-2.0

Who believes that it leads is checked as who believes that it holds a lock (rules.py: S1 to S3, S5, S7, L1), for an
election is one. J3 is about the others: the leader that they were told of stood first in the queue, under the name that
they were told; and at the end of a quiet time they were told of one that leads, or has just led.
"""

ELECTION = '/chaos/elections/e0'


def check_leaders(checker, log):
    """Each leader that was told of stood, under this name, and those before it had gone when it was told of."""
    queue = checker.queue(ELECTION)
    for time, token, name in log.leaders:
        if not token:
            continue
        told = f'{log.name} was told at {time} that {name} leads with token {token:#x}'
        nodes = queue.by_token.get(token)
        if not nodes or checker.boot(nodes[0].created_ms) > time + checker.slack:
            checker.violate('J3', f'{told}; there was no such node')
            continue
        node = nodes[0]
        if node.versions[0].data.decode() != name:
            checker.violate('J3', f'{told}; the node says {node.versions[0].data}')
        for other in queue.before(node, time + checker.slack + checker.offset, False):
            if other.name[-10:] < node.name[-10:]:
                checker.violate('J3', f'{told}; {other.path} stands before it')


def check_told(checker, log, end, patience_ms):
    """Whom a member was told of last leads, or had its turn not long before."""
    told = sorted((time, token) for time, token, _ in log.leaders if time <= end)[-1:]
    nodes = checker.queue(ELECTION).by_token.get(told[0][1], []) if told else []
    if not any(node.end_ms is None or checker.boot(node.end_ms) > end - patience_ms for node in nodes):
        checker.violate('L1', f'{log.name} was told of {told} last, and that one did not lead from '
                              f'{end - patience_ms} to {end}')
