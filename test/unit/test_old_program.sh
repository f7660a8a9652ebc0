#!/bin/bash
# A program that was built with an older release runs with these libraries: test/abi/old_program.c, with configurations
# as headers have them whose structs lack their last fields. SPDX-License-Identifier: Apache-2.0
#
# usage: test_old_program.sh BUILD_FOLDER
set -euo pipefail

BUILD=$(realpath -- "$1")
SOURCE=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
readonly BUILD SOURCE
TEMP=$(mktemp -d)
readonly TEMP
trap 'rm -rf -- "$TEMP"' EXIT
trap 'exit 143' HUP INT TERM

fail() {
    printf 'test_old_program: %s\n' "$*" >&2
    exit 1
}

# cached NAME: the value that the build has in CMake's cache.
cached() {
    sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt"
}

# sizes INCLUDE_FOLDER: those of the structs that old_headers has cut, a line each.
sizes() {
    {
        printf '#include <divvy/divvy.h>\n#include <divvy/testing.h>\n#include <stdio.h>\nint main(void) {\n'
        sed 's/.*/    printf("%zu\\n", sizeof(&));/' "$TEMP/structs"
        printf '}\n'
    } >"$TEMP/sizes.c"
    "$CC" -I"$1" -o "$TEMP/sizes" "$TEMP/sizes.c"
    "$TEMP/sizes"
}

# Each struct is shorter in the older headers, also where a field went into padding.
check_shorter() {
    local name older newer
    sizes "$TEMP/include" >"$TEMP/older"
    sizes "$SOURCE/include" >"$TEMP/newer"
    while read -r name older newer; do
        ((older < newer)) || fail "$name has $older bytes in the older headers, and $newer in ours"
    done < <(paste "$TEMP/structs" "$TEMP/older" "$TEMP/newer")
}

CC=$(cached CMAKE_C_COMPILER)
sanitize=$(cached DIVVY_SANITIZE)
libraries=("$BUILD/lib/testing/libdivvy_testing.so" "$BUILD/lib/libdivvy.so" -lcjson)
if [[ $(cached DIVVY_BUILD_SHARED) == OFF ]]; then
    libraries=("$BUILD/lib/testing/libdivvy_testing.a" "$BUILD/lib/libdivvy.a" -lzookeeper_mt -lcjson -pthread)
fi
"$SOURCE/test/abi/old_headers" "$TEMP/include" >"$TEMP/structs"
[[ $(wc -l <"$TEMP/structs") -ge 8 ]] || fail "old_headers has cut these structs only: $(cat "$TEMP/structs")"
check_shorter
"$CC" -std=c11 -Wall -Wextra -Werror ${sanitize:+-fsanitize=$sanitize} -I"$TEMP/include" -o "$TEMP/program" \
    "$SOURCE/test/abi/old_program.c" "${libraries[@]}"
LD_LIBRARY_PATH=$BUILD/lib:$BUILD/lib/testing "$TEMP/program"
