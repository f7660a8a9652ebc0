"""Steps of clients and a server's transaction log, made one trace for a replay. SPDX-License-Identifier: Apache-2.0

A client's lines (log_steps) have its own time and order, and a log of transactions has the order of the commits. A
trace needs one order of both. Lines of all clients go by their time. A commit comes as late as it can: right before
the first line that shows it, which is an answer that knows of it, or a list that has the queue as it was then. So no
step is refused for the time that a message took. Before a commit comes the line by which its owner has asked for it.

A belief ends at the time until which the session was believed in, though its line may come later: the process may have
stood still. A process that was killed may leave some last lines unwritten; what the log shows of them is added.
"""


class Member:
    """The lines of one process, its kind of lock (plain, read or write), and when it was killed; None: it was not."""

    def __init__(self, lines, mode, killed_ms=None):
        self.mode, self.killed_ms = mode, killed_ms
        self.records = [record for record in map(parse, lines) if record]


class Record:
    def __init__(self, ms, session, kind, path, values):
        self.ms, self.session, self.kind, self.path, self.values = ms, session, kind, path, values
        self.name = path.rpartition("/")[2]


class Commit:
    """What the leader has committed: create, delete or session-end."""

    def __init__(self, kind, name, owner, session, by=None, zxid=0):
        self.kind, self.name, self.owner, self.session, self.by, self.zxid = kind, name, owner, session, by, zxid


def parse(line):
    ms, session, kind, *rest = line.split()
    path = rest.pop(0) if rest and "=" not in rest[0] else ""
    return Record(int(ms), session, kind, path, dict(word.split("=", 1) for word in rest))


def is_contender(name):
    return "__lock__" in name or "__rlock__" in name


def commits_of(txns, directory):
    """Returns what was committed of the lock's places and of their sessions."""
    commits, standing, dead = [], {}, set()
    for txn in txns:
        for op in txn.ops:
            folder, _, name = (op.path or "").rpartition("/")
            ours = folder == directory and is_contender(name)
            session = "%x" % txn.session
            if op.kind == "create" and ours:
                standing[name] = session
                commits.append(Commit("create", name, session, session, zxid=txn.zxid))
            elif op.kind == "delete" and ours:
                owner = standing.pop(name)
                commits.append(Commit("delete", name, owner, session, "owner" if owner == session else "other"))
            elif op.kind == "close" and session not in dead:
                dead.add(session)
                for name in [name for name, owner in standing.items() if owner == session]:
                    del standing[name]
                    commits.append(Commit("delete", name, session, session, "end"))
                commits.append(Commit("session-end", "", session, session))
    return commits


class Merge:
    def __init__(self, members, commits):
        self.commits, self.placed, self.lines = commits, 0, []
        self.made = {c.zxid: c.name for c in commits if c.kind == "create"}
        self.created = {c.name: i + 1 for i, c in enumerate(commits) if c.kind == "create"}
        self.deleted = {c.name: i + 1 for i, c in enumerate(commits) if c.kind == "delete"}
        self.states = [frozenset()]  # who stands after so many commits
        for commit in commits:
            before = self.states[-1]
            after = {"create": before | {commit.name}, "delete": before - {commit.name}}
            self.states.append(after.get(commit.kind, before))
        self.seen, self.asked, self.barriers = {}, {}, {}
        self.queues = [self.queue_of(member) for member in members]
        self.modes = [member.mode for member in members]

    # ---- one process ----

    def queue_of(self, member):
        """Returns the process's records of the lock, those of its beliefs where they were."""
        queue, until, held = [], {}, {}
        for record in member.records:
            if record.kind == "believes":
                until[record.session] = int(record.values["until"])
            elif record.kind in ("holds", "ends"):
                record.name = self.made[int(record.values["token"])]
                if record.kind == "holds":
                    held[record.name] = record.session
                    queue.append(record)
                else:
                    held.pop(record.name)
                    self.end_belief(queue, record, min(record.ms, until[record.session]))
            elif record.kind.removeprefix("ask-") in ("children", "barrier") or \
                    (is_contender(record.name) and record.kind.removeprefix("ask-") in ("create", "delete", "get")):
                queue.append(record)
        if member.killed_ms is not None:
            self.add_unwritten(queue, member, held, until)
        return queue

    @staticmethod
    def end_belief(queue, record, ms):
        record.ms = ms
        at = len(queue)
        while at and queue[at - 1].ms > ms:
            at -= 1
        queue.insert(at, record)

    def add_unwritten(self, queue, member, held, until):
        for name, session in held.items():
            self.end_belief(queue, Record(0, session, "ends", name, {}), min(member.killed_ms, until[session]))
        sessions = {record.session for record in queue}
        asked = {record.name for record in queue if record.kind == "ask-delete"}
        for commit in self.commits:
            if commit.kind == "delete" and commit.by == "owner" and commit.owner in sessions and \
                    commit.name not in asked and self.was_asked(queue, commit.name):
                queue.append(Record(member.killed_ms, commit.owner, "ask-delete", commit.name, {}))

    @staticmethod
    def was_asked(queue, name):
        return any(record.kind == "ask-create" and name.startswith(record.name) for record in queue)

    # ---- all ----

    def emit(self, ms, who, thing, kind, **values):
        self.lines.append(" ".join([str(ms), who, thing, kind, *("%s=%s" % pair for pair in values.items())]))

    def place(self, count, ms):
        while self.placed < count:
            commit = self.commits[self.placed]
            self.ask_first(commit)
            if self.placed < count and self.commits[self.placed] is commit:  # no line before it has brought it
                self.placed += 1
                self.emit_commit(commit, ms)

    def ask_first(self, commit):
        """Emits the lines of the commit's owner up to the one by which it has asked for it."""
        for number, queue in enumerate(self.queues):
            for at, record in enumerate(queue):
                creates = commit.kind == "create" and record.kind == "ask-create" and \
                    commit.name.startswith(record.name)
                deletes = commit.by == "owner" and record.kind == "ask-delete" and commit.name == record.name
                if record.session == commit.session and (creates or deletes):
                    for _ in range(at + 1):
                        self.step(number)
                    return

    def emit_commit(self, commit, ms):
        if commit.kind == "session-end":
            self.emit(ms, commit.owner, "*", "session-end")
        elif commit.kind == "create":
            self.emit(ms, commit.owner, "l0", "commit-create", name=commit.name)
        else:
            self.emit(ms, commit.owner, "l0", "commit-delete", name=commit.name, by=commit.by)

    def shows(self, record):
        """Returns how many commits the line shows at least."""
        kind, answer, session = record.kind, record.values.get("answer"), record.session
        if kind == "create" and answer == "done":
            return self.created.get(record.values["made"].rpartition("/")[2], 0)
        if kind == "get" and answer == "done":
            return self.created.get(record.name, 0)
        if (kind == "get" and answer == "none") or (kind == "delete" and answer in ("done", "none")):
            return self.deleted.get(record.name, 0)
        if kind == "children" and answer == "done":
            names = frozenset(filter(None, record.values["names"].split(",")))
            at = self.seen.get(session, 0)
            return next((v for v in range(at, len(self.states)) if self.states[v] == names), 0)
        if kind == "barrier" and answer == "done":
            asked = self.barriers[session].pop(0)
            return max([self.created[name] for name in self.created if name.rstrip("0123456789") in asked] or [0])
        return 0

    def step(self, number):
        record = self.queues[number].pop(0)
        kind, session, values = record.kind, record.session, record.values
        if kind == "ask-create":
            self.asked.setdefault(session, set()).add(record.name)
        if kind == "ask-barrier":
            self.barriers.setdefault(session, []).append(set(self.asked.get(session, ())))
        if kind == "barrier" and values["answer"] != "done":
            self.barriers[session].pop(0)
        shown = self.shows(record)
        self.place(shown, record.ms)
        self.seen[session] = max(self.seen.get(session, 0), shown)
        if "barrier" in kind:
            self.emit(record.ms, session, "*", kind, **values)
            return
        kind = {"get": "watch", "ask-get": "ask-watch", "children": "list", "ask-children": "ask-list"}.get(kind, kind)
        told = {key: values[key] for key in ("answer", "names") if key in values}
        if "list" not in kind:
            told["name"] = record.name
        if "made" in values:
            told["made"] = values["made"].rpartition("/")[2]
        if kind == "ask-create":
            told["mode"] = self.modes[number]
        self.emit(record.ms, session, "l0", kind, **told)

    def run(self, seed):
        self.lines = ["0 0 * history seed=%d" % seed]
        while any(self.queues):
            waiting = [number for number, queue in enumerate(self.queues) if queue]
            self.step(min(waiting, key=lambda number: self.queues[number][0].ms))
        self.place(len(self.commits), 0)
        self.emit(0, "0", "*", "over")
        return self.lines


def merge(members, txns, directory, seed):
    """Returns the lines of the trace."""
    return Merge(members, commits_of(txns, directory)).run(seed)
