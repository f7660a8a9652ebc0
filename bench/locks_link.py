"""A slow link to a server, which counts requests: round trips show as time.  SPDX-License-Identifier: Apache-2.0

Each message takes half of the round trip's time in either direction, however many are under way. Requests are the
frames that a client sends, but for what belongs to its session: its beginning, pings, and divvy's heartbeats.
"""
import queue
import socket
import struct
import threading
import time


MULTI, CHECK = 14, 13


def is_of_session(frame):
    """Whether it is a ping, which has a number below 0, or a heartbeat: a transaction that begins with a check."""
    xid, kind = struct.unpack(">ii", frame[:8])
    return xid <= 0 or (kind == MULTI and struct.unpack(">i", frame[8:12])[0] == CHECK)


class Link:
    """A port of this machine that leads to `target`, "HOST:PORT"."""

    def __init__(self, target, round_trip_s):
        host, port = target.rsplit(":", 1)
        self.target, self.delay_s, self.requests = (host, int(port)), round_trip_s / 2, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.target)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._carry(client, server, self._count())
            self._carry(server, client, None)

    def _count(self):
        """Takes what a client sends, and counts the requests in it."""
        data = yield
        begins = True
        while True:
            while len(data) < 8 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
                data += yield
            end = 4 + struct.unpack(">i", data[:4])[0]
            if not begins and not is_of_session(data[4:end]):
                self.requests += 1
            begins = False
            data = data[end:]

    def _carry(self, source, sink, counter):
        held = queue.Queue()

        def read():
            try:
                while data := source.recv(65536):
                    held.put((time.monotonic() + self.delay_s, data))
                    if counter:
                        counter.send(data)
            except OSError:
                pass
            held.put((0, b""))

        def write():
            while (item := held.get())[1]:
                time.sleep(max(0.0, item[0] - time.monotonic()))
                try:
                    sink.sendall(item[1])
                except OSError:
                    break
            try:
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        if counter:
            next(counter)
        for work in (read, write):
            threading.Thread(target=work, daemon=True).start()
