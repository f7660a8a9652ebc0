"""Builds the extension module; pyproject.toml has all else. SPDX-License-Identifier: Apache-2.0"""
import os
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


class BuildFromHeaders(build_ext):
    """Reads divvy's headers when the module is built, and not before: an sdist is made without them."""

    def run(self):
        import build_ffi

        ffi, options = build_ffi.make()
        os.makedirs(self.build_temp, exist_ok=True)
        source = os.path.join(self.build_temp, "divvy_cffi.c")
        ffi.emit_c_code(source)
        for extension in self.extensions:
            extension.sources = [source]
            for name, words in options.items():
                setattr(extension, name, words)
        super().run()


setup(
    ext_modules=[Extension("divvy._cffi", sources=[], py_limited_api=True)],
    cmdclass={"build_ext": BuildFromHeaders},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},  # one module for all later Pythons
)
