"""divvy: a set of work, divided among the members of a pool, on ZooKeeper. SPDX-License-Identifier: Apache-2.0"""
from divvy._cffi import ffi, lib

__version__: str = ffi.string(lib.divvy_version()).decode()
