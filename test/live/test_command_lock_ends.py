#!/usr/bin/python3
"""How a command under `divvy lock` ends, and what signals do to it. SPDX-License-Identifier: Apache-2.0

Shows ends by signals, terminals and real losses, in time.

usage: test_command_lock_ends.py BUILD_FOLDER [TEST...]     a TEST is a name such as Losses.test_frozen

docs/consul-locker.md names the tests that show each sentence of consul-locker's README.
"""
import errno
import os
import pty
import re
import select
import signal
import subprocess
import time

from kazoo.client import KazooClient

from command_harness import Server, Setting, alive, fire, main, state, wait_for
from lock_harness import Case, LOST, NOT_HELD, OVERRUN, Running, T, TROUBLE, USAGE, environment, lock

LONG_T = 2 * T  # so that a command is ended in time on a busy machine, too


class Losses(Case):
    def own_server(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        return server

    # The server freezes: the command gets SIGTERM, then SIGKILL, and is gone before the session can have ended; 5.
    def test_frozen(self):
        server = self.own_server()
        text = ('trap "date +%s.%N >>$1/term" TERM; echo $$ >"$1/pid"; sleep 60 & echo $! >>"$1/pid"\n'
                'while :; do date +%s.%N >"$1/now" && mv "$1/now" "$1/last"; sleep 0.02; done')
        running = self.script("--session-timeout", "%ds" % LONG_T, "--connect", server.connect, text=text)
        pids = self.pids("pid", 2)
        server.do("pause", "1")
        frozen = time.time()
        self.assertEqual(running.end(), LOST, running)
        last = float(self.read("last")[0])
        # The session's last sign of life came before the server froze.
        self.assertLess(last, frozen + LONG_T)
        self.assertEqual(len(self.read("term")), 1)  # It had time to act on SIGTERM, and then it was killed.
        self.assertFalse(any(map(alive, pids)))
        self.assertRegex(running.errors, r'(?m)^divvy: the lock "test_frozen" could not be kept')
        server.do("resume", "1")
        zookeeper = KazooClient(server.plain)
        zookeeper.start()
        self.addCleanup(zookeeper.close)
        self.addCleanup(zookeeper.stop)
        wait_for(lambda: zookeeper.get_children("/divvy/locks/" + self.name) == [], "no node is left")

    # A server that comes back soon enough changes nothing.
    def test_outage(self):
        server = self.own_server()
        running = self.script("--session-timeout", "2m", "--connect", server.connect,
                              text='echo held; while [ ! -e "$1/go" ]; do sleep 0.02; done; exit 7').says("held")
        server.do("kill", "1")
        wait_for(lambda: "the lock ends in" in running.errors, "it tells of the outage", running)
        server.do("restart", "1")
        wait_for(lambda: "is back" in running.errors, "it tells of the return", running)
        self.write("go", "")
        self.assertEqual(running.end(), 7, running)

    # Somebody deletes our node: the command is ended at once, with 5.
    def test_deleted(self):
        text = 'trap "" TERM; echo $$ >"$1/pid"; while :; do sleep 0.1; done'
        running = self.script("--session-timeout", "30s", text=text)
        pids = self.pids("pid")
        Setting.zookeeper.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
        self.assertEqual(running.end(), LOST, running)
        # A heartbeat has found it: of a deadline that has passed it would say that the lock could not be kept.
        self.assertRegex(running.errors, r'(?m)^divvy: the lock "test_deleted" is lost')
        self.assertFalse(any(map(alive, pids)))

    # A command that is to end because its lock was lost early gets SIGTERM, and a moment to act on it.
    def test_deleted_moment(self):
        text = 'trap "echo TERM; exit 3" TERM; echo ready; while :; do sleep 0.01; done'
        # The moment is short, and a busy machine may let it pass: but not each time.
        for _ in range(20):
            running = self.script("--session-timeout", "10s", text=text).says("ready")
            Setting.zookeeper.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
            self.assertEqual(running.end(), LOST, running)
            if running.output == "ready\nTERM\n":
                return
        self.fail("it never came to act on SIGTERM")

    # divvy itself is stopped: its guardian ends the command in time nevertheless, and exit code 5 follows.
    def test_stopped(self):
        text = 'echo $$ >"$1/pid"; while :; do date +%s.%N >"$1/now" && mv "$1/now" "$1/last"; sleep 0.02; done'
        running = self.script("--session-timeout", "%ds" % LONG_T, text=text)
        pids = self.pids("pid")
        stopped = time.time()
        running.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: not any(map(alive, pids)), "the command is ended", running)
        self.assertLess(float(self.read("last")[0]), stopped + LONG_T)
        running.process.send_signal(signal.SIGCONT)
        self.assertEqual(running.end(), LOST, running)
        wait_for(lambda: self.contenders() == [], "no node is left", running)

    # The guardian is stopped too: once it goes on it ends the command at once, and not by asking first.
    def test_both_stopped(self):
        running = self.script("--session-timeout", "9s", "--grace", "3s",
                              text='trap "echo TERM >>$1/log" TERM; echo $PPID >"$1/guardian"; echo $$ >"$1/pid"; '
                                   'while :; do sleep 0.05; done')
        pids, guardian = self.pids("pid"), self.pids("guardian")[0]
        running.process.send_signal(signal.SIGSTOP)
        os.kill(guardian, signal.SIGSTOP)
        wait_for(lambda: self.contenders() == [], "the servers have ended the session")
        self.assertTrue(alive(pids[0]))
        os.kill(guardian, signal.SIGCONT)
        resumed = time.monotonic()
        wait_for(lambda: not alive(pids[0]), "the command is ended", running)
        self.assertLess(time.monotonic() - resumed, 3)  # the grace, which it does not get
        running.process.send_signal(signal.SIGCONT)
        self.assertEqual(running.end(), LOST, running)

    def start_stubborn(self, *options):
        """Starts a command whose processes ignore SIGTERM, or are daemons. Returns it, and their pids."""
        text = ('trap "" TERM; echo $$ >>"$1/pid"; sleep 60 & echo $! >>"$1/pid"\n'
                'setsid sh -c \'echo $$ >>"$0/pid"; exec sleep 60\' "$1" &\n'
                '(setsid sh -c \'trap "" TERM; echo $$ >>"$0/pid"; while :; do sleep 0.1; done\' "$1" &)\n'
                'while :; do sleep 0.1; done')
        running = self.script(*options, text=text)
        pids = self.pids("pid", 4)
        self.assertTrue(all(map(alive, pids)))
        return running, pids

    # divvy is killed by -9: all that the command has started is gone before the lock is another's, daemons and what
    # ignores SIGTERM too; and then the lock is free, though the session has an hour.
    def test_killed(self):
        running, pids = self.start_stubborn("--session-timeout", "1h")
        running.process.kill()
        look = "for pid; do if kill -0 $pid 2>>/dev/null; then exit 1; fi; done"
        self.assertEqual(lock(self.name, "sh", "-c", look, "sh", *map(str, pids)).returncode, 0)
        self.assertEqual(self.contenders(), [])

    # The same without a death watch: they are gone as soon, and the lock is free when the session has timed out.
    def test_killed_without_watch(self):
        running, pids = self.start_stubborn("--no-death-watch", "--session-timeout", "%ds" % (3 * T))
        running.process.kill()
        wait_for(lambda: not any(map(alive, pids)), "they are gone")
        self.assertEqual(len(self.contenders()), 1)
        self.assertEqual(lock(self.name, "true").returncode, 0)
        self.assertEqual(self.contenders(), [])

    # With --failover-delay the next owner waits for that, from when the command has ended.
    def test_failover_delay(self):
        running = self.script("--session-timeout", "1h", "--failover-delay", "1s", text='echo $$ >"$1/pid"; sleep 60')
        pid = self.pids("pid")[0]
        killed = time.monotonic()
        running.process.kill()
        wait_for(lambda: not alive(pid), "it is gone")
        self.assertEqual(lock(self.name, "true").returncode, 0)
        self.assertGreaterEqual(time.monotonic() - killed, 1)
        refused = lock("--session-timeout", "3s", "--failover-delay", "3s", self.name, "true")
        self.assertEqual(refused.returncode, USAGE)
        self.assertIn("failover_delay_ms is 3000; it may be 0 to less than the session timeout, 3000", refused.stderr)

    # What has --hold does not know when its caller's work ends: the session takes its time.
    def test_killed_holding(self):
        running = Running(Setting.divvy, "lock", "--hold", "--session-timeout", "%ds" % LONG_T, self.name,
                          stdin=subprocess.PIPE)
        wait_for(lambda: running.output.startswith("held"), "it holds", running)
        running.process.kill()
        running.end()  # Nobody has its output any longer.
        running.process.stdin.close()
        self.assertEqual(len(self.contenders()), 1)
        wait_for(lambda: self.contenders() == [], "the servers have ended the session")

    # divvy is killed with its guardian, so nobody can say that the command has ended: the session takes its time.
    def test_killed_with_guardian(self):
        running = self.script("--session-timeout", "%ds" % LONG_T,
                              text='echo $PPID >"$1/guardian"; echo $$ >"$1/pid"; exec sleep 60')
        pid, guardian = self.pids("pid")[0], self.pids("guardian")[0]
        os.kill(guardian, signal.SIGSTOP)
        running.process.kill()
        os.kill(guardian, signal.SIGKILL)
        wait_for(lambda: not alive(pid), "the kernel has killed it")
        self.assertEqual(len(self.contenders()), 1)
        wait_for(lambda: self.contenders() == [], "the servers have ended the session")

    # The guardian is killed by -9: so is the command with what it has started, the lock is given back, and 125.
    def test_guardian_killed(self):
        text = ('trap "" TERM; echo $PPID >>"$1/guardian"; echo $$ >>"$1/pid"; sleep 60 & echo $! >>"$1/pid"\n'
                '(setsid sh -c \'echo $$ >>"$0/pid"; exec sleep 60\' "$1" &)\nwait')
        running = self.script(text=text)
        pids = self.pids("pid", 3)
        os.kill(self.pids("guardian")[0], signal.SIGKILL)
        self.assertEqual(running.end(), TROUBLE, running)
        self.assertFalse(any(map(alive, pids)))
        self.assertEqual(self.contenders(), [])

    # A command that runs for longer than --max-run is ended, with 124; by SIGKILL if SIGTERM does not do.
    def test_max_run(self):
        for trap, grace in (("", "3s"), ('trap "" TERM;', "200ms")):
            begun = time.monotonic()
            running = self.script("--max-run", "300ms", "--grace", grace, text=trap + "while :; do sleep 0.05; done")
            self.assertEqual(running.end(), OVERRUN, running)
            self.assertGreaterEqual(time.monotonic() - begun, 0.3)
            self.assertRegex(running.errors, r"\Adivvy: the command has run for 300 ms, and was ended\n\Z")
            self.assertEqual(self.contenders(), [])
        self.assertEqual(lock("--max-run", "1m", self.name, "sh", "-c", "exit 3").returncode, 3)

    # The lock is kept for --at-least, also when the command has ended; a signal gives it back, and so does time.
    def test_at_least(self):
        running = self.script("--at-least", "1h", text="echo done; exit 3").says("done")
        self.assertEqual(lock("--no-wait", self.name, "true").returncode, NOT_HELD)
        self.assertIsNone(running.process.poll())
        running.process.terminate()
        self.assertEqual((running.end(), running.errors), (3, ""), running)
        running = self.script("--at-least", "1h", text="echo ready; exec sleep 60").says("ready")
        running.process.terminate()
        self.assertEqual(running.end(), 128 + signal.SIGTERM, running)
        begun = time.monotonic()
        self.assertEqual(lock("--no-wait", "--at-least", "400ms", self.name, "true").returncode, 0)
        self.assertGreaterEqual(time.monotonic() - begun, 0.4)
        self.assertEqual(lock("--no-wait", "--at-least", "1h", self.name, "/").returncode, 126)
        self.assertEqual(self.contenders(), [])

    # The command's end is no secret where the lock is lost before --at-least is over.
    def test_at_least_lost(self):
        server = self.own_server()
        running = self.script("--session-timeout", "%ds" % LONG_T, "--at-least", "1h", "--connect", server.connect,
                              text='echo $$ >"$1/pid"; exit 3')
        command = self.pids("pid")[0]
        wait_for(lambda: not alive(command), "the command has ended", running)
        server.do("kill", "1")
        self.assertEqual(running.end(), 3, running)
        self.assertRegex(running.errors, r"(?m)^divvy: the command has ended, and the lock .* is lost, \d+ ms before "
                                         r"--at-least is over$")

    # What a command leaves behind in the background may finish, and is ended before the lock is given back; a daemon in
    # a session of its own goes on.
    def test_left_behind(self):
        # The first of them reads until the command, the only writer, has gone.
        text = ('mkfifo "$1/pipe"; (cat "$1/pipe"; sleep 0.1; echo finished) & exec 4>"$1/pipe"\n'
                'sh -c \'trap "" TERM; while :; do sleep 0.05; done\' 4>&- & echo $! >"$1/pid"\n'
                'setsid sh -c \'echo $$ >"$0/daemon"; exec sleep 60\' "$1" >/dev/null 2>&1 4>&- &\n'
                'while [ ! -s "$1/daemon" ]; do sleep 0.02 4>&-; done; exit 9')
        # They have half a second, and a busy machine may let it pass: but not each time.
        for _ in range(20):
            running = self.script("--grace", "4s", text=text)
            self.assertEqual(running.end(), 9, running)
            self.assertFalse(alive(self.pids("pid")[0]))
            daemon = self.pids("daemon")[0]
            self.addCleanup(fire, signal.SIGKILL, daemon)
            self.assertTrue(alive(daemon))
            self.assertEqual(self.contenders(), [])
            if running.output == "finished\n":
                return
            for name in "pipe", "daemon":
                os.unlink(self.path(name))
        self.fail("it never came to finish")


class Signals(Case):
    # Each signal that is sent to divvy reaches the command's group, once, and the command decides what it means.
    def test_forwarded(self):
        names = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH")
        text = "".join("trap 'echo %s >>\"$1/%s\"' %s; " % (name, "log", name) for name in names)
        text += 'echo ready; while [ ! -e "$1/go" ]; do sleep 0.02; done; exit 33'
        running = self.script(text=text).says("ready")
        for count, name in enumerate(names):
            running.process.send_signal(getattr(signal, "SIG" + name))
            wait_for(lambda count=count: len(self.read("log")) > count, name + " arrives", running)
        self.write("go", "")
        self.assertEqual(running.end(), 33, running)
        self.assertEqual(self.read("log"), list(names))

    # Without a terminal, too, a stop and the end of it reach the command, and divvy stops with it: a command that is
    # stopped for longer than the session lasts loses the lock, and is ended.
    def test_stop_and_continue(self):
        running = self.script("--session-timeout", "%ds" % LONG_T, text='echo $$ >"$1/pid"; exec sleep 60',
                              start_new_session=True)
        pid = self.pids("pid")[0]
        for go_on in (True, False):
            running.process.send_signal(signal.SIGTSTP)
            wait_for(lambda: state(pid) == state(running.pid) == "T", "both are stopped", running)
            if go_on:
                running.process.send_signal(signal.SIGCONT)
                wait_for(lambda: state(pid) == state(running.pid) == "S", "both go on", running)
        wait_for(lambda: not alive(pid), "the command is ended", running)
        running.process.send_signal(signal.SIGCONT)
        self.assertEqual(running.end(), LOST, running)

    # SIGHUP that nohup has ignored is neither acted upon nor passed on.
    def test_nohup(self):
        running = Running("sh", "-c", 'trap "" HUP; exec "$@"', "sh", Setting.divvy, "lock", self.name, "sh", "-c",
                          "echo ready; exec sleep 60").says("ready")
        running.process.send_signal(signal.SIGHUP)
        running.process.terminate()
        self.assertEqual(running.end(), 128 + signal.SIGTERM)


def processes_of_session(session):
    """The numbers of the processes that belong to it, but for those that have ended and wait to be asked for."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as file:
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(name))
    return found


class Terminal:
    """A program in a terminal of its own, as a login shell has it."""

    def __init__(self, *command):
        self.shown = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, environment(PS1="$ ", TERM="dumb", HISTFILE="/dev/null"))
        Terminal.current = self

    def read(self):
        """Takes what it shows now; false when it has ended."""
        try:
            while select.select([self.fd], [], [], 0)[0]:
                self.shown += os.read(self.fd, 65536).decode(errors="replace")
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        return True

    def type(self, text):
        os.write(self.fd, text.encode())

    def shows(self, pattern):
        def there():
            self.read()
            return re.search(pattern, self.shown)
        wait_for(there, "the terminal shows " + pattern, self)
        self.shown = self.shown[re.search(pattern, self.shown).end():]

    def end(self):
        wait_for(lambda: not self.read() or not alive(self.pid), "it ends", self)
        self.read()
        os.close(self.fd)
        return os.waitpid(self.pid, 0)[1]

    def foreground(self):
        return os.tcgetpgrp(self.fd)

    def __str__(self):
        return "the terminal shows: " + self.shown


class Terminals(Case):
    def open(self, *command):
        terminal = Terminal(*command)
        self.addCleanup(fire, signal.SIGKILL, terminal.pid)
        return terminal

    # ^C in a terminal reaches the command, once, the lock is given back at once, and the exit status is 130.
    def test_interrupt(self):
        count = 'trap "echo INT >>$1/log; trap - INT; kill -INT \\$\\$" INT; echo ready; while :; do sleep 0.05; done'
        terminal = self.open(Setting.divvy, "lock", self.name, "/bin/sh", "-c", count, "sh", self.folder)
        terminal.shows("ready")
        terminal.type("\x03")
        status = terminal.end()
        self.assertTrue(os.WIFEXITED(status), status)
        self.assertEqual(os.WEXITSTATUS(status), 130, terminal)
        self.assertEqual(self.read("log"), ["INT"])
        self.assertEqual(self.contenders(), [])
        # At once: not after a session timeout, nor after a grace.
        self.assertEqual(lock("--no-wait", self.name, "true").returncode, 0)

    # ^C while it waits ends the wait, with 130, and no place in the queue is left.
    def test_interrupt_waiting(self):
        holder = self.script(text="echo held; exec sleep 60").says("held")
        terminal = self.open(Setting.divvy, "lock", self.name, "/bin/true")
        wait_for(lambda: len(self.contenders()) == 2, "it waits")
        terminal.type("\x03")
        self.assertEqual(os.waitstatus_to_exitcode(terminal.end()), 130)
        self.assertEqual(len(self.contenders()), 1)
        self.assertIsNone(holder.process.poll())

    # In a script ^C ends the command, once, and the script, as it would without us.
    def test_interrupt_script(self):
        for wait in (False, True):
            holder = self.script(text="echo held; exec sleep 60").says("held") if wait else None
            script = ('"$0" lock "$1" sh -c \'trap "echo INT >>$0/log; trap - INT; kill -INT \\$\\$" INT; echo ready; '
                      'while :; do sleep 0.05; done\' "$2"; echo "wrong $?"')
            terminal = self.open("/bin/bash", "-c", script, Setting.divvy, self.name, self.folder)
            if wait:
                wait_for(lambda: len(self.contenders()) == 2, "it waits", terminal)
            else:
                terminal.shows("ready")
            terminal.type("\x03")
            self.assertEqual(os.waitstatus_to_exitcode(terminal.end()), -signal.SIGINT, terminal)
            self.assertNotIn("wrong", terminal.shown)
            self.assertEqual(self.read("log"), ["INT"])
            self.assertEqual(len(self.contenders()), 1 if wait else 0)
        holder.process.kill()

    # In an interactive shell ^C ends a function under a lock, which is given back at once.
    def test_interrupt_function(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type('. "$DIVVY_SHARE/divvy-lock.bash"; f() { sh -c "echo ready; exec sleep 60"; echo wrong; }\n')
        shell.type("divvyLock --session-timeout 60s %s f\n" % self.name)
        shell.shows("\nready")
        shell.type("\x03")
        wait_for(lambda: self.contenders() == [], "the lock is given back", shell)
        shell.type("echo status $?; divvyLock %s echo again; exit\n" % self.name)
        shell.shows("status 130\r\nagain")
        shell.end()
        self.assertNotIn("\nwrong", shell.shown)
        wait_for(lambda: processes_of_session(shell.pid) == [], "nothing is left of it", shell)

    # The command can read from the terminal and ask it for a password, and has it in the foreground.
    def test_input(self):
        terminal = self.open(Setting.divvy, "lock", self.name, "/bin/sh", "-c",
                             'stty -echo; echo ready; read line; stty echo; echo "got $line"')
        terminal.shows("ready")
        self.assertNotEqual(terminal.foreground(), terminal.pid)
        terminal.type("secret\n")
        terminal.shows("got secret")
        self.assertEqual(terminal.end(), 0)

    # Where divvy is part of a pipeline the command gets the foreground when it reads, and ^C reaches all, it once.
    def test_pipeline(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type("\"%s\" lock %s sh -c 'echo ready; read line; echo got $line; "
                   "trap \"echo INT >>%s/log; exit 3\" INT; echo set; while :; do sleep 0.05; done' | cat; "
                   "echo ${PIPESTATUS[0]}-$?\n" % (Setting.divvy, self.name, self.folder))
        shell.shows("\nready")
        shell.type("a line\n")
        shell.shows("got a line\r\nset")
        shell.type("\x03")
        wait_for(lambda: self.read("log"), "^C reaches it", shell)
        shell.type("exit 0\n")
        shell.end()
        self.assertEqual(self.read("log"), ["INT"])
        self.assertEqual(self.contenders(), [])

    # ^Z stops the command and divvy, so that the shell notices; fg lets both go on, with the terminal.
    def test_stop(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type("\"%s\" lock --session-timeout 60s %s "
                   "sh -c 'echo $$ >%s/pid; echo ready; read line; echo got $line'\n"
                   % (Setting.divvy, self.name, self.folder))
        shell.shows("\nready")
        pid = self.pids("pid")[0]
        shell.type("\x1a")
        shell.shows("Stopped")
        wait_for(lambda: state(pid) == "T", "the command is stopped", shell)
        self.assertEqual(shell.foreground(), shell.pid)
        shell.type("echo here $((40 + 2))\n")
        shell.shows("here 42")
        shell.type("fg\n")
        wait_for(lambda: shell.foreground() == pid, "the command has the foreground", shell)
        shell.type("a line\n")
        shell.shows("got a line")
        shell.shows(r"\$ ")
        shell.type("exit $?\n")
        self.assertEqual(shell.end(), 0, shell)

    # Started in the background it runs there, until it reads from the terminal; fg lets it.
    def test_background(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type("\"%s\" lock --session-timeout 60s %s sh -c 'echo $$ >%s/pid; read line; echo got $line' &\n"
                   % (Setting.divvy, self.name, self.folder))
        pid = self.pids("pid")[0]
        wait_for(lambda: state(pid) == "T", "the command is stopped", shell)
        # divvy stops after its command, and the shell tells of it with the first prompt behind that.
        wait_for(lambda: shell.type("\n") or not shell.read() or "Stopped" in shell.shown, "the shell tells", shell)
        shell.type("fg\n")
        wait_for(lambda: shell.foreground() == pid, "the command has the foreground", shell)
        shell.type("a line\n")
        shell.shows("got a line")
        shell.type("exit $?\n")
        self.assertEqual(shell.end(), 0, shell)

    # The terminal's modes are restored when a command dies that has changed them.
    def test_modes(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type("sh -c '\"$0\" lock %s sh -c \"stty raw -echo; kill -9 \\$\\$\"; stty -a; echo done' \"%s\"\n"
                   % (self.name, Setting.divvy))
        shell.shows(r" icanon ")
        shell.shows(r" echo ")
        shell.type("exit\n")
        shell.end()


if __name__ == "__main__":
    main(__file__)
