"""README.md's lines of Python are a member. SPDX-License-Identifier: Apache-2.0"""
import os
import re
import signal
import subprocess
import sys
import threading

from conftest import DEADLINE_S, ROOT, wait_for

QUEUES = ["alpha", "beta", "delta", "gamma"]
BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
GIVEN = """import os, time

queues = %r

def handle_one_message(queue, token):
    os.write(1, b"%%s %%d\\n" %% (queue.encode(), token))  # a line in one piece
    time.sleep(0.02)

""" % QUEUES


class Member:
    """A process that runs the block, and the queues of its pieces of work."""

    def __init__(self, text):
        self.lines = []
        environment = {**os.environ, "DIVVY_LIBEXEC": os.environ["DIVVY_BUILD_DIR"] + "/tools"}
        self.process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.split()[0])

    def lately(self):
        """Returns the queues that its last pieces of work were on."""
        return set(self.lines[-8:])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(DEADLINE_S) == 0
        self.reader.join()
        self.process.stdout.close()


# One alone works on all queues, two on half of them each; the one that SIGTERM ends leaves its own to the other.
def test_block(server, path):
    assert len(BLOCKS) == 1
    text = BLOCKS[0]
    for name, here in (("zk1:2181,zk2:2181,zk3:2181", server.connect), ("/work_queues", path),
                       ("ensemble_tick_ms=2000", "ensemble_tick_ms=100")):
        assert text.count(name) == 1
        text = text.replace(name, here)
    first = Member(GIVEN + text)
    members = [first]
    try:
        wait_for(lambda: first.lately() == set(QUEUES), "one has all")
        second = Member(GIVEN + text)
        members.append(second)

        def halves():
            shares = [member.lately() for member in members]
            return [len(share) for share in shares] == [2, 2] and set.union(*shares) == set(QUEUES)
        wait_for(halves, "each has half")
        first.end()
        wait_for(lambda: second.lately() == set(QUEUES), "the other has all")
        second.end()
    finally:
        for member in members:
            if member.process.poll() is None:
                member.process.kill()
