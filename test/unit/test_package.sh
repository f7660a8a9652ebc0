#!/bin/bash
# Uses the library as its users do: installed, by CMake and by pkg-config, shared and static, and as a subfolder of
# their source tree; and looks at what the shared library shows. SPDX-License-Identifier: Apache-2.0
#
# usage: test_package.sh BUILD_FOLDER
set -euo pipefail

BUILD=$(realpath -- "$1")
SOURCE=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
readonly BUILD SOURCE
TEMP=$(mktemp -d)
readonly TEMP GUIDE=$TEMP/guide
trap 'rm -rf -- "$TEMP"' EXIT
trap 'exit 143' HUP INT TERM

fail() {
    printf 'test_package: %s\n' "$*" >&2
    exit 1
}

# quietly COMMAND...: its output is of interest only if it fails.
quietly() {
    if ! "$@" >"$TEMP/output" 2>&1; then
        cat "$TEMP/output" >&2
        fail "failed: $*"
    fi
}

# cached NAME: the value that the build has in CMake's cache.
cached() {
    sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt"
}

# same WHAT EXPECTED FOUND: compares two lists, a word a line.
same() {
    diff -u --label expected --label found <(sort -u <<<"$2") <(sort -u <<<"$3") >&2 || fail "$1"
}

# A program that needs the whole library: sessions, and by them the native client. The conversion is there to be warned
# of: it does not compile if the flags of our own code leak into the user's.
write_program() {
    cat >"$1/program.c" <<'CODE'
#include <divvy/divvy.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = "127.0.0.1:1";
    config.death_watch = getenv("WATCHED") != NULL;
    config.ensemble_tick_ms = 2000;
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) {
        fprintf(stderr, "%s\n", divvy_client_error(NULL));
        return 1;
    }
    int64_t none = divvy_client_session_id(client);
    int narrowed = none;
    divvy_client_close(client);
    puts(divvy_version());
    return narrowed;
}
CODE
}

# write_project FOLDER LINES: a user's project whose divvy comes by LINES.
write_project() {
    mkdir -p "$1"
    write_program "$1"
    cat >"$1/CMakeLists.txt" <<CODE
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
$2
add_executable(program program.c)
target_link_libraries(program PRIVATE divvy::divvy)
CODE
}

# build_project FOLDER [PREFIX]
build_project() {
    quietly cmake -S "$1" -B "$1/build" -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="${2:-}" -DCMAKE_BUILD_TYPE=Debug
    quietly cmake --build "$1/build" -j2
}

# runs PROGRAM: it works, and the library is of the version that the build has.
runs() {
    local said
    said=$("$1") || fail "$1 ends with status $?"
    [[ $said == "$VERSION" ]] || fail "$1 says $said, not $VERSION"
}

# needs FILE: the shared libraries it names, without those of sanitizers.
needs() {
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev '^lib(asan|ubsan|tsan|lsan)\.' || true
}

install_build() {
    local flags
    CC=$(cached CMAKE_C_COMPILER)
    LIBDIR=$(cached CMAKE_INSTALL_LIBDIR)
    VERSION=$(cached CMAKE_PROJECT_VERSION)
    # A program that links a library built for a sanitizer must be built for it too.
    flags=$(cached DIVVY_SANITIZE)
    export CFLAGS=${flags:+-fsanitize=$flags} LDFLAGS=${flags:+-fsanitize=$flags}
    # Another prefix than the one that was configured: what is installed must not depend on where.
    quietly cmake --install "$BUILD" --prefix "$TEMP/prefix"
    LIBRARY=$TEMP/prefix/$LIBDIR/libdivvy.so
}

# The shared libraries show exactly what the headers declare, at the versions that their scripts say, and depend on
# nothing but what they are said to.
check_shared_libraries() {
    "$SOURCE/test/abi/symbols" "$LIBRARY" "${LIBRARY%.so}_testing.so" || fail "the libraries show other symbols"
    same "the library needs other libraries" "$(needs "$LIBRARY")" "$(needs "$LIBRARY" |
        grep -E '^(libzookeeper_mt|libcjson|libc|ld-linux.*)\.so\.[0-9]+$')"
    readelf -d "$LIBRARY" | grep -qF "(SONAME)" || fail "the library has no soname"
    same "the soname" "libdivvy.so.${VERSION%%.*}" "$(readelf -d "$LIBRARY" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')"
}

# Where names are not hidden, they at least cannot clash with a user's. AddressSanitizer adds one of its own to each.
check_static_library() {
    local foreign
    foreign=$(nm -g --defined-only "$1" | awk 'NF == 3 { print $3 }' | grep -vE '^(__odr_asan\.)?(divvy|dv)_' || true)
    [[ -z $foreign ]] || fail "libdivvy.a defines names that are not ours: $foreign"
}

check_find_package_shared() {
    write_project "$TEMP/shared" 'find_package(divvy 0.2 REQUIRED)'
    build_project "$TEMP/shared" "$TEMP/prefix"
    runs "$TEMP/shared/build/program"
    # It finds its death watch where the library is, and not where it was configured to be.
    WATCHED=1 runs "$TEMP/shared/build/program"
    needs "$TEMP/shared/build/program" | grep -qx "libdivvy.so.${VERSION%%.*}" ||
        fail "divvy::divvy is not the shared one"
}

# check_pkg_config PREFIX [OPTION]
check_pkg_config() {
    local -a flags
    local -x PKG_CONFIG_PATH=$1/$LIBDIR/pkgconfig
    [[ $(pkg-config --modversion divvy) == "$VERSION" ]] || fail "divvy.pc says another version"
    read -ra flags <<<"$(pkg-config "${@:2}" --cflags --libs divvy) $CFLAGS"
    mkdir -p "$TEMP/by_hand"
    write_program "$TEMP/by_hand"
    quietly "$CC" -o "$TEMP/by_hand/program" "$TEMP/by_hand/program.c" "${flags[@]}"
    LD_LIBRARY_PATH=$1/$LIBDIR runs "$TEMP/by_hand/program"
}

# guide_block LANGUAGE WORD: the first block of docs/guide.md in that language that has the word.
guide_block() {
    awk -v fence="\`\`\`$1" -v word="$2" '
        $0 == fence { inside = 1; text = ""; next }
        /^```$/ && inside { inside = 0; if (index(text, word)) { printf "%s", text; exit } }
        inside { text = text $0 "\n" }' "$SOURCE/docs/guide.md"
}

# ends_with_usage COMMAND...: the program is linked, loads its libraries, and starts: it says how it is used.
ends_with_usage() {
    local status=0
    env -u DIVVY_CONNECT "$@" >"$TEMP/output" 2>&1 || status=$?
    if ((status != 2)) || ! grep -q '^usage: ' "$TEMP/output"; then fail "$* does not run: $(cat "$TEMP/output")"; fi
}

# Where the guide's reader stands: in $GUIDE, beside the examples and a build folder, with a home of one's own and a
# compiler named cc.
enter_guide() {
    mkdir -p "$GUIDE/home"
    cp -r "$SOURCE"/docs/examples/*.c "$SOURCE/docs/examples/guide" "$GUIDE"
    ln -s "$BUILD" "$GUIDE/build"
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$CC" "$CFLAGS" >"$GUIDE/cc"
    chmod +x "$GUIDE/cc"
}

# as_reader FILE: runs these commands of the guide.
as_reader() {
    (cd "$GUIDE" && HOME=$GUIDE/home PATH=$GUIDE:$PATH quietly bash -e "$1") || exit 1
}

# line_of FILE: the guide's program that is built as this one must be.
line_of() {
    if grep -q '^#include <cjson/' "$1"; then
        echo registry
    elif grep -q '^#include <divvy/zookeeper.h>' "$1"; then
        echo native_host
    elif grep -q '^#include <divvy/testing.h>' "$1"; then
        echo testing_pool
    else
        echo incremental_loop
    fi
}

# What docs/guide.md says of building programs builds each example: by pkg-config, in the words of its line for such
# programs; and by CMake those that it names.
check_guide() {
    local -x PKG_CONFIG_PATH=$TEMP/prefix/$LIBDIR/pkgconfig LD_LIBRARY_PATH=$TEMP/prefix/$LIBDIR
    local file line program
    guide_block sh 'pkg-config --cflags' >"$GUIDE/lines.sh"
    guide_block cmake find_package >"$GUIDE/lines.cmake"
    [[ -s $GUIDE/lines.sh && -s $GUIDE/lines.cmake ]] || fail "docs/guide.md does not say how a program is built"
    for file in "$GUIDE"/*.c "$GUIDE"/guide/*.c; do
        line=$(line_of "$file")
        program=${file#"$GUIDE/"}
        grep "^cc -o $line " "$GUIDE/lines.sh" | sed "s|-o $line $line.c|-o ${program%.c} $program|"
    done >"$GUIDE/build.sh"
    grep -q ' guide/jobs.c ' "$GUIDE/build.sh" || fail "examples are missing"
    as_reader build.sh
    mkdir "$GUIDE/cmake"
    { printf 'cmake_minimum_required(VERSION 3.25)\nproject(guide LANGUAGES C)\n' &&
        sed 's| \([a-z_]*\.c)\)| ../\1|' "$GUIDE/lines.cmake"; } >"$GUIDE/cmake/CMakeLists.txt"
    quietly cmake -S "$GUIDE/cmake" -B "$GUIDE/cmake" -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="$TEMP/prefix"
    quietly cmake --build "$GUIDE/cmake" -j2
    for program in "$GUIDE"/{,cmake/}{incremental_loop,registry,native_host}; do ends_with_usage "$program"; done
    for program in "$GUIDE"/{,cmake/}testing_pool; do quietly "$program"; done
    # The header alone is enough where the native client is named by hand.
    read -ra flags <<<"$(pkg-config --cflags --libs divvy) $CFLAGS"
    quietly "$CC" -Wall -Werror -o "$GUIDE/by_hand" "$GUIDE/native_host.c" "${flags[@]}" -lzookeeper_mt
    ends_with_usage "$GUIDE/by_hand"
}

# The guide's way to a prefix that the loader does not search works, by its rpath and by LD_LIBRARY_PATH; and without
# one of them the program does not run, so that the words are needed.
check_guide_prefix() {
    local -x HOME=$GUIDE/home
    guide_block sh 'cmake --install build && ' | grep -q 'ldconfig' || fail "docs/guide.md does not name ldconfig"
    guide_block sh 'cmake --install build --prefix' | sed "s|/divvy/lib\b|/divvy/$LIBDIR|" >"$GUIDE/prefix.sh"
    grep -v '/lock zk' "$GUIDE/prefix.sh" | sed -n '1,/^cc /p' >"$GUIDE/rpath.sh"
    as_reader rpath.sh
    ends_with_usage "$GUIDE/lock"
    grep -v '/lock zk' "$GUIDE/prefix.sh" >"$GUIDE/path.sh"
    as_reader path.sh
    if "$GUIDE/lock" >"$TEMP/output" 2>&1 || ! grep -q 'libdivvy.so.*cannot open' "$TEMP/output"; then
        fail "the loader finds the library by itself: $(cat "$TEMP/output")"
    fi
    # The word before the program is the guide's.
    eval "ends_with_usage env $(sed -n 's|^\(LD_LIBRARY_PATH=.*\) \./lock .*|\1|p' "$GUIDE/prefix.sh") '$GUIDE/lock'"
}

# The native client's header without THREADED, before ours, is told as what it is.
check_native_header_first() {
    printf '#include <zookeeper/zookeeper.h>\n#include <divvy/zookeeper.h>\n' >"$TEMP/first.c"
    if "$CC" -fsyntax-only -I"$TEMP/prefix/include" "$TEMP/first.c" 2>"$TEMP/output"; then
        fail "THREADED is not asked for"
    fi
    grep -q 'compile with -DTHREADED' "$TEMP/output" || fail "it is not said what to do: $(cat "$TEMP/output")"
    quietly "$CC" -fsyntax-only -Wall -Werror -DTHREADED -I"$TEMP/prefix/include" "$TEMP/first.c"
}

# The command comes with the package, runs from there, and has its page.
check_command() {
    [[ $("$TEMP/prefix/bin/divvy" --version) == "divvy $VERSION" ]] || fail "the command says another version"
    [[ -s $TEMP/prefix/share/man/man1/divvy.1 ]] || fail "the command has no page"
    [[ -s $TEMP/prefix/share/divvy/divvy-lock.bash ]] || fail "the function for scripts is missing"
    for file in bash-completion/completions/divvy zsh/site-functions/_divvy fish/vendor_completions.d/divvy.fish; do
        [[ -s $TEMP/prefix/share/$file ]] || fail "the completion $file is missing"
    done
    for file in prometheus/divvy.rules.yml grafana/divvy.json; do
        [[ -s $TEMP/prefix/share/divvy/$file ]] || fail "$file is missing"
    done
}

# As a subfolder, it builds the library only, static if so wanted, and in few translation units if so wanted.
# DIVVY_INSTALL serves the next check.
check_subfolder() {
    write_project "$TEMP/subfolder" "set(DIVVY_BUILD_SHARED OFF)
set(CMAKE_UNITY_BUILD ON)
set(DIVVY_INSTALL ON)
add_subdirectory(\"$SOURCE\" divvy)"
    build_project "$TEMP/subfolder"
    runs "$TEMP/subfolder/build/program"
    [[ -z $(find "$TEMP/subfolder/build/divvy" -name 'libdivvy.so*' -o -name 'libdivvy_test*') ]] ||
        fail "as a subfolder it builds more than it was asked for"
    (($(find "$TEMP/subfolder/build/divvy" -name '*.o' | wc -l) <= 40)) || fail "it builds many translation units"
}

# A package that has the static library only gives divvy::divvy too, with all that it needs in turn.
check_find_package_static() {
    quietly cmake --install "$TEMP/subfolder/build" --prefix "$TEMP/static_prefix"
    [[ ! -e $TEMP/static_prefix/$LIBDIR/libdivvy.so ]] || fail "the static package has a shared library"
    check_static_library "$TEMP/static_prefix/$LIBDIR/libdivvy.a"
    write_project "$TEMP/static" 'find_package(divvy REQUIRED)'
    build_project "$TEMP/static" "$TEMP/static_prefix"
    runs "$TEMP/static/build/program"
    DIVVY_LIBEXEC=$TEMP/static_prefix/libexec/divvy${VERSION%%.*} WATCHED=1 runs "$TEMP/static/build/program"
    check_pkg_config "$TEMP/static_prefix"
}

install_build
check_shared_libraries
check_static_library "$TEMP/prefix/$LIBDIR/libdivvy.a"
check_find_package_shared
check_pkg_config "$TEMP/prefix"
check_pkg_config "$TEMP/prefix" --static
enter_guide
check_guide
check_guide_prefix
check_native_header_first
if [[ $(cached DIVVY_BUILD_TOOLS) == ON ]]; then check_command; fi
check_subfolder
check_find_package_static
