"""The client of asyncio, and how calls that wait are made for a loop. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import functools
import threading
from typing import Any, Callable, Coroutine, Deque, Dict, List, Optional, Set, Tuple, TypeVar

from divvy._arguments import encode, milliseconds
from divvy._cffi import lib
from divvy._core import Handle, Stop, call_until, inside_call, place_for, strings, text
from divvy.client import BaseClient
from divvy.errors import Error, make_error
from divvy.party import kind_of
from divvy.pool import PoolCalls, PoolChange, Request

BUSY_S = 0.01  # after which the loop tries again to serve a session that a thread still serves
LOOK_S = 1.0  # after which a thread that waits for the loop sees that it was closed

T = TypeVar("T")
Self = TypeVar("Self", bound="AsyncClient")


class Answer(Handle):
    """An asynchronous call whose `done` is still to come."""

    def __init__(self, client: AsyncClient) -> None:
        super().__init__()
        self._client = client
        self._made.open()
        self.future: asyncio.Future[Tuple[int, str, Any]] = client._loop.create_future()

    def done(self, result: int, value: Any = None) -> None:
        message = self._explain() if result < 0 else ""
        self._client._dispatch(self._set, result, message, value)

    def _set(self, result: int, message: str, value: Any) -> None:
        self._client._answers.discard(self)
        if not self.future.done():
            self.future.set_result((result, message, value))

    def begin(self, handle: Handle, function: Any, *arguments: Any) -> None:
        """Makes the call with a thing on the client."""
        result = int(handle._ask(function, *arguments, self._user))
        if result == 0:  # else no answer comes
            self._client._answers.add(self)
        self._client._after_call()
        self._client._check(result)

    async def get(self, cancel: Callable[[], object], undo: Callable[[], object]) -> Any:
        """Waits for the answer. Where the waiting task is canceled, so is the call, or else it is undone."""
        try:
            result, message, value = await asyncio.shield(self.future)
        except asyncio.CancelledError:
            self.future.add_done_callback(lambda future: undo() if future.result()[0] == 0 else None)
            with contextlib.suppress(Error):  # it is closed
                cancel()
            raise
        if result < 0:
            raise make_error(result, message)
        return value


class Waits(Handle):
    """A thing with calls that wait in the executor."""

    _client: AsyncClient
    _manual = True

    async def _list(self, function: Any, timeout: Optional[float]) -> List[str]:
        out = place_for("divvy_strings", lib.divvy_strings_free)
        await self._run(wait, function, out, milliseconds(timeout))
        return strings(out[0])

    async def _run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Makes a waiting call in the executor, which serves the session in the loop's place while it waits."""
        client, stop = self._client, Stop()
        made = functools.partial(call_until, stop, function, self, *arguments)
        call: asyncio.Future[T] = client._loop.run_in_executor(None, client._serve_by, made)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            stop.wanted = True
            call.add_done_callback(lambda done: done.exception())
            raise


class AsyncClient(BaseClient, Waits, PoolCalls[Coroutine[Any, Any, PoolChange]]):
    """One ZooKeeper session, which the running event loop serves."""

    def _prepare(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._answers: Set[Answer] = set()
        self._due: Deque[Callable[[], object]] = collections.deque()  # what the loop has to call
        self._calling = False
        self._thread = threading.get_ident()
        self._paused = 0
        self._ending: Optional[asyncio.Future[None]] = None
        self._streams: Dict[asyncio.Queue[Any], Handle] = {}  # each with the thing whose changes it gives
        self._timer: Optional[asyncio.TimerHandle] = None
        self._fd = -1

    def _opened(self) -> None:
        self._fd = int(self._ask(lib.divvy_client_fd))
        self._loop.add_reader(self._fd, self._turn)
        self._turn()

    def _dispatch(self, function: Callable[..., object], *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._due.append(functools.partial(function, *arguments))
            self._loop.call_soon_threadsafe(self._call_next)

    def _call_next(self) -> None:
        if self._due:  # else a close has called it
            before, self._calling = self._calling, True
            try:
                self._due.popleft()()
            finally:
                self._calling = before

    def _call_rest(self) -> None:
        """Calls what is due before a close returns, as nothing may be called afterwards. A close inside a callback
        leaves it to the loop."""
        if self._calling or inside_call(self) or self._thread != threading.get_ident() or not self._forks_match():
            return
        while self._due:
            try:
                self._call_next()
            except Exception as error:
                self._loop.call_exception_handler({"message": "a callback of divvy's has failed", "exception": error})

    def _turn(self) -> None:
        if self.closed or self._paused:
            return
        result = self._drive(lib.divvy_client_process, 0)
        if result == lib.DIVVY_ESTATE:  # a thread whose task was canceled is on its way out
            self._pause()
            self._loop.call_later(BUSY_S, self._resume)
        else:
            self._check(result)
            self._after_call()

    def _after_call(self) -> None:
        if self._fd < 0 or self._paused or self.closed:
            return
        if self._timer:
            self._timer.cancel()
        left_ms = self._ask(lib.divvy_client_next_deadline)
        self._timer = self._loop.call_later(left_ms / 1000, self._turn) if left_ms >= 0 else None

    def _serve_by(self, call: Callable[[], T]) -> T:
        """Makes a call in a thread of the executor. The loop serves the session until there is one: they may all be
        busy for long."""
        paused = threading.Event()

        def pause() -> None:
            self._pause()
            paused.set()
        self._loop.call_soon_threadsafe(pause)
        while not paused.wait(LOOK_S):
            if self._loop.is_closed():
                raise RuntimeError("the event loop was closed before the call began")
        try:
            return call()
        finally:
            self._dispatch(self._resume)

    def _pause(self) -> None:
        self._paused += 1
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)

    def _stop_serving(self) -> None:
        """Takes the descriptor out of the loop, once: another thing has its number when the client is closed."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
        self._fd = -1
        if self._timer:
            self._timer.cancel()

    def _resume(self) -> None:
        self._paused -= 1
        if not self._paused and not self.closed and not self._loop.is_closed():
            self._loop.add_reader(self._fd, self._turn)
            self._turn()

    def close(self) -> None:
        """Ends the session, and blocks the loop while it does: see `aclose()`."""
        if self._forks_match() and not self._loop.is_closed():
            self._stop_serving()
            for answer in list(self._answers):
                answer._set(lib.DIVVY_ECLOSED, "the client was closed", None)
            self._end_streams(self)
        super().close()
        self._call_rest()

    async def aclose(self) -> None:
        """Ends the session: deletes what is left of its nodes."""
        if not self.closed and not self._ending:
            self._stop_serving()
            self._paused += 1
            thread = concurrent.futures.ThreadPoolExecutor(1)  # not the loop's, which may be full of calls that wait
            self._ending = self._loop.run_in_executor(thread, BaseClient.close, self)
            self._ending.add_done_callback(lambda _: self.close())
        if self._ending:
            await asyncio.shield(self._ending)
        self._call_rest()

    def _end_streams(self, of: Handle) -> None:
        for stream, owner in self._streams.items():
            if of in (owner, self):
                stream.put_nowait(None)

    async def wait_connected(self, timeout: Optional[float] = None) -> None:
        """Waits until a server serves the session."""
        await self._run(wait, lib.divvy_client_wait_connected, milliseconds(timeout))

    async def party_members(self, path: str, *, shallow: bool = False, timeout: Optional[float] = None) -> List[str]:
        """Returns the members of the party at a path, without joining it."""
        out = place_for("divvy_strings", lib.divvy_strings_free)
        await self._run(wait, lib.divvy_party_list, encode("path", path), kind_of(shallow), out, milliseconds(timeout))
        return strings(out[0])

    async def _ask_pool(self, request: Request, function: Any, *arguments: Any) -> PoolChange:
        await self._run(request.wait, function, *arguments)
        return request.change()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()


def wait(handle: Handle, function: Any, *arguments: Any) -> int:
    return handle._wait(function, *arguments)
