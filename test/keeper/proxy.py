#!/usr/bin/python3
"""A proxy that makes a ZooKeeper look like a server that is not one. SPDX-License-Identifier: Apache-2.0

It reads what clients send and refuses some requests, by their opcodes, in one of three ways:

  close         it answers nothing and closes the connection, as ClickHouse Keeper does
  answer        it answers "unimplemented"
  answer-close  it answers so, and then closes the connection, as old ZooKeepers do

  --refuse 15,19     the opcodes
  --how close        the way
  --counted          sessions have the numbers 1, 2, 3, ...
  --forgetful        nobody has a session again after a disconnect: the client is given a new one
  --silent-conf      "conf" is answered without a tickTime

It prints its address, and ends when its standard input does. For each line there it prints one line of JSON: how many
requests of each opcode came ("14.1" is a create in a multi), and how many of each were refused in each session.
"""
import argparse
import asyncio
import collections
import json
import struct
import sys

UNIMPLEMENTED = -6
EVENT = -1  # in place of a request's number
CREATE, DELETE, SET_DATA, CHECK, MULTI = 1, 2, 5, 13, 14
LARGEST = 8 * 1024 * 1024


class Reader:
    """Takes values off the front of a request."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value, = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return value

    def skip_buffer(self):
        length = self.number("i")
        self.at += max(length, 0)


def opcodes_of_multi(data):
    """Yields the opcodes of the operations that a multi holds; `data` is what follows its header."""
    r = Reader(data)
    while True:
        opcode, done, _ = r.number("i"), r.number("b"), r.number("i")
        if done:
            return
        yield opcode
        r.skip_buffer()
        if opcode in (CREATE, SET_DATA):
            r.skip_buffer()
        if opcode == CREATE:
            for _ in range(r.number("i")):
                r.number("i")
                r.skip_buffer()
                r.skip_buffer()
        if opcode not in (CREATE, DELETE, SET_DATA, CHECK):
            raise ValueError(f"opcode {opcode} in a multi")
        r.number("i")


class Proxy:
    def __init__(self, options):
        self.options = options
        self.refuse = {int(n) for n in options.refuse.split(",") if n}
        self.requests = collections.Counter()
        self.refused = collections.defaultdict(collections.Counter)
        self.numbers = {}  # the numbers of sessions, as 8 bytes: the server's, ours

    def report(self):
        return json.dumps({"requests": self.requests, "refused": self.refused, "sessions": len(self.numbers)})

    async def frame(self, reader):
        head = await reader.readexactly(4)
        length, = struct.unpack(">i", head)
        if not 0 <= length <= LARGEST:
            raise ValueError(f"a message of {length} bytes")
        return await reader.readexactly(length)

    @staticmethod
    def send(writer, body):
        writer.write(struct.pack(">i", len(body)) + body)

    async def word(self, word, client, server):
        """Answers a four letter word."""
        server[1].write(word)
        text = await server[0].read(-1)
        if word == b"conf" and self.options.silent_conf:
            text = b"".join(line for line in text.splitlines(True) if not line.startswith(b"tickTime="))
        client[1].write(text)

    async def connect(self, head, client, server):
        """Passes the connect request and its answer. Returns the session's number, as the client knows it."""
        request = bytearray(await client[0].readexactly(struct.unpack(">i", head)[0]))
        if self.options.forgetful or self.options.counted:
            request[16:24] = bytes(8)  # behind version, zxid and timeout
        self.send(server[1], request)
        answer = bytearray(await self.frame(server[0]))
        own = bytes(answer[8:16])
        if own not in self.numbers:
            self.numbers[own] = struct.pack(">q", len(self.numbers) + 1) if self.options.counted else own
        answer[8:16] = self.numbers[own]
        self.send(client[1], answer)
        return self.numbers[own].hex()

    def refuses(self, session, body):
        """Counts a request. Returns whether it is to be refused."""
        opcode, = struct.unpack_from(">i", body, 4)
        self.requests[str(opcode)] += 1
        if opcode == MULTI:
            for inner in opcodes_of_multi(body[8:]):
                self.requests[f"{MULTI}.{inner}"] += 1
        if opcode not in self.refuse:
            return False
        self.refused[session][str(opcode)] += 1
        return True

    async def requests_of(self, session, client, server, unanswered):
        while True:
            body = await self.frame(client[0])
            xid = struct.unpack_from(">i", body)[0]
            if not self.refuses(session, body):
                unanswered.put_nowait(xid)
                self.send(server[1], body)
                continue
            if self.options.how != "close":
                await unanswered.join()  # Answers come in the order of the requests.
                self.send(client[1], struct.pack(">iqi", xid, 0, UNIMPLEMENTED))
            if self.options.how != "answer":
                return

    async def replies_of(self, client, server, unanswered):
        while True:
            body = await self.frame(server[0])
            if struct.unpack_from(">i", body)[0] != EVENT:
                unanswered.task_done()
            if self.options.counted:
                for own, ours in self.numbers.items():
                    body = body.replace(own, ours)
            self.send(client[1], body)

    @staticmethod
    async def until_gone(way):
        try:
            await way
        except (OSError, asyncio.IncompleteReadError):
            pass  # One side has gone: so does the other.

    @staticmethod
    async def hang_up(client):
        """Ends a connection from this side and waits for the client to: to close it at once could take back an answer
        that the client has not read, if more of its requests are on their way."""
        client[1].write_eof()
        while await client[0].read(65536):
            pass

    async def talk(self, client, server):
        head = await client[0].readexactly(4)
        if head.isalpha():
            await self.word(head, client, server)
            return
        session = await self.connect(head, client, server)
        unanswered = asyncio.Queue()
        ways = [asyncio.ensure_future(self.until_gone(self.requests_of(session, client, server, unanswered))),
                asyncio.ensure_future(self.until_gone(self.replies_of(client, server, unanswered)))]
        _, others = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in others:
            way.cancel()
        for result in await asyncio.gather(*ways, return_exceptions=True):
            if isinstance(result, Exception):
                raise result  # a message that this does not understand
        if self.options.how == "answer-close":
            await self.hang_up(client)

    async def accept(self, reader, writer):
        host, port = self.options.upstream.rsplit(":", 1)
        server = None
        try:
            server = await asyncio.open_connection(host, int(port))
            await self.talk((reader, writer), server)
        except (OSError, asyncio.IncompleteReadError):
            pass  # One side has gone: so does the other.
        finally:
            writer.close()
            if server:
                server[1].close()


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("upstream", help="127.0.0.1:PORT of the ZooKeeper")
    parser.add_argument("--refuse", default="15,19")
    parser.add_argument("--how", default="close", choices=("close", "answer", "answer-close"))
    parser.add_argument("--counted", action="store_true")
    parser.add_argument("--forgetful", action="store_true")
    parser.add_argument("--silent-conf", action="store_true")
    proxy = Proxy(parser.parse_args())
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    print("127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while await lines.readline():
        print(proxy.report(), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
