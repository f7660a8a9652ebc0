#!/usr/bin/python3
"""The scripts test/run, test/install_packages and quickstart, beside stubs. SPDX-License-Identifier: Apache-2.0"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

PRESETS = """{"version": 3,
    "configurePresets": [{"name": "default", "generator": "Ninja", "binaryDir": "${sourceDir}/build"}],
    "testPresets": [{"name": "default", "configurePreset": "default"}]}"""


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def copy(self, name):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        return shutil.copy(ROOT / name, self.folder / name)

    def run_beside_stubs(self, *words):
        """Programs in the folder "stubs" come before those of the system."""
        path = "%s/stubs:%s" % (self.folder, os.environ["PATH"])
        return subprocess.run(words, cwd=self.folder, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)


class Run(Scripts):
    def setUp(self):
        super().setUp()
        self.copy("test/run")
        for stub in ("test/install_packages", "tools/zookeeper-local", "stubs/cmake"):
            self.write(stub, "#!/bin/sh\n")
        self.write("CMakePresets.json", PRESETS)
        self.write("build/CTestTestfile.cmake", 'add_test([=[live.earlier]=] "true")\n')

    def assert_failed(self, done, last):
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"\ntest/run: default: %s\n\Z" % last)
        self.assertNotIn("three times", done.stdout)

    # Where ctest runs no test, the run fails: it does not try again what an earlier run left as failed.
    def test_no_test(self):
        for wrong in (("-R", "^live.none$"), ("-L", "^none$")):
            self.write("build/Testing/Temporary/LastTestsFailed.log", "1:live.earlier\n")
            self.assert_failed(self.run_beside_stubs("test/run", *wrong), "FAILED: 0 tests, 0 failed, .*")
        done = self.run_beside_stubs("test/run", "-R", "^live.earlier$")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    # Nor does it try again where ctest ended before it had written its report.
    def test_no_report(self):
        self.write("build/Testing/Temporary/LastTest.log", "")
        self.write("stubs/ctest", """#!/bin/sh
            case $* in *--output-junit*) ;; *) exit 0 ;; esac
            echo 1:live.earlier >build/Testing/Temporary/LastTestsFailed.log
            exit 8
        """)
        self.assert_failed(self.run_beside_stubs("test/run", "-R", "live"), r"no test was run \(ctest: 8\)")


class InstallPackages(Scripts):
    # A package that is there for two architectures is there. One that was removed for both of them is not.
    def test_architectures(self):
        self.write("stubs/dpkg-query", """#!/bin/bash
            case $3 in both) state=(installed installed) ;; one) state=(not-installed installed) ;;
            removed) state=(config-files config-files) ;; *) exit 1 ;; esac
            [[ $1 == --show && $2 == --showformat=* ]] || exit 3
            format=${2#*=}
            for each in "${state[@]}"; do printf "${format//'${db:Status-Status}'/$each}"; done
        """)
        for stub in ("apt-cache", "sudo", "apt-get"):
            self.write("stubs/" + stub, '#!/bin/sh\necho "$0 $*"\n')
        install = str(ROOT / "test/install_packages")
        done = self.run_beside_stubs(install, "both", "one")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = self.run_beside_stubs(install, "both", "removed", "one", "unknown")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stderr.startswith("install_packages: installing removed unknown\n"), done.stderr)
        self.assertRegex(done.stderr, r" install removed unknown\n\Z")


class Quickstart(Scripts):
    # At its end it signals its own children, and no process that has got the number of one that is gone.
    def test_numbers_of_others(self):
        text = (ROOT / "quickstart").read_text(encoding="utf-8")
        self.assertTrue(text.endswith('\nmain "$@"\n'))
        self.write("functions", text[:-len('main "$@"\n')])
        self.write("test", """#!/bin/bash
            . ./functions
            sleep 600 &
            WORKERS=(gone ours) PIDS=([gone]=$1 [ours]=$!) SERVER=$2
            is_ours "${PIDS[ours]}" || exit 3
            echo "$!"
            trap clean_up EXIT
            exit 129
        """)
        others = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
        try:
            done = self.run_beside_stubs("./test", *[str(other.pid) for other in others])
            self.assertEqual((done.returncode, done.stderr), (129, ""))
            self.assertEqual([other.poll() for other in others], [None, None])
            self.assertFalse(os.path.exists("/proc/" + done.stdout.strip()))
        finally:
            for other in others:
                other.kill()
                other.wait()


if __name__ == "__main__":
    unittest.main(argv=[__file__])
