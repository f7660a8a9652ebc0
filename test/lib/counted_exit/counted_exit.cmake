# Included by the preset `coverage`. SPDX-License-Identifier: Apache-2.0
#
# A guardian and what it has forked end by _exit(), which forgets what gcc has counted. Each program calls
# counted_exit.c in its place.
set(counted_exit "${PROJECT_BINARY_DIR}/counted_exit.o")
execute_process(COMMAND "${CMAKE_C_COMPILER}" -c "${CMAKE_CURRENT_LIST_DIR}/counted_exit.c"
  -o "${counted_exit}" COMMAND_ERROR_IS_FATAL ANY)
add_link_options("${counted_exit}" -Wl,--wrap=_exit)
