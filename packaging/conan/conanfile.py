"""divvy as a package of conan 2. SPDX-License-Identifier: Apache-2.0"""

import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir, save

required_conan_version = ">=2.4"


class DivvyConan(ConanFile):
    name = "divvy"
    description = "Divide work among the members of a pool, on ZooKeeper"
    license = "Apache-2.0"
    topics = ("zookeeper", "lock", "coordination")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}
    implements = ["auto_shared_fpic"]
    languages = ["C"]

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "..", "..", "CMakeLists.txt"))
        self.version = text.split("project(divvy VERSION ")[1].split()[0]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "include/*", "lib/*", "tools/death_watch/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("cjson/1.7.18")
        self.requires("zookeeper-client-c/3.9.1", transitive_headers=True, transitive_libs=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["DIVVY_BUILD_SHARED"] = bool(self.options.shared)
        toolchain.cache_variables["DIVVY_BUILD_STATIC"] = not self.options.shared
        for name in ("DIVVY_BUILD_TOOLS", "DIVVY_BUILD_TESTS", "DIVVY_BUILD_BENCH", "CMAKE_COMPILE_WARNING_AS_ERROR"):
            toolchain.cache_variables[name] = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # conan writes such files itself.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        # divvy/zookeeper.h asks for zookeeper/zookeeper.h; some versions of the native client have it without a folder.
        include = self.dependencies["zookeeper-client-c"].cpp_info.includedirs[0]
        if not os.path.exists(os.path.join(include, "zookeeper", "zookeeper.h")):
            save(self, os.path.join(self.package_folder, "include", "zookeeper", "zookeeper.h"),
                 "#include <zookeeper.h>\n")

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "divvy")
        native = "zookeeper-client-c::zookeeper-client-c"
        # A static divvy does not know where the program that it starts for a death watch was put.
        self.runenv_info.define_path("DIVVY_LIBEXEC", os.path.join(self.package_folder, "libexec",
                                                                   f"divvy{str(self.version).split('.')[0]}"))
        divvy = self.cpp_info.components["divvy"]
        divvy.set_property("cmake_target_name", "divvy::divvy")
        divvy.set_property("pkg_config_name", "divvy")
        divvy.libs = ["divvy"]
        divvy.requires = [native, "cjson::cjson"]
        divvy.system_libs = ["pthread"]
        testing = self.cpp_info.components["divvy_testing"]
        testing.set_property("cmake_target_name", "divvy::divvy_testing")
        testing.set_property("pkg_config_name", "divvy_testing")
        testing.libs = ["divvy_testing"]
        testing.requires = ["divvy"]
        handle = self.cpp_info.components["zookeeper"]
        handle.set_property("cmake_target_name", "divvy::zookeeper")
        handle.set_property("pkg_config_name", "divvy_zookeeper")
        handle.defines = ["THREADED"]
        handle.requires = ["divvy", native]
