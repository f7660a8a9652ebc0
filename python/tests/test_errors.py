"""Errors, and what the package says of itself. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re

import pytest

import divvy
from divvy._cffi import lib
from divvy.errors import make_error

PYTHON = pathlib.Path(__file__).resolve().parents[1]


# Each error of the library has a class of its own in the package, which carries code, name and flags.
def test_each_error_has_a_class():
    names = [name for name in dir(lib) if re.match("DIVVY_E[A-Z0-9]+$", name)]
    codes = {name: getattr(lib, name) for name in names if getattr(lib, name) < 0}
    assert len(codes) > 20
    for name, code in codes.items():
        error = make_error(code)
        assert type(error) is not divvy.Error, name
        assert getattr(divvy, type(error).__name__) is type(error) and type(error).__name__ in divvy.__all__
        assert (error.code, error.name) == (code, name)
        assert error.retryable == bool(lib.divvy_error_retryable(code))
        assert error.fatal == bool(lib.divvy_error_fatal(code))
        assert str(error)


# A code that this package does not know yet is an Error that carries it.
def test_unknown_code():
    error = make_error(-9999, "what")
    assert type(error) is divvy.Error and str(error) == "what"
    assert (error.code, error.name) == (-9999, "DIVVY_EUNKNOWN")


# What Python has a word for is that, too.
@pytest.mark.parametrize("ours, pythons", [
    (divvy.TimedOut, TimeoutError), (divvy.InvalidArgument, ValueError), (divvy.OutOfMemory, MemoryError),
    (divvy.AccessDenied, PermissionError), (divvy.ConnectionDown, ConnectionError)])
def test_pythons_classes(ours, pythons):
    assert issubclass(ours, pythons)


# The package has the version of the library and of the headers.
def test_version():
    stated = re.search(r'^version = "(.*)"$', (PYTHON / "pyproject.toml").read_text(), re.M)[1]
    assert stated == divvy.__version__
    assert f"VERSION {stated} " in (PYTHON.parent / "CMakeLists.txt").read_text()


# Every function of the headers is called somewhere in the package, but for those that it has no use for.
def test_every_function_is_used():
    unused = {"divvy_assign_round_robin", "divvy_session_state_name", "divvy_partition_state_name",
              "divvy_holders_skipped"}
    text = "".join(path.read_text() for path in (PYTHON / "src").rglob("*.py"))
    # What a class makes of a config's name.
    used = set(re.findall(r"lib\.(divvy_\w+)", text))
    used |= {name for name in dir(lib) if re.search("_(config|options|request|result)_init", name)}
    # And of the names that a lock and a semaphore share.
    shared = re.findall(r'_function\("(\w+)"\)', text)
    used |= {f"divvy_{kind}_{name}" for kind in ("lock", "semaphore") for name in shared}
    # A run has threads of Python's own, or tasks, where C has divvy_workers.
    functions = {name for name in dir(lib) if re.match("divvy_(?!py_|workers_|job_)", name)}
    used = {name for name in used if not name.startswith("divvy_workers_")}
    assert functions - used == unused
