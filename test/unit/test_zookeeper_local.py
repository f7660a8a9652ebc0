#!/usr/bin/python3
"""tools/zookeeper-local, where a server does not answer as it should. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "zookeeper-local"


def hang_up(listener):
    """Resets each connection once a word has come, as a server does that is about to end."""
    while True:
        connection, _ = listener.accept()
        connection.recv(4)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


class Status(unittest.TestCase):
    def test_hangs_up(self):
        """A server that hangs up is silent, and the shell's own words about it stay away."""
        server = subprocess.Popen(["sleep", "600"])
        with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=hang_up, args=(listener,), daemon=True).start()
            home = pathlib.Path(folder, "1")
            home.mkdir()
            pathlib.Path(folder, ".zookeeper-local").touch()
            address = "127.0.0.1:%d" % listener.getsockname()[1]
            start = pathlib.Path("/proc/%d/stat" % server.pid).read_text(encoding="utf-8").rsplit(") ")[1].split()[19]
            (home / "address").write_text(address + "\n", encoding="utf-8")
            (home / "pid").write_text("%d %s\n" % (server.pid, start), encoding="utf-8")
            try:
                done = subprocess.run([TOOL, "status", folder], capture_output=True, text=True, timeout=60, check=False)
            finally:
                server.kill()
                server.wait()
        self.assertEqual((done.returncode, done.stdout.split(), done.stderr),
                         (1, ["1", str(server.pid), address, "silent"], ""))


if __name__ == "__main__":
    unittest.main(argv=[__file__])
