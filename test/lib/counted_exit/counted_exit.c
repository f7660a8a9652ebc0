/* _exit() for programs that count what they run: counted_exit.cmake. SPDX-License-Identifier: Apache-2.0 */

void __gcov_dump(void);

/* The linker's names of _exit(), and of what is called in its place. */
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

/* Writes down what was counted, and ends the process. */
_Noreturn void __wrap__exit(int status) {
    __gcov_dump();
    __real__exit(status);
}
