"""A plugin of pytest that runs kazoo's own suite on divvy.kazoo. SPDX-License-Identifier: Apache-2.0

kazoo's harness is given a client whose recipes are divvy's, and a server that is there already. A proxy stands before
it, so that `lose_connection` breaks the connections of both libraries.
"""
import os
import socket
import sys
import threading
import types
import unittest.mock

import kazoo.testing.harness as harness
from kazoo.protocol.states import KazooState

from divvy.kazoo import KazooClient


class Proxy:
    """A port that leads to the server, until its connections are broken."""

    def __init__(self, target):
        self._target = target
        self._guard = threading.Lock()
        self._open = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            near, _ = self._listener.accept()
            far = socket.create_connection(self._target)
            with self._guard:
                self._open += [near, far]
            for source, sink in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source, sink):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        with self._guard:
            ends, self._open = self._open, []
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


host, port = os.environ["DIVVY_CONNECT"].rsplit(":", 1)
proxy = Proxy((host, int(port)))


def lose_connection(test, event_factory):
    """Breaks all connections, and waits until kazoo's client is back."""
    lost, back = event_factory(), event_factory()

    def listen(state):
        if state == KazooState.SUSPENDED:
            lost.set()
        elif lost.is_set() and state == KazooState.CONNECTED:
            back.set()
            return True

    test.client.add_listener(listen)
    proxy.cut()
    for event in (lost, back):
        event.wait(15)
        assert event.is_set()


class ActiveThread:
    """KazooLockTests.active_thread: a contender leaves the None before it until the test has seen that.

    The test waits for None between two contenders, and for ever where the next one has the lock at once.
    """

    def __get__(self, test, _=None):
        if threading.current_thread() is threading.main_thread():
            test.is_unseen = False
        return test.active_name

    def __set__(self, test, name):
        while name and test.is_unseen:
            test.condition.wait(0.01)
        test.is_unseen = name is None and threading.current_thread() is not threading.main_thread()
        test.active_name = name


sys.modules["mock"] = unittest.mock  # the package of this name is its backport
harness.KazooClient = KazooClient
harness.KazooTestHarness.cluster = property(lambda _: [types.SimpleNamespace(address=proxy.address, running=True)])
harness.KazooTestHarness.lose_connection = lose_connection

from kazoo.tests.test_lock import KazooLockTests  # noqa: E402 (it takes the harness as it is by then)

KazooLockTests.active_thread = ActiveThread()
