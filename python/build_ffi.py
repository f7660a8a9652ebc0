"""The extension module divvy._cffi, made from divvy's public headers. SPDX-License-Identifier: Apache-2.0

The C preprocessor reads <divvy/divvy.h>, and what it makes of divvy's own headers is what cffi is told. So the two
cannot differ. The headers and the library are those that pkg-config names, or with DIVVY_BUILD_DIR those of a checkout
that was built in that folder.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sysconfig
import typing

import cffi

ATTRIBUTE = '__attribute__((visibility("default")))'  # what DIVVY_API is
PREAMBLE = "#include <divvy/divvy.h>\n#include <cjson/cJSON.h>\n"

# The functions that divvy calls, written in Python. cffi compares their types with those of the fields that they are
# put into.
CALLBACKS = """
extern "Python" {
    int divvy_py_interrupted(divvy_client *, void *);
    void divvy_py_session(divvy_client *, divvy_session_state, void *);
    void divvy_py_warning(divvy_client *, int, const char *, void *);
    void divvy_py_log(int, const char *, void *);
    void divvy_py_state(divvy_partitioner *, divvy_partition_state, divvy_partition_state, void *);
    void divvy_py_items(divvy_partitioner *, const divvy_items_event *, void *);
    int divvy_py_func(const char *, const char *const *, size_t, const char *const *, size_t, uint8_t *, void *);
    void divvy_py_lock_lost(divvy_lock *, void *);
    void divvy_py_lock_done(divvy_lock *, int, void *);
    void divvy_py_semaphore_lost(divvy_semaphore *, void *);
    void divvy_py_semaphore_done(divvy_semaphore *, int, void *);
    void divvy_py_elected(divvy_election *, int64_t, void *);
    void divvy_py_election_lost(divvy_election *, void *);
    void divvy_py_leader(divvy_election *, const divvy_leader *, void *);
    void divvy_py_step_down(divvy_election *, const char *, size_t, void *);
    void divvy_py_election_failed(divvy_election *, int, void *);
    double divvy_py_load(divvy_registry *, const char *, const char *, double, void *);
    void divvy_py_heartbeat_done(divvy_registry *, int, const cJSON *, void *);
    void divvy_py_change(divvy_registry *, int, const cJSON *, const cJSON *, void *);
    int divvy_py_write(void *, const char *, size_t);
}
"""

# What a program needs of cJSON to give and to read the registry's entries.
CJSON = """
cJSON *cJSON_Parse(const char *);
char *cJSON_PrintUnformatted(const cJSON *);
void cJSON_Delete(cJSON *);
void cJSON_free(void *);
"""


def pkg_config(*arguments: str) -> typing.List[str]:
    """Returns the words that pkg-config prints."""
    return shlex.split(subprocess.run(["pkg-config", *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout)


def find_divvy() -> typing.Dict[str, typing.List[str]]:
    """Returns the options of an Extension that is compiled with divvy and cJSON."""
    build = os.environ.get("DIVVY_BUILD_DIR")
    if build:
        folder = pathlib.Path(build).resolve()
        source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", (folder / "CMakeCache.txt").read_text(), re.M)
        if not source:
            raise SystemExit(f"build_ffi: {folder} is no folder that CMake has built divvy in")
        run_path = [] if os.environ.get("DIVVY_NO_RPATH") else ["-Wl,-rpath," + str(folder / "lib")]
        cflags, libs = ["-I" + source[1] + "/include"], ["-L" + str(folder / "lib"), *run_path, "-ldivvy"]
    else:
        cflags, libs = pkg_config("--cflags", "divvy"), pkg_config("--libs", "divvy")
    return {"extra_compile_args": cflags, "extra_link_args": [*libs, "-lcjson"]}


def declarations(cflags: typing.List[str]) -> str:
    """Returns divvy's declarations, as the preprocessor leaves them."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    text = subprocess.run([*compiler, *cflags, "-E", "-x", "c", "-"], input=PREAMBLE, stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    kept, ours = [], False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "(.*)"', line)
        if marker:
            ours = pathlib.PurePath(marker[1]).parent.name == "divvy"
        elif ours:
            kept.append(line)
    return "\n".join(kept).replace(ATTRIBUTE, "")


def make() -> typing.Tuple[typing.Any, typing.Dict[str, typing.List[str]]]:
    """Returns the FFI, which can emit the module's C code, and the options to compile that with."""
    options = find_divvy()
    ffi = cffi.FFI()
    ffi.cdef(declarations(options["extra_compile_args"]))
    ffi.cdef(CJSON + CALLBACKS)
    ffi.set_source("divvy._cffi", PREAMBLE)
    return ffi, options
