#!/usr/bin/python3
"""The man page and the completion, against the options that there are. SPDX-License-Identifier: Apache-2.0

usage: test_pages.py BUILD_FOLDER [TEST...]     a TEST is a name such as Pages.test_man_page

What there is, is what `divvy help SUBCOMMAND` prints, for that is printed from the very tables that are parsed by.
"""
import functools
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE_DIR = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(SOURCE_DIR, "tools", "divvy")
COMPLETION = os.path.join(FOLDER, "divvy.completion.bash")
OPTION = r"(?<![\w-])(-[A-Za-z]|--[a-z][a-z-]*)(?![\w-])"
DIVVY = None  # set from the command line


def output(*words, **options):
    return subprocess.run(words, check=True, encoding="utf-8", stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          **options).stdout


@functools.cache
def helped(*words):
    return output(DIVVY, "help", *words)


def subcommands():
    listed = re.findall(r"^  ([a-z]+)  +", helped(), re.MULTILINE)
    return [name for name in listed if name != "help"]


def options(subcommand):
    """All options of a subcommand, short forms too; that -h is --help goes without saying."""
    found = set()
    for line in helped(subcommand).splitlines():
        entry = re.match(r"  (-[A-Za-z], )?(--[a-z-]+)", line)
        if entry:
            found |= {name.rstrip(", ") for name in entry.groups() if name}
    return found


def choices(subcommand, option):
    """The values of an option that has few: told by the message about one that is none."""
    done = subprocess.run([DIVVY, subcommand, option, "no such value"], encoding="utf-8", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60)
    told = re.search(r" is not one of (.*) \(see: ", done.stderr)
    return told.group(1).split(", ") if told else []


class Completion:
    """One Bash that answers for all lines, since each test asks for hundreds."""

    ANSWER = ('while read -ra sizes && mapfile -d "" -n "$sizes" -t COMP_WORDS; do COMP_CWORD=$((sizes - 1)); '
              'COMPREPLY=(); _divvy; printf "%s\\0" "${#COMPREPLY[@]}" "${COMPREPLY[@]}"; done')

    def __init__(self):
        self.shell = subprocess.Popen(["bash", "-c", 'source "$1"; ' + self.ANSWER, "bash", COMPLETION], cwd="/",
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _word(self):
        word = b""
        while (byte := self.shell.stdout.read(1)) != b"\0":
            assert byte, "Bash has ended"
            word += byte
        return word.decode()

    def ask(self, words):
        line = "%d\n" % len(words) + "".join(word + "\0" for word in words)
        self.shell.stdin.write(line.encode())
        self.shell.stdin.flush()
        return [self._word() for _ in range(int(self._word()))]

    def end(self):
        self.shell.communicate()


@functools.cache
def completion():
    return Completion()


def completed(*words):
    """What the completion offers for the last of the words."""
    return completion().ask(words)


def asked(shell, script, *words):
    """What a shell prints that finds the `divvy` of the build."""
    path = os.path.dirname(DIVVY) + ":" + os.environ.get("PATH", os.defpath)
    return output(*shell, script, *words, cwd="/", env={**os.environ, "PATH": path}).splitlines()


def completed_by_fish(line):
    lines = asked(["fish", "--no-config", "-c"], "source %s/divvy.fish; complete -C $argv[1]" % FOLDER, line)
    return [line.split("\t")[0] for line in lines]


def completed_by_zsh(*words):
    """What it hands to zsh's own functions: the names before each description."""
    script = ('_arguments() { print -rl -- "$@" }; _describe() { print -rl -- ${(P)4} }; words=("$@")\n'
              "CURRENT=$#words; set --; source %s/_divvy" % FOLDER)
    lines = asked(["zsh", "-f", "-c"], script, "zsh", *words)
    names = (re.match(r"(-?-?[A-Za-z][a-z-]*)[=+]?[\[:]", line) for line in lines)
    return [name.group(1) for name in names if name]


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.names = subcommands()
        with open(os.path.join(SOURCE_DIR, "docs", "man", "divvy.1"), encoding="utf-8") as file:
            cls.page = file.read().replace("\\-", "-").replace("\\~", " ")

    def sections(self):
        """For each subcommand its part of the page."""
        parts = re.split(r"(?m)^\.S[SH] (.*)\n", self.page)
        return {title[len("divvy "):]: text for title, text in zip(parts[1::2], parts[2::2])
                if title.startswith("divvy ")}

    @classmethod
    def tearDownClass(cls):
        completion().end()

    # There is a section for each subcommand and for no other, and it describes its options and no other.
    def test_man_page(self):
        self.assertGreater(len(self.names), 5)
        self.assertEqual(sorted(self.sections()), sorted(self.names))
        for name in self.names:
            with self.subTest(name):
                tags = re.findall(r"(?m)^\.T[PQ]\n\.(?:B|BI|BR) (.*)$", self.sections()[name])
                described = {option for tag in tags for option in re.findall(OPTION, tag)} - {"-h"}
                self.assertGreater(len(options(name)), 5 if name != "bucket" else 1)
                self.assertEqual(described, options(name))

    # Every exit code that a help text tells is in the section EXIT STATUS, and the synopsis has each subcommand.
    def test_man_page_codes(self):
        status = re.search(r"(?s)\n\.SH EXIT STATUS\n(.*?)\n\.SH ", self.page).group(1)
        synopsis = re.search(r"(?s)\n\.SH SYNOPSIS\n(.*?)\n\.SH ", self.page).group(1)
        for name in self.names:
            told = helped(name).split("Exit codes: ")[1].replace("\n", " ")
            for code in re.findall(r"(?:^|[;.] )([0-9]{1,3}) ", told):
                self.assertRegex(status, r"(?m)^\.TP\n\.B %s$" % code, name)
            self.assertRegex(synopsis, r"(?m)^\.B divvy %s$" % name)
        self.assertIn('"%s"' % output(DIVVY, "--version").strip(), self.page)

    # The page is good troff: nothing to complain of, and no option is broken at its hyphens.
    def test_man_page_troff(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", os.path.join(SOURCE_DIR, "docs/man/divvy.1")],
                              stderr=subprocess.PIPE, encoding="utf-8", check=True)
        self.assertEqual(done.stderr, "")
        with open(os.path.join(SOURCE_DIR, "docs", "man", "divvy.1"), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                bare = re.findall(r"(?<![\\\w-])--?[a-z]", line) if not line.startswith('.\\"') else []
                self.assertEqual(bare, [], "line %d" % number)

    # Who mistypes a subcommand, an option or its value is told what is near.
    def test_did_you_mean(self):
        for words, meant in ((["lokc"], "lock"), (["help", "stauts"], "status"), (["--versoin"], "--version"),
                             (["lock", "--conect=zk1"], "--connect"), (["lock", "--acl", "opne"], "open")):
            done = subprocess.run([DIVVY, *words], encoding="utf-8", stderr=subprocess.PIPE, check=False,
                                  stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn("; did you mean %s? (see: " % meant, done.stderr)

    # The completion offers all subcommands, and for each its options and no other.
    def test_completion(self):
        self.assertEqual(sorted(completed("divvy", "")), sorted(self.names + ["help", "--version", "--help"]))
        self.assertEqual(sorted(completed("divvy", "help", "")), sorted(self.names))
        self.assertEqual(completed("divvy", "sta"), ["status"])
        for name in self.names:
            with self.subTest(name):
                self.assertEqual(set(completed("divvy", name, "-")), options(name))
        self.assertEqual(completed("divvy", "status", "--wa"), ["--watch"])

    # So it does in fish and zsh, where it asks divvy; a command, its options and files come where they do in Bash.
    def test_completion_fish(self):
        self.assertEqual(sorted(completed_by_fish("divvy ")), sorted(self.names + ["help", "--version", "--help"]))
        for name in self.names:
            with self.subTest(name):
                self.assertEqual(set(completed_by_fish("divvy %s -" % name)), options(name) | {"--help"})
        self.assertEqual(completed_by_fish("divvy lock --connect "), [])
        self.assertEqual(completed_by_fish("divvy status --items-from /etc/hostn"), ["/etc/hostname"])
        for line in ("divvy lock -n 3 name ech", "divvy elect --once name ech", "divvy partition --standby -- ech"):
            self.assertIn("echo", completed_by_fish(line))
        self.assertNotIn("echo", completed_by_fish("divvy lock --timeout 3s ech"))

    def test_completion_zsh(self):
        self.assertEqual(sorted(completed_by_zsh("divvy", "")), sorted(self.names + ["help"]))
        self.assertEqual(sorted(completed_by_zsh("divvy", "help", "")), sorted(self.names + ["help"]))
        for name in self.names:
            with self.subTest(name):
                self.assertEqual(set(completed_by_zsh("divvy", name, "-")), options(name))

    # Where an option has a value, it offers the values that there are, or none; behind a flag it offers options again.
    def test_completion_values(self):
        for name in self.names:
            text = helped(name)
            for option in options(name) - {"--help"}:
                with self.subTest(name=name, option=option):
                    takes = re.search(r"(?m)^  (?:-[A-Za-z], )?(?:--[a-z-]+, )?%s( [A-Z]+)?(?:,|  |$)" % option, text)
                    if option.startswith("--") and takes and not takes.group(1):
                        self.assertIn("--help", completed("divvy", name, option, "--he"))
                        continue
                    offered = completed("divvy", name, option, "")
                    files = ("--auth-file", "--items-from", "--keys-from", "--items-from-command", "--events",
                             "--load-command", "--metrics")
                    if option not in files and not option.startswith(("--tls-", "--sasl-password")):
                        self.assertEqual(sorted(filter(None, offered)),
                                         sorted(set(choices(name, option)) - {"round-robin"}))

        self.assertEqual(completed("divvy", "plan", "--assign", "=", "st"), ["sticky"])
        self.assertEqual(completed("divvy", "partition", "--mode", "="), ["incremental", "eager"])

    # Behind the lock's name, or behind --, come a command and its files.
    def test_completion_commands(self):
        self.assertIn("env", completed("divvy", "lock", "--timeout", "3s", "--shared", "name", "en"))
        self.assertIn("env", completed("divvy", "elect", "--prefer", "3", "--once", "name", "en"))
        self.assertEqual(completed("divvy", "lock", "--timeout", "en"), [])
        with tempfile.TemporaryDirectory() as folder:
            open(os.path.join(folder, "two words"), "wb").close()
            self.assertEqual(completed("divvy", "status", "--items-from", folder + "/two"), [folder + "/two words"])
        self.assertIn("/dev/null", completed("divvy", "lock", "name", "cat", "/dev/nul"))
        self.assertIn("env", completed("divvy", "announce", "--role", "r", "--", "en"))
        self.assertIn("env", completed("divvy", "partition", "--path", "/q", "--rejoin", "--", "en"))


def main():
    global DIVVY
    if len(sys.argv) < 2:
        sys.exit("usage: test_pages.py BUILD_FOLDER [TEST...]")
    DIVVY = os.path.join(os.path.abspath(sys.argv[1]), "tools", "divvy")
    outcome = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False, verbosity=2).result
    sys.exit(not outcome.wasSuccessful())


if __name__ == "__main__":
    main()
