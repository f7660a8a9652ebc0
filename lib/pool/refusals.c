/* Why an errand is refused, and what it waits for. SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "pool/errand.h"

void dv_errand_refuse(dv_errand *e, int error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->result.text, sizeof e->result.text, format, arguments);
    va_end(arguments);
    e->result.error = error;
}

void dv_errand_wait_for(dv_errand *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->result.waits_for, sizeof e->result.waits_for, format, arguments);
    va_end(arguments);
}
