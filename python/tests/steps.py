"""A run that makes its steps when a test says so, on a partitioner that shows what the test wants.
SPDX-License-Identifier: Apache-2.0
"""
import threading

import divvy
from divvy import _jobs


class Script:
    """A partitioner that shows what a test wants."""

    static_membership = False
    rejoin = True
    released = None
    failure = None

    def __init__(self):
        self._client = self
        self.state = divvy.SessionState.CONNECTED
        self.shown = []
        self.awaited = []  # the items to prepare for
        self.ready = []  # those that were prepared for

    def look(self):
        return divvy.View(len(self.shown), *self.shown[-1])

    def to_prepare(self):
        return [divvy.Item(item, 0) for item in self.awaited]

    def prepared(self, item):
        self.ready.append(item)

    def release_set(self, state_id):
        self.released = state_id

    def _begin_leave(self):
        raise divvy.TimedOut("it goes on")


class Entries(list):
    """A snapshot."""

    generation = 1


class Steps(_jobs.BaseRun):
    """A run whose jobs do nothing."""

    def __init__(self, partitioner, prepare=None, restart="always"):
        super().__init__(partitioner, _jobs.Options(print, prepare, restart, False, 0.1, 30, True, None, 5))
        self.no_thread = False
        self.closed = []

    def _begin(self, place, item, prepared):
        if self.no_thread:
            raise RuntimeError("can't start new thread")
        place.job = _jobs.BaseJob(self._p, item.item, item.token, threading.Event(), prepared)

    def _begin_preparing(self, place):
        if self.no_thread:
            raise RuntimeError("can't start new thread")

    def _begin_closing(self, place, prepared):
        self.closed.append(prepared)
        self.take_closed(place, None)

    def _tell_stop(self, job, lost):
        job.stop.set()
        job.lost = lost
