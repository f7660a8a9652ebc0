/* The main() of a program that only has tests. SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

int main(void) {
    return dv_test_run();
}
