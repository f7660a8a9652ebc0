#!/bin/bash
# The source archive has what git tracks, twice the same bytes, and builds where there is no git; what it installs goes
# to the folders of GNUInstallDirs, wherever these are.
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_package_archive.sh BUILD_FOLDER
set -euo pipefail

BUILD=$(realpath -- "$1")
SOURCE=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
readonly BUILD SOURCE
TEMP=$(mktemp -d)
readonly TEMP
trap 'rm -rf -- "$TEMP"' EXIT
trap 'exit 143' HUP INT TERM

fail() {
    printf 'test_package_archive: %s\n' "$*" >&2
    exit 1
}

# quietly COMMAND...: its output is of interest only if it fails.
quietly() {
    if ! "$@" >"$TEMP/output" 2>&1; then
        cat "$TEMP/output" >&2
        fail "failed: $*"
    fi
}

VERSION=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
CC=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
NAME=divvy-$VERSION
for folder in first second; do
    quietly cpack --config "$BUILD/CPackSourceConfig.cmake" -B "$TEMP/$folder"
done
cmp "$TEMP/first/$NAME.tar.gz" "$TEMP/second/$NAME.tar.gz" || fail "two archives of one checkout differ"
diff <(cd "$SOURCE" && git ls-files | sort) \
    <(tar -tzf "$TEMP/first/$NAME.tar.gz" | grep -v '/$' | sed "s|^$NAME/||" | sort) ||
    fail "the archive has other files than git tracks"

tar -xzf "$TEMP/first/$NAME.tar.gz" -C "$TEMP"
quietly cmake -S "$TEMP/$NAME" -B "$TEMP/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD=ON -DCMAKE_DISABLE_FIND_PACKAGE_Git=ON -DDIVVY_BUILD_BENCH=OFF \
    -DCMAKE_INSTALL_{BINDIR=b,LIBDIR=l,INCLUDEDIR=i} -DCMAKE_INSTALL_{DATADIR=d,MANDIR=m,LIBEXECDIR=x}
quietly cmake --build "$TEMP/build" --parallel 2 \
    --target divvy divvy_static divvy_testing divvy_testing_static divvy_command divvy_death_watch \
    unit_lock unit_headers
[[ $("$TEMP/build/tools/divvy" --version) == "divvy $VERSION" ]] || fail "the command says another version"
quietly ctest --test-dir "$TEMP/build" --no-tests=error -R '^unit\.(lock|headers|rooms|api)$'
quietly cmake --install "$TEMP/build" --prefix "$TEMP/prefix"
[[ $(cd "$TEMP/prefix" && echo *) == 'b d i l m x' ]] || fail "it installs into $(cd "$TEMP/prefix" && echo *)"
for file in b/divvy l/libdivvy.so l/libdivvy_testing.a l/pkgconfig/divvy.pc l/cmake/divvy/divvy-config.cmake \
    i/divvy/divvy.h d/divvy/divvy-lock.bash m/man1/divvy.1 x/divvy0/divvy-death-watch; do
    [[ -s $TEMP/prefix/$file ]] || fail "$file is missing"
done
