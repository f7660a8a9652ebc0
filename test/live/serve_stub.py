"""A stand-in of divvy serve for the tests of its page: what it tells is what a test wants, at once and always the same.

The page's files are those of the source, with the policy of divvy serve. SPDX-License-Identifier: Apache-2.0"""
import http.server
import json
import pathlib
import queue
import re
import sys
import threading
import time
import urllib.parse

FILES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "divvy" / "serve"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PATH = "/work_queues"


def read_policy():
    """The policy as divvy serve sends it."""
    source = (FILES.parent / "serve_http.c").read_text()
    lines = re.search(r'"Content-Security-Policy",((?:\s*"[^"]*")+)', source).group(1)
    return "".join(re.findall(r'"([^"]*)"', lines))


POLICY = read_policy()


def iso(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms / 1000)) + ".%03dZ" % (ms % 1000)


def finding(level, what, do="", why="", where=PATH, check="items"):
    return {"level": level, "check": check, "where": where, "what": what, "why": why, "do": do}


class Hour:
    """What a pool is like: a quiet one, which a test makes as bad as it wants."""

    def __init__(self, members=3, items=12):
        self.now = int(time.time() * 1000)
        self.started = self.now - 2 * 3600 * 1000
        self.members = ["worker-%d" % number for number in range(1, members + 1)]
        self.owners = {"queue-%02d" % number: self.members[number % members] for number in range(items)}
        self.states, self.next, self.words, self.loads, self.rules = {}, {}, {}, {}, {}
        self.findings, self.holdups, self.changes, self.events, self.explained = [], [], [], [], {}
        self.samples = [[self.started, items, 0, 0, members]]
        self.generation, self.refused, self.paths, self.other_pools = 3, {}, [PATH], []
        self.held = None  # an event that the answer for the state waits for

    def change(self, ms, reason, joined=(), left=(), died=(), moved=4, took=1200, **more):
        named = [{"name": name, "seen_ms": 120, "session": "0x1"} for name in died]
        self.changes.append({"generation": len(self.changes) + 1, "reason": reason, "at": iso(ms),
                             "age_ms": self.now - ms, "under_way": took is None, "took_ms": took, "moved": moved,
                             "joined": {"count": len(joined), "names": list(joined)},
                             "left": {"count": len(left), "names": list(left), "died": named}, **more})

    def event(self, ms, item, before, after):
        told = {"number": len(self.events) + 1, "ms": ms, "kind": "item", "what": item, "from": before, "to": after}
        self.events.append({key: value for key, value in told.items() if value is not None})

    def figures(self):
        unowned = sum(state in ("unowned", "kept") for state in self.states.values())
        moving = sum(state == "moving" for state in self.states.values())
        return {"members": len(self.members), "away": 0, "strays": 0, "items": len(self.owners),
                "owned": len(self.owners) - unowned, "unowned": unowned, "moving": moving, "strangers": 0,
                "waiting": 0, "least": 4, "most": 4, "found": True, "generation": self.generation, "reason": "join",
                "in_force": True, "planned_ms": self.started, "unusable": None,
                "state": "unowned" if unowned else "moving" if moving else "well"}

    # ---- what it answers ----

    def state(self, _):
        if not self.paths:
            return {**self.rest(), "pools": []}
        pools = [{"path": PATH, "read": True, "trouble": None, **self.figures()}]
        pools += [{**pools[0], "path": row["path"], "state": row["state"]} for row in self.other_pools]
        return {**self.rest(), "pools": pools}

    def rest(self):
        return {"sequence": 0, "now_ms": int(time.time() * 1000), "root": "/divvy", "started_ms": self.started,
                "locks": 0, "services": 0, "unhealthy": 0, "malformed": 0, "trouble": None, "more_pools": 0}

    def pool_rows(self):
        f = self.figures()
        own = {"pool": 0, "path": PATH, "members": f["members"], "items": f["items"], "unowned": f["unowned"],
               "moving": f["moving"], "changed_ms": self.started, "found": True, "read": True, "state": f["state"]}
        rows = [own] + [{**own, "unowned": 0, "moving": 0, "pool": number, **row}
                        for number, row in enumerate(self.other_pools, 1)]
        order = ["unowned", "absent", "moving", "well"]
        return sorted(rows, key=lambda row: order.index(row["state"]) if row["state"] in order else 9)

    def item_rows(self, q):
        rows = [{"item": item, "owner": owner, "state": self.states.get(item, "owned"), "token": "1", "waiting": 0,
                 "since_ms": self.started, **({"next": self.next[item]} if item in self.next else {}),
                 **self.rules.get(item, {})}
                for item, owner in self.owners.items()]
        if "at" in q:
            for row in rows:
                row.update(owner="of-then", state="owned")
        if "owner" in q:
            rows = [row for row in rows if row["owner"] == q["owner"]]
        text = q.get("text", "")
        return [row for row in rows if text in row["item"] or text in (row["owner"] or "")]

    def member_rows(self):
        return [{"node": name, "member": name, "kind": "divvy", "live": True, "host": "h", "pid": 1, "since": None,
                 "state": self.words.get(name, ""), "items": 4, "planned": 4, "weight": 1000, "zone": None,
                 **({"share": self.loads[name]} if name in self.loads else {})} for name in self.members]

    def event_rows(self, q):
        low, high = int(q.get("from", 0)), int(q.get("to", 2 ** 60))
        return [event for event in reversed(self.events) if low <= event["ms"] <= high and
                event["what"] == q.get("exact", event["what"])]

    def rows(self, q):
        tables = {"items": lambda: self.item_rows(q), "members": self.member_rows, "pools": self.pool_rows,
                  "timeline": lambda: self.event_rows(q), "holdups": lambda: self.holdups}
        rows = tables.get(q["table"], list)()
        if "exact" in q and q["table"] == "items":
            rows = [row for row in rows if row["item"] == q["exact"]]
        if q.get("state"):
            rows = [row for row in rows if row["state"] == q["state"]]
        offset = int(q.get("offset", 0))
        extra = {"oldest_ms": self.started} if "at" in q else {}
        return {"rows": rows[offset:offset + int(q.get("limit", 100))], "total": len(rows), "matched": len(rows),
                "sequence": 0, **extra}

    def found(self, _):
        count = {level: sum(one["level"] == level for one in self.findings) for level in ("error", "warning", "note")}
        return {"pool": 0, "read_at_ms": int(time.time() * 1000), "errors": count["error"],
                "warnings": count["warning"], "notes": count["note"], "findings": self.findings}

    def heat(self, _):
        counts = {name: 0 for name in self.members}
        for owner in self.owners.values():
            if owner in counts:
                counts[owner] += 1
        fair = len(self.owners) / len(self.members)
        return {"fair": fair, "members": [
            [name, counts[name], int(fair), self.words.get(name, ""), 1000, "",
             *([self.loads[name]] if self.loads else [])] for name in self.members]}

    def sampled(self, q):
        low, high = int(q["from"]), int(q["to"])
        before = [sample for sample in self.samples if sample[0] < low][-1:]
        return {"samples": before + [sample for sample in self.samples if low <= sample[0] <= high]}

    def answer(self, path, q):
        """The status and the object or text of an answer."""
        if path in self.refused:
            return self.refused[path]
        if path == "/explain":
            told = self.explained.get(q["item"])
            return (200, told) if told else (404, "there is no such item\n")
        answers = {"/state": self.state, "/rows": self.rows, "/findings": self.found, "/heat": self.heat,
                   "/samples": self.sampled, "/changes": lambda _: {"path": PATH, "readable": True, "missing": [],
                                                                     "changes": self.changes}}
        return (200, answers[path](q)) if path in answers else (404, "there is no such page\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # The browser has gone.
            super().handle_error(request, client_address)


class Stub:
    """Serves the page, and the hour. `asked` are the requests but those for files."""

    def __init__(self, hour):
        self.hour, self.asked, self.streams = hour, [], []
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                stub.serve(self)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, request):
        url = urllib.parse.urlsplit(request.path)
        path = FILES / ("index.html" if url.path == "/" else url.path[1:])
        if path.suffix in TYPES and path.is_file():
            self.send(request, 200, TYPES[path.suffix] + "; charset=utf-8", path.read_bytes())
            return
        self.asked.append(request.path)
        if url.path == "/events" and "/events" not in self.hour.refused:
            self.stream(request)
            return
        status, told = self.hour.answer(url.path, dict(urllib.parse.parse_qsl(url.query)))
        if url.path == "/state" and self.hour.held:
            self.hour.held.wait()
        if isinstance(told, str):
            self.send(request, status, "text/plain; charset=utf-8", told.encode())
        else:
            self.send(request, status, "application/json", json.dumps(told).encode())

    def send(self, request, status, kind, body):
        request.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"),
                            ("Content-Security-Policy", POLICY)):
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    def stream(self, request):
        told = queue.SimpleQueue()
        self.streams.append(told)
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.end_headers()
        try:
            request.wfile.write(b"retry: 2000\n\n")
            while (change := told.get()) is not None:
                request.wfile.write(b"id: 1\ndata: %s\n\n" % json.dumps(change).encode())
        except OSError:
            pass
        request.close_connection = True

    def tell(self, **change):
        """Tells all pages of a change."""
        for stream in self.streams:
            stream.put(change)

    def all_told(self):
        """Whether all changes have been sent."""
        return all(stream.empty() for stream in self.streams)

    def hang_up(self):
        """Ends the streams of all pages."""
        for stream in self.streams:
            stream.put(None)
        self.streams.clear()

    def end(self):
        self.hang_up()
        self.server.shutdown()
        self.server.server_close()
