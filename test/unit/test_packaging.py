#!/usr/bin/env python3
"""The recipes of packaging/ and debian/, as far as they can be tried without their tools.

SPDX-License-Identifier: Apache-2.0

usage: test_packaging.py BUILD_FOLDER
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONAN = ROOT / "packaging" / "conan"
PORT = ROOT / "packaging" / "vcpkg" / "divvy"
CMAKE = (ROOT / "CMakeLists.txt").read_text()
VERSION = re.search(r"project\(divvy VERSION ([\d.]+)", CMAKE).group(1)
OPTIONS = set(re.findall(r"^option\((\w+)", CMAKE, re.MULTILINE)) | {"CMAKE_COMPILE_WARNING_AS_ERROR"}
# What stands in the place of vcpkg: functions that print what they are given.
VCPKG = """
foreach(name vcpkg_cmake_configure vcpkg_cmake_install vcpkg_cmake_config_fixup vcpkg_fixup_pkgconfig
    vcpkg_install_copyright)
  cmake_language(EVAL CODE "function(${name})\n message(\\"${name};\\${ARGN}\\")\n endfunction()")
endforeach()
set(VCPKG_LIBRARY_LINKAGE static)
set(CURRENT_PACKAGES_DIR "/nonexistent")
include("${PORT}")
"""


def load_recipe(path):
    """Runs a recipe with modules in the place of conan's, and returns what it defines."""
    names = ["conan", "conan.tools", "conan.tools.build", "conan.tools.cmake", "conan.tools.files"]
    modules = {name: mock.MagicMock(spec=types.ModuleType) for name in names}
    modules["conan"].ConanFile = type("ConanFile", (), {})
    modules["conan.tools.files"].load = lambda recipe, name: pathlib.Path(name).read_text()
    for name, words in {"conan.tools.build": ["can_run"], "conan.tools.files": ["copy", "rmdir", "save"],
                        "conan.tools.cmake": ["CMake", "CMakeDeps", "CMakeToolchain", "cmake_layout"]}.items():
        for word in words:
            setattr(modules[name], word, mock.MagicMock())
    recipe = {}
    with mock.patch.dict(sys.modules, modules):
        exec(compile(path.read_text(), str(path), "exec"), recipe)  # pylint: disable=exec-used
    return recipe


class Conan(unittest.TestCase):
    def setUp(self):
        self.recipe = load_recipe(CONAN / "conanfile.py")
        self.conan = self.recipe["DivvyConan"]()
        self.conan.recipe_folder = str(CONAN)

    def test_version(self):
        """The package has the version of the release."""
        self.conan.set_version()
        self.assertEqual(self.conan.version, VERSION)

    def test_sources(self):
        """What the recipe exports is enough to build from, with the options that it sets."""
        self.conan.export_sources_folder = ""
        self.conan.export_sources()
        patterns = [call.args[1] for call in self.recipe["copy"].call_args_list]
        self.conan.options = types.SimpleNamespace(shared=False)
        toolchain = self.recipe["CMakeToolchain"].return_value
        toolchain.cache_variables = {}
        self.conan.generate()
        self.assertLessEqual(set(toolchain.cache_variables), OPTIONS)
        with tempfile.TemporaryDirectory() as folder:
            for path in (path for pattern in patterns for path in ROOT.glob(pattern)):
                copy = shutil.copytree if path.is_dir() else shutil.copy
                target = pathlib.Path(folder) / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                copy(path, target)
            words = [f"-D{name}={'ON' if value else 'OFF'}" for name, value in toolchain.cache_variables.items()]
            subprocess.run(["cmake", "-S", folder, "-B", f"{folder}/build", *words], check=True, capture_output=True)

    def test_targets(self):
        """Programs find the targets that an installed divvy has, and where its death watch is."""
        self.conan.version, self.conan.package_folder = VERSION, "/package"
        self.conan.cpp_info, self.conan.runenv_info = mock.MagicMock(), mock.MagicMock()
        self.conan.cpp_info.components = {name: mock.MagicMock() for name in ("divvy", "divvy_testing", "zookeeper")}
        self.conan.package_info()
        targets = {call.args[1] for component in self.conan.cpp_info.components.values()
                   for call in component.set_property.call_args_list if call.args[0] == "cmake_target_name"}
        self.assertEqual(targets, {"divvy::divvy", "divvy::divvy_testing", "divvy::zookeeper"})
        self.conan.runenv_info.define_path.assert_called_once_with("DIVVY_LIBEXEC", "/package/libexec/divvy0")

    def test_program(self):
        """Its test program works; the recipe that builds it can be read."""
        self.assertIn("DivvyTestConan", load_recipe(CONAN / "test_package" / "conanfile.py"))
        build = pathlib.Path(sys.argv[1])
        sanitize = re.search(r"^DIVVY_SANITIZE:\w+=(.+)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["cc", *([f"-fsanitize={sanitize.group(1)}"] if sanitize else []), f"-I{ROOT}/include", "-o",
                 f"{folder}/program", CONAN / "test_package" / "test_package.c",
                 build / "lib" / "testing" / "libdivvy_testing.a", build / "lib" / "libdivvy.a", "-lzookeeper_mt",
                 "-lcjson", "-pthread"], check=True)
            said = subprocess.run([f"{folder}/program"], check=True, capture_output=True, text=True).stdout
            self.assertEqual(said.strip(), VERSION)


class Versions(unittest.TestCase):
    def test_others(self):
        """The man page, and the packages of Debian and Python, are of this release."""
        for name, pattern in {"docs/man/divvy.1": r'^\.TH .* "divvy ([\d.]+)"',
                              "debian/changelog": r"^divvy \(([\d.]+)",
                              "python/pyproject.toml": r'^version = "([\d.]+)"'}.items():
            found = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
            self.assertEqual(found.group(1), VERSION, name)


class Vcpkg(unittest.TestCase):
    def test_manifest(self):
        """The manifest has the fields of one, and the version of the release; its dependencies are sorted."""
        manifest = json.loads((PORT / "vcpkg.json").read_text())
        self.assertLessEqual(set(manifest), {"name", "version", "description", "license", "supports", "dependencies"})
        self.assertEqual((manifest["name"], manifest["version"]), (PORT.name, VERSION))
        names = [entry if isinstance(entry, str) else entry["name"] for entry in manifest["dependencies"]]
        self.assertEqual(names, sorted(set(names)))
        self.assertLessEqual({"cjson", "zookeeper"}, set(names))

    def test_port(self):
        """The port builds what it stands in, with options that there are."""
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "script.cmake"
            script.write_text(VCPKG)
            said = subprocess.run(["cmake", f"-DPORT={PORT}/portfile.cmake", "-P", script], check=True,
                                  capture_output=True, text=True).stderr
        calls = {line.split(";")[0]: line.split(";")[1:] for line in said.splitlines()}
        words = calls["vcpkg_cmake_configure"]
        self.assertEqual(words[:3], ["SOURCE_PATH", str(ROOT), "OPTIONS"])
        self.assertLessEqual({re.match(r"-D(\w+)=\w+$", word).group(1) for word in words[3:]}, OPTIONS)
        self.assertIn("-DDIVVY_BUILD_SHARED=0", words)
        self.assertTrue(pathlib.Path(calls["vcpkg_install_copyright"][1]).is_file())


class Presets(unittest.TestCase):
    def test_default(self):
        """The default preset builds all, also in a folder where the commands of docs/ have left parts out before."""
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        default = next(preset for preset in presets if preset["name"] == "default")
        commands = [line for page in sorted((ROOT / "docs").glob("*.md")) for line in page.read_text().splitlines()
                    if line.startswith("cmake ") and " -B build " in line]
        left_out = set(re.findall(r"-D(\w+)=OFF", "\n".join(commands)))
        self.assertTrue(left_out)
        self.assertEqual({name: default["cacheVariables"].get(name) for name in left_out},
                         dict.fromkeys(left_out, "ON"))


class Debian(unittest.TestCase):
    def test_symbols(self):
        """Each version of symbols that a library has is known to Debian's dependencies, by the release that had it."""
        for package, script in {"libdivvy0": "lib/divvy.map",
                                "libdivvy-testing0": "lib/testing/divvy_testing.map"}.items():
            nodes = re.findall(r"^(DIVVY_(?:TESTING_)?([\d.]+)) \{", (ROOT / script).read_text(), re.MULTILINE)
            symbols = (ROOT / "debian" / (package + ".symbols")).read_text()
            known = re.findall(r"^ \(symver\)(\S+) ([\d.]+)\.0$", symbols, re.MULTILINE)
            self.assertTrue(nodes)
            self.assertEqual(nodes, known)

    def test_python(self):
        """The build runs Debian's Python, whatever stands before it in PATH."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "python3").symlink_to("/bin/false")
            path = folder + os.pathsep + os.environ["PATH"]
            make = ["make", "-s", "-f", "debian/rules", "--eval=which: ; @command -v python3", "which"]
            said = subprocess.run(make, cwd=ROOT, env={**os.environ, "PATH": path}, check=True, capture_output=True,
                                  text=True)
        self.assertEqual(said.stdout, "/usr/bin/python3\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
