/* Shared by the files of the chaos test's driver, which runs an ensemble and members, and makes faults.
 * SPDX-License-Identifier: Apache-2.0
 *
 * It writes a log of its own, in times of CLOCK_BOOTTIME as the members do (member.h):
 *   O time wall            the wall clock then, in milliseconds; the servers' transactions have times of that one
 *   M time member log      a process of this member begins, and writes there
 *   F time begin|end kind target
 *   K time log             the process that writes there was killed
 *   S time log, G time log it was stopped by SIGSTOP, and goes on
 *   X time session         from now on somebody ends this session by force
 *   Y time log text        it has ended by itself, and should not have
 *   A time bound           all faults are off, the servers commit; within so many milliseconds all is to be well
 *   Z time stall           the quiet time is over; for so many milliseconds of it we, or the servers, stood still
 *   I time                 the user has interrupted the round, which may show nothing
 *   T session_ms tick_ms sync_ticks */
#ifndef CHAOS_H
#define CHAOS_H

#include "lib/probe.h"
#include "lib/proxy.h"
#include "lib/quorum.h"
#include "lib/server.h"
#include "lib/wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum {
    CHAOS_MEMBERS = 4,
    CHAOS_SERVERS = DV_TEST_QUORUM_SERVERS,
    CHAOS_SESSION_MS = 3000,
    CHAOS_TICK_MS = 200,
    CHAOS_SYNC_TICKS = 10,      /* shorter than a session, or */
    CHAOS_SYNC_TICKS_LONG = 25, /* longer: a follower that was cut off serves sessions that have expired */
    CHAOS_JUMPING_MEMBER = 1,   /* has a wall clock that jumps */
    CHAOS_PATH_BYTES = 512,
};

typedef struct {
    pid_t pid; /* 0: none runs */
    unsigned generation;
    char log[64]; /* the file's name */
    dv_test_proxy *proxies[CHAOS_SERVERS];
} chaos_process;

typedef struct {
    dv_test_quorum *quorum;
    dv_test_server *server;
    dv_test_probe *probe;
    chaos_process members[CHAOS_MEMBERS];
    char dir[CHAOS_PATH_BYTES / 2]; /* of all logs */
    int log_fd;
    uint64_t random;
    bool has_wall_clock, has_mounts;
    bool certificate_is_next; /* over TLS: the members' certificate is not the first one */
    int sync_ticks;
    const char *mutant; /* the bug that members have, or NULL */
    unsigned disks;     /* that were full, and whose data are kept beside the logs */
    pthread_t monitor;
    atomic_bool monitor_stops;
    atomic_llong stall_ms;
} chaos;

/* ---- chaos.c ---- */

extern volatile int chaos_interrupted;

int64_t chaos_now_ms(void);
int chaos_random(chaos *c, int below);
__attribute__((format(printf, 2, 3))) void chaos_note(chaos *c, const char *format, ...);
/* Sleeps, watches the members meanwhile, and returns early when we are interrupted. */
void chaos_wait(chaos *c, int64_t ms);

/* ---- members.c ---- */

void chaos_member_start(chaos *c, int member);
/* Returns whether the partitioner of its process has once had its share. */
bool chaos_member_has_share(const chaos *c, int member);
/* Has any one want many more items, or as few as before. */
void chaos_member_shift(chaos *c);
/* SIGKILL. */
void chaos_member_kill(chaos *c, int member);
/* SIGTERM, and waits for its end. */
void chaos_member_end(chaos *c, int member);
/* Notes which have ended by themselves, and starts them again. */
void chaos_members_watch(chaos *c);
/* Sets the wall clock of CHAOS_JUMPING_MEMBER off the true time. */
void chaos_wall_clock_set(const chaos *c, int64_t offset_s);

/* ---- certificates.c ---- */

/* Over TLS, has members that start from now on use certificates in the round's folder. */
void chaos_certificates_give(chaos *c);

/* ---- faults ---- */

enum chaos_class { CHAOS_OF_SERVERS, CHAOS_OF_MEMBERS, CHAOS_OF_LINKS };

struct chaos_fault;

typedef struct {
    const char *name;
    enum chaos_class class;
    int least_ms, most_ms; /* how long it lasts */
    void (*begin)(chaos *c, struct chaos_fault *fault);
    void (*end)(chaos *c, struct chaos_fault *fault);
    bool alone;                          /* at one time with no other */
    bool (*is_possible)(const chaos *c); /* NULL: always */
} chaos_kind;

typedef struct chaos_fault {
    const chaos_kind *kind;
    int target; /* the member, from 0, or the server, from 1 */
    int other;
} chaos_fault;

/* Each up to one without a name. */
extern const chaos_kind chaos_server_kinds[], chaos_member_kinds[], chaos_link_kinds[], chaos_certificate_kinds[];

/* Lets go of a disk that is mounted, if there is one. Safe in a signal handler. */
void chaos_unmount(void);

#endif
