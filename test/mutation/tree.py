"""The copy of the tree that has the mutants, its build, and its tests. SPDX-License-Identifier: Apache-2.0"""
import os
import pathlib
import re
import subprocess

import mutate

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build-mutation"
TREE = FOLDER / "tree"
BUILD = FOLDER / "build"
ROOMS = ["plan", "recipe", "client", "follow", "handover"]
# Leaks are found as CI's stage asan finds them; the rest of AddressSanitizer would make simulations too slow.
OPTIONS = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1 -g0", "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF",
           "-DDIVVY_BUILD_SHARED=OFF", "-DDIVVY_BUILD_BENCH=OFF", "-DDIVVY_INSTALL=OFF", "-DDIVVY_SANITIZE=leak"]
# Tests of what stands elsewhere, or takes minutes; tests that have processes or threads by the real clock.
NOT_USED = re.compile(r"unit\.(assign|balance|conformance|cpu_|descendants|doctor|ensemble|fuzz_corpus_(command|hosts)"
                      r"|headers|package|readme|serve|supervise|status|sweep_.*_native|tls|workers)")
# What members do, and how many histories of it take the time of one of the others.
SIMULATIONS = {"sim": ([], 1), "sim --locks": (["--locks"], 1), "sim --elections": (["--elections"], 1),
               "sim --registry": (["--registry"], 0.5), "sim --plans": (["--plans"], 0.3),
               "sim --rolls --plans": (["--rolls", "--plans"], 0.3)}


# What the copy's build has beside the tree's. unit.plan_read_memory includes a file of the library.
MORE = {
    "lib/CMakeLists.txt": """target_sources(divvy_objects PRIVATE ../test/mutation/mutant.c)
target_include_directories(divvy_objects PRIVATE "${PROJECT_SOURCE_DIR}/test")
""",
    "test/CMakeLists.txt": "target_compile_options(unit_plan_read_memory PRIVATE -w)\n",
}


def write(path, data):
    """Writes the file, unless it has these bytes already: what did not change is not built again."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def copy():
    """Copies what git tracks, and what stands beside it untracked, but for the rooms that get mutants."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           check=True, capture_output=True, text=True).stdout.split("\0")
    wanted = set()
    for name in filter(None, names):
        source = ROOT / name
        if not source.is_file():
            continue
        wanted.add(name)
        if not is_mutated(name) and name not in MORE:
            write(TREE / name, source.read_bytes())
            (TREE / name).chmod(source.stat().st_mode)
    for folder in ("lib", "test"):
        for path in (TREE / folder).rglob("*"):
            if path.is_file() and str(path.relative_to(TREE)) not in wanted and "__pycache__" not in path.parts:
                path.unlink()
    for name, more in MORE.items():
        write(TREE / name, ((ROOT / name).read_text() + more).encode())
    return sorted(name for name in wanted if is_mutated(name))


def is_mutated(name):
    parts = name.split("/")
    return len(parts) == 3 and parts[0] == "lib" and parts[1] in ROOMS and name.endswith(".c")


def mutants(names, seed):
    """Writes the files with their mutants. Returns these; the first one has the number 1."""
    all_of_them = []
    clang = mutate.arguments('-DDIVVY_LIBEXEC=""', "-I%s" % (ROOT / "lib"), "-I%s" % (ROOT / "include"))
    for name in names:
        source = mutate.Source(ROOT / name, name, clang)
        chosen = mutate.one_a_line(source, seed)
        numbered = list(enumerate(chosen, len(all_of_them) + 1))
        all_of_them += chosen
        write(TREE / name, mutate.rewrite(source, numbered).encode())
    return all_of_them


def configure():
    # Its .git is a file that says where nothing is: cmake asks whether there is one, and git is not to be asked.
    subprocess.run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", *OPTIONS], check=True,
                   stdout=subprocess.DEVNULL)


def tests():
    """Returns the unit tests that are programs, by name, each with its command."""
    found = {}
    for path in (BUILD / "test").rglob("CTestTestfile.cmake"):  # ctest itself tells no command before the build
        text = path.read_text()
        for name, words in re.findall(r"^add_test\(\[=\[(unit\.[^]]*)\]=\] (.*)\)$", text, re.M):
            command = re.findall(r'"([^"]*)"', words)
            properties = re.findall(r"^set_tests_properties\(\[=\[%s\]=\] .*$" % re.escape(name), text, re.M)
            if NOT_USED.match(name) or "PASS_REGULAR_EXPRESSION" in " ".join(properties):
                continue
            if command[0].startswith(str(BUILD)):
                found[name] = command
    return found


def simulations(histories):
    """Returns the simulations, by name, each with its command."""
    return {name: [str(BUILD / "test/sim/sim"), *words, "--seed", "1", "--histories", str(int(histories * part))]
            for name, (words, part) in SIMULATIONS.items()}


def build(commands, jobs):
    programs = {os.path.relpath(command[0], BUILD) for command in commands.values()}
    subprocess.run(["nice", "-n", "5", "cmake", "--build", BUILD, "--parallel", str(jobs), "--target",
                    *sorted(programs)], check=True)
