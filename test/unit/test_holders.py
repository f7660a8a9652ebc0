#!/usr/bin/env python3
"""The arithmetic of test/holders/run. SPDX-License-Identifier: Apache-2.0

usage: test_holders.py [BUILD_FOLDER]

Claims: seconds in which both hold, and in which nobody does, are those of lines whose answer is known by hand; a yes of
a process that is stopped or has ended counts for one period; what lies outside of the window counts nothing; a process
that is late is found, but where it was stopped. Each peer has what is expected of it in each fault that it can be in.
The tables show the least and most of the rounds, those that are not as expected in bold, and take the place of their
elders in a document; the plot has each part. A disk delays flushes, and only those of its own processes; a wall clock
jumps, and no other clock does. A proxy passes what it is sent; it answers `conf` itself only where it hides that.
"""
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time
import sys

sys.dont_write_bytecode = True  # the checkout stays as it is
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "holders"))
import disk  # noqa: E402
import expected  # noqa: E402
import proxy  # noqa: E402
import report  # noqa: E402
import score  # noqa: E402


def lines(begin_ms, end_ms, word):
    return "".join("%.3f %s 7\n" % (ms / 1000, word) for ms in range(begin_ms, end_ms, 10))


def check(name, found, wanted):
    if found != wanted and not (isinstance(wanted, (int, float)) and abs(found - wanted) < 1e-9):
        sys.exit("%s: %r, and not %r" % (name, found, wanted))


def check_lateness():
    said = score.parse(lines(0, 1000, "yes") + lines(4000, 4500, "yes"))
    check("late", score.late_s(said, 0, 5), 3.01)
    check("late, a part of the window", score.late_s(said, 3, 5), 1)
    check("late, outside of the window", score.late_s(said, 4.1, 5), 0)
    check("late, where it was stopped", score.late_s(said, 0, 5, (1.2, 3.9)), 0)
    check("late, stopped at another time", score.late_s(said, 0, 5, (4.2, 5)), 3.01)


def check_parts():
    one, other = [(1.0, 3.0), (3.0, 4.0)], [(3.5, 6.0)]
    check("who holds", score.parts(one, other, 0.5, 5.5), [(0, 0.5, 0), (0.5, 3, 1), (3, 3.5, 2), (3.5, 5, 1)])
    check("nobody ever", score.parts([], [], 10, 12), [(0, 2, 0)])


def check_expected():
    for fault, of_fault in expected.EXPECTED.items():
        for peer, (_, assumption) in expected.PEERS.items():
            if expected.takes_part(peer, fault):
                check("expected of %s, %s" % (peer, fault), assumption in of_fault, True)


def check_proxy():
    loop = proxy.Loop()
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(10)
    for hides, first, reply in ((False, b"conf", b"tickTime"), (True, b"conf", proxy.NOT_ALLOWED),
                                (True, b"head and more", b"reply")):
        host, port = proxy.Proxy(loop, [server.getsockname()], hides).hosts.split(":")
        with socket.create_connection((host, int(port)), 10) as client:
            client.sendall(first)
            if (hides, first) != (True, b"conf"):
                with server.accept()[0] as behind:
                    check("what a server gets", behind.recv(len(first), socket.MSG_WAITALL), first)
                    behind.sendall(reply)
            check("what a client gets", client.makefile("rb").read(), reply)


def result(fault, peer, both_s, **more):
    parts = [(0, 4, 1), (4, 5, 2), (5, 6, 0), (6, 14, 1)]
    return dict(fault=fault, peer=peer, both_s=both_s, nobody_s=1.0, expected_both_s=[0, 1], expected_nobody_s=[1, 1],
                parts=parts, **more)


def check_report(folder):
    results = [result("cut", "divvy", 0.5), result("cut", "divvy", 1.0), result("slow", "etcd", 1.5),
               result("forced", "divvy", 0.0, taken=[3, 4], refused=[5, 0])]
    told = report.tables(results)
    for line in ("| divvy, divvy_lock_held() | 0.50 to 1.00 (0 to 1) |", "| etcdctl lock NAME | **1.50** (0 to 1) |",
                 "| etcdctl lock NAME | 1.00 (1) |", "| forced, 1 | 0.00 (0 to 1) | 1.00 (1) | 3 and 4 | 5 and 0 |"):
        check(line, told.count(line), 1)
    old = ["text", "| assumption broken, round | old |", "| --- | --- |", "| 1 | old |", "", "| another | old |", "end"]
    check("a document", report.replace_tables(old, [told[-3], told[-1]]), ["text", told[-3], told[-1], *old[4:]])
    drawn = list(report.stripes(results, ["cut", "slow"], ["divvy", "etcd"]))
    check("each part of each round", len(drawn), 12)
    check("the first round's second part", drawn[1], (2, 4, -0.4, 4, 5, -0.4, 0.0))
    found, svg = folder / "found", folder / "svg"
    found.write_text("".join(json.dumps(one) + "\n" for one in results))
    if subprocess.run(["sh", "-c", "command -v gnuplot"], stdout=subprocess.DEVNULL).returncode == 0:
        subprocess.run([ROOT / "holders" / "report.py", "--plot", svg, found], check=True, stdout=subprocess.DEVNULL)
        check("a colour for both", "rgb(232,96,76)" in svg.read_text().replace(" ", ""), True)


FLUSH = """
import os, sys, time
file = open(sys.argv[1], "w")
for flush in (os.fsync, os.fdatasync):
    began = time.monotonic()
    flush(file.fileno())
    print(time.monotonic() - began)
"""


def check_disk(folder):
    slow = disk.Disk(str(folder / "disk"))
    words = slow.wrap([sys.executable, "-c", FLUSH, str(folder / "file")])
    for slow_s in (0.0, 0.3):
        slow.slow_s = slow_s
        output = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
        check("flushes take at least %g s: %s" % (slow_s, output), min(map(float, output.split())) >= slow_s, True)
    check("flushes", (slow.flushes, slow.slowed), (4, 2))


CLOCKS = "import time; print(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), time.monotonic())"


def check_wall_clock(folder):
    library, offset = folder / "wall_clock.so", folder / "offset"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, ROOT / "preload" / "wall_clock.c"], check=True)
    offset.write_bytes((-3600).to_bytes(8, sys.byteorder, signed=True))
    environment = dict(os.environ, LD_PRELOAD=str(library), DIVVY_TEST_WALL_CLOCK=str(offset))
    before = [time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), time.monotonic()]
    output = subprocess.run([sys.executable, "-c", CLOCKS], check=True, stdout=subprocess.PIPE, text=True,
                            env=environment).stdout
    after = map(float, output.split())
    for name, was, found, jump_s in zip(("wall", "boot", "monotonic"), before, after, (3600, 0, 0)):
        check("the %s clock" % name, 0 <= found + jump_s - was < 600, True)


def main():
    first = score.parse(lines(0, 3000, "yes") + lines(3000, 5000, "no"))
    second = score.parse(lines(0, 2000, "no") + lines(2000, 5000, "yes"))
    late = score.parse(lines(0, 3500, "no") + lines(3500, 5000, "yes"))
    one, other, third = score.spans(first), score.spans(second), score.spans(late)
    check("both", score.both_s(one, other, 0, 5), 1)
    check("both, a part of the window", score.both_s(one, other, 2.5, 5), 0.5)
    check("both, outside of the window", score.both_s(one, other, 3, 5), 0)
    check("nobody between two that overlap", score.nobody_s(one, other, 0, 5), 0)
    check("nobody between two with a gap", score.nobody_s(one, third, 0, 5), 0.5)
    check("both of two with a gap", score.both_s(one, third, 0, 5), 0)

    stopped = score.spans(score.parse(lines(0, 1000, "yes") + lines(4000, 4500, "yes")))
    check("a stopped process claims nothing", score.held_s(stopped, 0, 5), 1.5)
    check("its spans", len(stopped), 2)
    check("both, as it goes on", score.both_s(stopped, other, 0, 5), 0.5)
    check("a line that is not whole", len(score.parse("1.000 yes 7\n1.010 ye")), 1)
    check_lateness()
    check_parts()
    check_expected()
    check_proxy()
    with tempfile.TemporaryDirectory() as folder:
        check_report(pathlib.Path(folder))
        check_disk(pathlib.Path(folder))
        check_wall_clock(pathlib.Path(folder))
    print("the arithmetic of test/holders is right")


if __name__ == "__main__":
    main()
