"""A TCP proxy that can be cut, for test/holders/run. SPDX-License-Identifier: Apache-2.0

A client sees one port for each server. All of them lead to the first server that takes a connection, so the harness
knows where a client is. Cut: not a byte passes in either direction, no connection ends, and new ones hang, as where a
network drops packets. After a cut all that was sent arrives, as TCP would send it again. Where it hides the servers'
settings, the four letter word `conf` gets the answer of a server that does not allow it.
"""
import asyncio
import threading

CONF, NOT_ALLOWED = b"conf", b"conf is not executed because it is not in the whitelist.\n"


class Loop:
    """The thread that all proxies run in."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)


class Proxy:
    def __init__(self, loop, servers, hides_conf=False):
        self.loop, self.servers = loop, servers  # servers: [(host, port)], the preferred one first
        self.hides_conf = hides_conf
        self.hosts = ",".join("127.0.0.1:%d" % port for port in loop.run(self._listen()))

    async def _listen(self):
        self.open = asyncio.Event()
        self.open.set()
        self.tasks = set()
        self.listeners = [await asyncio.start_server(self._serve, "127.0.0.1", 0) for _ in self.servers]
        return [listener.sockets[0].getsockname()[1] for listener in self.listeners]

    async def _call(self, what):
        what()

    def cut(self):
        self.loop.run(self._call(self.open.clear))

    def heal(self):
        self.loop.run(self._call(self.open.set))

    async def _dial(self):
        for host, port in self.servers:
            try:
                return await asyncio.open_connection(host, port)
            except OSError:
                pass
        return None, None

    async def _pump(self, reader, writer):
        try:
            while True:
                data = await reader.read(65536)
                await self.open.wait()
                if not data:
                    return
                writer.write(data)
                await writer.drain()
        except OSError:
            pass

    async def _serve(self, reader, writer):
        await self.open.wait()
        head = b""
        if self.hides_conf:
            try:
                head = await reader.readexactly(len(CONF))
            except (OSError, asyncio.IncompleteReadError):
                writer.close()
                return
        if head == CONF:
            writer.write(NOT_ALLOWED)
            writer.close()
            return
        server_reader, server_writer = await self._dial()
        if server_writer:
            server_writer.write(head)
            ways = [asyncio.ensure_future(self._pump(reader, server_writer)),
                    asyncio.ensure_future(self._pump(server_reader, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            server_writer.close()
        writer.close()
