#!/bin/bash
# FindZooKeeper finds the native client as Debian, conan and vcpkg have it: packages that look like theirs, made of
# Debian's static library, which has the two libraries of the others in one. SPDX-License-Identifier: Apache-2.0
#
# usage: test_package_find.sh BUILD_FOLDER
set -euo pipefail

BUILD=$(realpath -- "$1")
SOURCE=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
readonly BUILD SOURCE
TEMP=$(mktemp -d)
readonly TEMP
trap 'rm -rf -- "$TEMP"' EXIT
trap 'exit 143' HUP INT TERM

fail() {
    printf 'test_package_find: %s\n' "$*" >&2
    exit 1
}

# quietly COMMAND...: its output is of interest only if it fails.
quietly() {
    if ! "$@" >"$TEMP/output" 2>&1; then
        cat "$TEMP/output" >&2
        fail "failed: $*"
    fi
}

# make_prefix FOLDER HEADERS: the two libraries, and the headers below include/HEADERS. The version is one that Debian
# does not have, by which the headers are told from Debian's.
make_prefix() {
    mkdir -p "$1/lib/cmake" "$1/objects" "$1/include/$2"
    (cd "$1/objects" && ar x "$STATIC" && ar rcs ../lib/libhashtable.a hashtable*.o && rm hashtable*.o &&
        ar rcs ../lib/libzookeeper.a ./*.o)
    cp "$HEADERS"/*.h "$1/include/$2"
    sed -i 's/\(#define ZOO_VERSION\) .*/\1 "3.99.1"/' "$1/include/$2/zookeeper_version.h"
}

# write_config PREFIX PACKAGE NAMESPACE: a CMake package that has the libraries as NAMESPACEzookeeper and its
# NAMESPACEhashtable.
write_config() {
    mkdir -p "$1/lib/cmake/$2"
    cat >"$1/lib/cmake/$2/$2Config.cmake" <<CODE
add_library($3hashtable STATIC IMPORTED)
set_target_properties($3hashtable PROPERTIES IMPORTED_LOCATION "$1/lib/libhashtable.a")
add_library($3zookeeper STATIC IMPORTED)
set_target_properties($3zookeeper PROPERTIES IMPORTED_LOCATION "$1/lib/libzookeeper.a"
  INTERFACE_INCLUDE_DIRECTORIES "$1/include" INTERFACE_LINK_LIBRARIES "$3hashtable;m")
CODE
}

# As conan's generator writes it: one target without a library of its own, for this build type only.
write_conan() {
    mkdir -p "$1/lib/cmake/zookeeper-client-c"
    cat >"$1/lib/cmake/zookeeper-client-c/zookeeper-client-c-config.cmake" <<CODE
add_library(zookeeper-client-c::zookeeper-client-c INTERFACE IMPORTED)
set_target_properties(zookeeper-client-c::zookeeper-client-c PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "\$<\$<CONFIG:Debug>:$1/include>"
  INTERFACE_LINK_LIBRARIES "\$<\$<CONFIG:Debug>:$1/lib/libzookeeper.a;$1/lib/libhashtable.a;m>")
CODE
}

# finds PREFIX: a program with the native client of that prefix is built, and has no shared one.
finds() {
    mkdir "$1/user"
    cat >"$1/user/CMakeLists.txt" <<CODE
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
set(CMAKE_FIND_PACKAGE_PREFER_CONFIG ON) # as conan's toolchain has it
list(APPEND CMAKE_MODULE_PATH "$SOURCE/lib/cmake")
find_package(ZooKeeper MODULE REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE ZooKeeper::mt)
CODE
    cat >"$1/user/program.c" <<'CODE'
#include <zookeeper/zookeeper.h>
#include <zookeeper/zookeeper_version.h>
#include <stdio.h>
int main(void) {
    zhandle_t *handle = zookeeper_init("127.0.0.1:1", NULL, 1000, NULL, NULL, 0);
    struct Stat stat;
    if (zoo_exists(handle, "bad path", 0, &stat) != ZBADARGUMENTS) return 1; /* declared with THREADED only */
    zookeeper_close(handle);
    puts(ZOO_VERSION);
}
CODE
    sed -i "s|zookeeper/zookeeper_version.h|${2:-zookeeper/zookeeper_version.h}|" "$1/user/program.c"
    quietly cmake -S "$1/user" -B "$1/user/build" -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_PREFIX_PATH="$1"
    quietly cmake --build "$1/user/build"
    if readelf -d "$1/user/build/program" | grep -q 'NEEDED.*zookeeper'; then fail "$1: Debian's library was found"; fi
    [[ $("$1/user/build/program" 2>/dev/null) == 3.99.1 ]] || fail "$1: other headers than the library's"
}

# All of divvy is built with that client, and a program by pkg-config --static.
builds_divvy() {
    local -a flags
    local -x PKG_CONFIG_PATH=$1/divvy/lib/pkgconfig
    quietly cmake -S "$SOURCE" -B "$1/build" -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD=ON \
        -DCMAKE_PREFIX_PATH="$1" -DCMAKE_INSTALL_LIBDIR=lib -DDIVVY_BUILD_SHARED=OFF -DDIVVY_BUILD_TOOLS=OFF \
        -DDIVVY_BUILD_TESTS=OFF -DDIVVY_BUILD_BENCH=OFF -DDIVVY_BUILD_TESTING_LIBRARY=OFF
    quietly cmake --build "$1/build" --parallel 2
    quietly cmake --install "$1/build" --prefix "$1/divvy"
    read -ra flags <<<"$(pkg-config --static --cflags --libs divvy)"
    printf '#include <divvy/divvy.h>\nint main(void) {\n%s\n}\n' \
        'divvy_client *c; return divvy_client_open(&c, 0) != 0 && divvy_version() == 0;' >"$1/program.c"
    quietly "$CC" -o "$1/program" "$1/program.c" -L"$1/lib" "${flags[@]}"
    if readelf -d "$1/program" | grep -q 'NEEDED.*zookeeper'; then fail "$1: divvy was built with Debian's library"; fi
    "$1/program"
}

CC=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
STATIC=$("$CC" -print-file-name=libzookeeper_mt.a)
HEADERS=/usr/include/zookeeper
[[ $STATIC == /* && -d $HEADERS ]] || fail "Debian's libzookeeper-mt-dev is not there"

make_prefix "$TEMP/vcpkg" zookeeper
write_config "$TEMP/vcpkg" unofficial-zookeeper unofficial::zookeeper::
finds "$TEMP/vcpkg"
make_prefix "$TEMP/conan" ''
write_conan "$TEMP/conan"
finds "$TEMP/conan" zookeeper_version.h
make_prefix "$TEMP/targets" zookeeper
write_config "$TEMP/targets" zookeeper ''
finds "$TEMP/targets"
make_prefix "$TEMP/libraries" ''
finds "$TEMP/libraries" zookeeper_version.h
builds_divvy "$TEMP/libraries"
