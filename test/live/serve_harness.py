"""What the tests of divvy serve share: a running one, and its stream of changes. SPDX-License-Identifier: Apache-2.0"""
import http.client
import json
import re
import signal
import socket
import subprocess
import urllib.parse

from command_harness import DEADLINE_S, wait_for
from look_harness import Case, command

MEMBER = "0000000000%d00000000000%d,a=2,s=00000000-%s"


class Serve:
    """A running `divvy serve`, at a port of its own."""

    def __init__(self, *arguments, connect=None, interval="100ms", listen="127.0.0.1:0"):
        if "--timeout" not in arguments:
            arguments = ("--timeout", "1m", *arguments)  # for servers on a busy machine
        words = command("serve", "--listen", listen, "--interval", interval, *arguments, connect=connect)
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape")
        self.told = self.process.stderr.readline()
        found = re.search(r"http://(.*):([0-9]+)/", self.told)
        assert found, self.told + self.process.stderr.read()
        self.host, self.port = found.group(1).strip("[]"), int(found.group(2))
        self.url = "http://%s:%d/" % (found.group(1), self.port)

    def ask(self, path, method="GET", body=None, **headers):
        """The status, the headers and the body of an answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE_S)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, path):
        status, _, body = self.ask(path)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def pool(self, number=0):
        return self.json("/state")["pools"][number]

    def looks(self):
        return int(re.search(r"(?m)^divvy_serve_looks_total (\d+)$", self.ask("/metrics")[2].decode()).group(1))

    def rows(self, table, **question):
        return self.json("/rows?" + urllib.parse.urlencode({"table": table, **question}))

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=DEADLINE_S)

    def end(self, number=signal.SIGTERM):
        """Ends it by a signal. Returns its exit code, and what it said on stderr behind the first line."""
        if self.process.stderr.closed:
            return self.process.returncode, ""
        self.process.send_signal(number)
        said = self.process.stderr.read()
        self.process.stderr.close()
        return self.process.wait(DEADLINE_S), said


class Stream:
    """The changes that a page is told, as they come."""

    def __init__(self, serve):
        self.socket = serve.connect()
        self.socket.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = http.client.parse_headers(self.file)
        self.chunks, self.bytes = b"", 0
        if self.status == 200:
            assert self._line() == b"retry: 2000", "the stream begins with the time until the next try"

    def _line(self):
        """Returns the next line out of the chunks; None at the end."""
        while b"\n" not in self.chunks:
            size = self.file.readline()
            count = int(size, 16) if size.strip() else 0
            if not count:
                return None
            self.chunks += self.file.read(count + 2)[:-2]
        line, self.chunks = self.chunks.split(b"\n", 1)
        self.bytes += len(line) + 1
        return line

    def next(self, condition=lambda change: True):
        """Returns the next change for which the condition holds; None when the stream has ended."""
        while True:
            line = self._line()
            if line is None:
                return None
            if line.startswith(b"data: "):
                change = json.loads(line[len(b"data: "):])
                if condition(change):
                    return change

    def close(self):
        self.file.close()
        self.socket.close()


class ServeCase(Case):
    def serve(self, *arguments, **options):
        served = Serve("--path", self.path, "--root", self.path + "-divvy", *arguments, **options)
        self.addCleanup(served.end)
        return served

    def stream(self, served):
        stream = Stream(served)
        self.addCleanup(stream.close)
        return stream

    def member(self, name, number=1):
        """A member in the party, and the client that it lives on."""
        client = self.client()
        client.ensure_path(self.path + "/party")
        node = MEMBER % (number, 1, name)
        client.create(self.path + "/party/" + node, b"{}", ephemeral=True)
        return client

    def place(self, client, item, name=b"", number=0):
        """A place of the client's in an item's queue: its path."""
        client.ensure_path(self.path + "/locks/" + item)
        path = "%s/locks/%s/%s__lock__%010d" % (self.path, item, "0" * 23, number)
        return client.create(path, name, ephemeral=True)

    def wait_read(self, served, condition=lambda pool: True):
        """Waits until the pool was read, and looks so."""
        seen = []

        def looks_so():
            seen[:] = [served.pool()]
            return seen[0]["read"] and condition(seen[0])
        wait_for(looks_so, "the pool", seen)
