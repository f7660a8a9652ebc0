/* Shared by the parent, the forker and the guardians. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_GUARDIAN_INTERNAL_H
#define DV_GUARDIAN_INTERNAL_H

#include <stdatomic.h>

#include "guardian.h"

/* Both are one message on the guardian's socket: dv_guardian_event to us, this to the guardian. */
typedef enum { DV_ORDER_SIGNAL, DV_ORDER_END, DV_ORDER_CONTINUE } dv_order_kind;

typedef struct {
    dv_order_kind kind;
    int64_t value; /* the signal, or the grace in ms */
} dv_order;

/* In memory that all share. It is set by us only. */
typedef struct {
    _Atomic(int64_t) deadline_ms;
} dv_guardian_page;

/* A command as it was asked for; with pointers into `packed` once it has come to the forker. */
typedef struct {
    dv_guardian_config config;
    char *packed; /* mapped */
    size_t packed_bytes;
} dv_guardian_spec;

/* The descriptors that come to the forker with a command: the spec, the guardian's socket, and start_fd if any. */
enum { DV_GUARDIAN_FDS = 2, DV_GUARDIAN_FDS_MAX = 3 };

/* Writes `config` with all it points to into a file in memory. Returns its descriptor, or -1 with errno set. */
int dv_guardian_pack(const dv_guardian_config *config);

/* The inverse. Returns 0, or -1 with errno set. Release *out with dv_guardian_spec_free(). */
int dv_guardian_unpack(int fd, dv_guardian_spec *out);
void dv_guardian_spec_free(dv_guardian_spec *spec);

/* The life of the forker; `control` is its socket to us, `home_group` our process group. Does not return. */
_Noreturn void dv_forker_run(int control, dv_guardian_page *page, pid_t home_group);

/* The life of a guardian; `socket` is its own to us. All signals are blocked. Does not return. */
_Noreturn void dv_guardian_run(int socket, dv_guardian_page *page, pid_t home_group, const dv_guardian_config *config);

#endif
