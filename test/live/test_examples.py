#!/usr/bin/python3
"""Runs the programs of docs/examples as their readers would. SPDX-License-Identifier: Apache-2.0

Shows programs of the documents, run by processes as their readers run them.

usage: test_examples.py BUILD_FOLDER [--unreachable] [EXAMPLE...]

Claims, for each example: one alone owns all items; a second one that joins gets some, so that each item is owned
exactly once again, while the first keeps the others all along (but for kazoo's loop, where everything stops); when one
is told to stop, the other takes over all; both exit with 0, have printed no complaint, and leave no ephemeral node;
wrong usage, a bad path and bad hosts are told as such, with exit status 2 and 1. With --unreachable: so is a server
that is not there, within the time that the examples give it, and ^C ends them before that.

Claims, for the examples with threads: no piece of work on an item begins before the last one of its former owner has
ended, and tokens grow. What a process has begun counts in the end, also when the process is told to stop and a piece
lasts longer than a session. After the loss of a session nothing of it counts, and no thread works under its tokens when
the member takes part again.

What a program owns is taken from what it prints, since that is what a reader sees.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import command_harness
from command_harness import DEADLINE_S, wait_for

EXAMPLES = ["kazoo_loop", "incremental_loop", "callbacks_poll"]
WITH_THREADS = ["workers", "thread_pool", "epoll_threads"]
ITEMS = ["alpha", "beta", "gamma", "delta", "epsilon"]


class Example:
    """One running example, and what it owns by what it has printed so far."""

    def __init__(self, folder, name, *arguments, environment=(), log=None):
        self.name = name
        self.lines = []
        self.owned = set()
        self.history = []
        # With a log, `tee` would be too late: the programs write to one file themselves, so its order is the true one.
        self.process = subprocess.Popen([os.path.join(folder, name), *arguments], stdout=log or subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **dict(environment)})
        self.readers = [threading.Thread(target=self._read_out), threading.Thread(target=self._read_err)]
        self.errors = ""
        for reader in self.readers:
            reader.start()

    def _read_out(self):
        for line in self.process.stdout or ():
            self.lines.append(line.rstrip("\n"))
            what, _, items = line.partition(":")
            items = set(items.split())
            # A new set each time, so that a reader in another thread never sees one half changed.
            if what == "owned":
                self.owned = items
            elif what == "gained":
                self.owned = self.owned | items
            elif what in ("lost", "revoked"):
                self.owned = self.owned - items
            elif what == "released":
                self.owned = set()
            self.history.append(self.owned)

    def _read_err(self):
        self.errors = self.process.stderr.read()

    def stop(self, number):
        self.process.send_signal(number)

    def end(self):
        """Waits for the end; returns the exit status."""
        status = self.process.wait(DEADLINE_S)
        for reader in self.readers:
            reader.join()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.end()

    def __str__(self):
        return "%s, pid %d, has printed:\n    %s\n    %s" % (self.name, self.process.pid, "\n    ".join(self.lines),
                                                              self.errors)


class Server(command_harness.Server):
    """A private ZooKeeper for the time of a `with`, which can be frozen."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.do("stop")

    def freeze(self, frozen):
        self.do("pause" if frozen else "resume", "1")

    def ephemerals(self):
        """The paths of all ephemeral nodes, as the server itself lists them."""
        host, port = self.connect.split(":")
        answer = b""
        with socket.create_connection((host, int(port)), 5) as connection:
            connection.sendall(b"dump")
            while part := connection.recv(65536):
                answer += part
        assert b"Sessions with Ephemerals" in answer, answer
        return re.findall(r"^\t(/.*)$", answer.decode(), re.MULTILINE)


def check(condition, what, *shown):
    if not condition:
        raise AssertionError("%s\n%s" % (what, "\n".join(map(str, shown))))


def check_division(folder, name, server):
    path = "/examples/" + name
    first = Example(folder, name, server.connect, path, *ITEMS)
    second = None
    try:
        wait_for(lambda: first.owned == set(ITEMS), "one alone owns everything", first)
        alone = len(first.history)
        second = Example(folder, name, server.connect, path, *ITEMS)
        wait_for(lambda: first.owned and second.owned and sorted([*first.owned, *second.owned]) == sorted(ITEMS),
                 "each item is owned exactly once, and both have some", first, second)
        if name != "kazoo_loop":
            check(all(first.owned <= owned for owned in first.history[alone:]), "kept items never stop", first)
        check(len([p for p in server.ephemerals() if p.startswith(path + "/locks/")]) == len(ITEMS),
              "each item has one lock node: %s" % server.ephemerals(), first, second)
        first.stop(signal.SIGTERM)
        check(first.end() == 0, "SIGTERM is a clean end", first)
        wait_for(lambda: sorted(second.owned) == sorted(ITEMS), "the one that stays takes over all", first, second)
        second.stop(signal.SIGINT)
        check(second.end() == 0, "SIGINT is a clean end", second)
        check(not first.errors and not second.errors, "no complaint", first, second)
        check(not server.ephemerals(), "nothing is left behind: %s" % server.ephemerals())
    finally:
        first.kill()
        if second:
            second.kill()


class Pieces:
    """A file to which several examples write, and what it says of their pieces of work, in the order of all."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "pieces")
        self.file = open(self.path, "a")  # O_APPEND: a line that is written is behind all that were

    def close(self):
        self.file.close()
        os.remove(self.path)

    def lines(self):
        with open(self.path) as file:
            return [line.split() for line in file.read().split("\n")[:-1]]

    def pieces(self, what, since=0):
        return [(item, int(token)) for word, item, token in
                (line for line in self.lines()[since:] if line[0] in ("begin", "done", "dropped")) if word == what]

    def check(self):
        """One piece of an item at a time, tokens that never go back, and nothing under way at the end."""
        under_way, newest = {}, {}
        for line in self.lines():
            if line[0] not in ("begin", "done", "dropped"):
                continue
            what, item, token = line[0], line[1], int(line[2])
            if what == "begin":
                check(item not in under_way, "one piece of %s at a time" % item, self)
                check(token >= newest.get(item, 0), "the tokens of %s grow" % item, self)
                under_way[item] = newest[item] = token
            else:
                check(under_way.pop(item, None) == token, "what ends has begun: %s" % line, self)
        check(not under_way, "each piece has ended: %s" % under_way, self)

    def __str__(self):
        return "\n".join(map(" ".join, self.lines()))


def check_threads_hand_over(folder, name, server):
    """A member joins and a member leaves, with pieces under way: each is waited for."""
    pieces = Pieces(server.folder)
    arguments = [server.connect, "/examples/%s/hand-over" % name, *ITEMS]
    environment = {"PIECE_MS": "300"}
    first = second = None
    try:
        first = Example(folder, name, *arguments, environment=environment, log=pieces.file)
        wait_for(lambda: {item for item, _ in pieces.pieces("done")} == set(ITEMS), "one works on all", pieces, first)
        old = set(pieces.pieces("begin"))
        second = Example(folder, name, *arguments, environment=environment, log=pieces.file)
        wait_for(lambda: set(pieces.pieces("begin")) - old, "the other one works too", pieces, first, second)
        first.stop(signal.SIGTERM)
        check(first.end() == 0, "SIGTERM is a clean end", first)
        since = len(pieces.lines())
        wait_for(lambda: {item for item, _ in pieces.pieces("done", since)} == set(ITEMS), "one works on all", pieces)
        second.stop(signal.SIGINT)
        check(second.end() == 0, "SIGINT is a clean end", second)
        pieces.check()
        check(not pieces.pieces("dropped"), "every piece counts", pieces)
    finally:
        for example in (first, second):
            if example:
                example.kill()
        pieces.close()


def check_threads_long_pieces(folder, name, server):
    """Pieces that last longer than a session. One is lost under them; then the process is told to stop. A busy machine
    can lose the next one, too: then it is tried again."""
    for attempt in range(3):
        pieces = Pieces(server.folder)
        environment = {"PIECE_MS": "5000", "SESSION_TIMEOUT_MS": "2000"}
        example = Example(folder, name, server.connect, "/examples/%s/long%d" % (name, attempt), *ITEMS[:4],
                          environment=environment, log=pieces.file)
        try:
            wait_for(lambda: len(pieces.pieces("begin")) >= 4, "all work", pieces, example)
            server.freeze(True)
            try:
                wait_for(lambda: pieces.lines()[-1] == ["owned:"], "the loss of the session is seen", pieces, example)
                lost = set(pieces.pieces("begin"))
            finally:
                server.freeze(False)
            wait_for(lambda: len(set(pieces.pieces("begin")) - lost) == 4, "all work again", pieces, example)
            dropped = set(pieces.pieces("dropped"))
            check(dropped and dropped <= lost, "what was lost counts no longer", pieces, example)
            fresh = set(pieces.pieces("begin")) - lost
            example.stop(signal.SIGTERM)
            status = example.end()
            lost_again = status == 1 and "orderly way: the session is lost" in example.errors
            check(status == 0 or lost_again, "SIGTERM is a clean end", example)
            pieces.check()
            if not lost_again:
                check(not server.ephemerals(), "nothing is left behind: %s" % server.ephemerals())
                if set(pieces.pieces("done")) >= fresh:
                    return
            shown = str(pieces)
        finally:
            example.kill()
            pieces.close()
    check(False, "what was begun before the SIGTERM counts", shown)


def unused_address():
    """Of a port that is bound, so that nobody else gets it, but that nobody listens on."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    return holder, "127.0.0.1:%d" % holder.getsockname()[1]


def check_bad_usage(folder, name):
    example = Example(folder, name, "127.0.0.1:1", "/no/items")
    check(example.end() == 2 and example.errors == "usage: %s HOSTS PATH ITEM...\n" % name, "wrong usage", example)
    example = Example(folder, name, "127.0.0.1:no-port", "/bad/hosts", "alpha")
    check(example.end() == 1 and "no-port" in example.errors, "the message says what is malformed", example)


def check_bad_path(folder, name, server):
    example = Example(folder, name, server.connect, "relative", "alpha")
    check(example.end() == 1 and "relative" in example.errors, "the message says what is malformed", example)


def check_unreachable(folder, examples):
    holder, nobody = unused_address()
    with holder:
        lonely = [Example(folder, name, nobody, "/nobody", "alpha") for name in examples]
        try:
            for example in lonely:
                check(example.end() == 1 and nobody in example.errors, "the message says where nobody answers", example)
        finally:
            for example in lonely:
                example.kill()


def check_interrupted(folder, examples):
    for name in examples:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.settimeout(DEADLINE_S)
            example = Example(folder, name, "127.0.0.1:%d" % silent.getsockname()[1], "/nobody", "alpha")
            try:
                silent.accept()  # it waits for an answer from now on
                example.stop(signal.SIGINT)
                check(example.end() == -signal.SIGINT, "^C ends it at once", example)
            finally:
                example.kill()


def main():
    folder = os.path.join(sys.argv[1], "docs", "examples")
    arguments = sys.argv[2:]
    examples = [name for name in arguments if not name.startswith("-")] or EXAMPLES
    if "--unreachable" in arguments:
        check_unreachable(folder, examples)
        check_interrupted(folder, examples)
        return
    with Server() as server:
        for name in examples:
            check_bad_usage(folder, name)
            check_bad_path(folder, name, server)
            check_division(folder, name, server)
            if name in WITH_THREADS:
                check_threads_hand_over(folder, name, server)
                check_threads_long_pieces(folder, name, server)


if __name__ == "__main__":
    main()
