/* Shared by the parent, the forker and the guardians. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_GUARDIAN_INTERNAL_H
#define DV_GUARDIAN_INTERNAL_H

#include <stdatomic.h>

#include "guardian.h"
#include "zookeeper/watcher.h"

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

/* The forker's view of its parent. */
typedef struct {
    int control;      /* its socket to us */
    int watch;        /* the one by which it is told of our session; -1: none */
    int process;      /* our pidfd; -1: none */
    pid_t home_group; /* our process group */
    dv_guardian_page *page;
} dv_forker_config;

/* The life of the forker. Does not return. */
_Noreturn void dv_forker_run(const dv_forker_config *config);

/* The part that all guardians of a forker have in common. */
typedef struct {
    dv_guardian_page *page;
    pid_t home_group;    /* of the parent */
    dv_watcher *watcher; /* G10: where the forker has become the guardian; else NULL */
} dv_guardian_home;

/* The life of a guardian; `socket` is its own to us. All signals are blocked. Does not return. */
_Noreturn void dv_guardian_run(int socket, const dv_guardian_home *home, const dv_guardian_config *config);

/* G10: nothing is left of what ran under the parent. Waits for its end where there is a session to be ended, and ends
 * it. NULL is fine. */
void dv_guardian_keep_watch(dv_watcher *watcher);

#endif
