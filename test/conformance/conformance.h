/* One script, two worlds: what sessions are told by a real ensemble, and by the in-memory one.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both worlds are driven through the seam (lib/znode/znode.h), by the same commands in the same order. The log holds
 * all that each session is told, replies, watch events and news of the session alike, in that order. After each round
 * the two lists of each session must be the same, with these liberties:
 *  - a zxid is compared by its rank: those of one world stand to one another as those of the other;
 *  - a time is compared by its zxid: what one transaction wrote has one time;
 *  - the id of a session is its number in the order of their beginning;
 *  - children are sorted, for the servers promise no order;
 *  - watch events that follow one another are sorted where a session has ended or come back, for then the servers
 *    take nodes and watches in the order of a hash table.
 *
 * So that nothing depends on chance, writes of two sessions are never under way together, and a round ends with a write
 * on every other session that is connected: its answer comes behind all that the round's writes had to tell it.
 * Concurrency is not compared: which of two writes comes first, how old a follower's read may be (unit.ensemble_random
 * checks the bounds of both), and what pending requests come to when their connection breaks.
 *
 * A trace rests on a premise: real sessions end, and lose their connection, only where the script says so. On a machine
 * that stands still for a session's timeout that is not so. Then the trace proves nothing, and is played again on new
 * servers, three times at most; the last one counts as a difference. A trace in which both worlds say the same needs no
 * premise, and a difference without a surprise is final at once. */
#ifndef DV_CONFORMANCE_H
#define DV_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client/client.h"
#include "divvy/testing.h"
#include "testing/prng.h"
#include "znode/znode.h"

enum {
    WORLDS = 2,
    SERVERS_MAX = 3,
    SEATS = 4,
    CONTROL = SEATS,
    WATCHES = 32,
    BATCH_MAX = 24,
    OPS_MAX = 16,
    MARKS_MAX = 3 * OPS_MAX
};

/* ---- what a session was told ---- */

typedef struct {
    int64_t zxid;
    int64_t time_ms; /* that the transaction's time is known to be; -1: nothing said */
} mark;

typedef struct {
    char *text;
    bool is_watch;
    size_t mark_count;
    mark *marks;
} told;

typedef struct {
    told *items;
    size_t count, room;
} told_list;

void told_list_clear(told_list *list);
told *told_list_add(told_list *list, const char *text, const mark *marks, size_t mark_count);

/* ---- worlds and the sessions in them ---- */

typedef struct world world;
typedef struct seat seat;

typedef struct {
    dv_watch watch; /* first */
    seat *seat;
} watch_place;

/* A session's place; one that ended is followed by another in the same seat. */
struct seat {
    world *world;
    int number;
    divvy_client *client; /* NULL: empty */
    dv_listener listener;
    watch_place watches[WATCHES];
    told_list log;
    unsigned outstanding;
    int last_error;                             /* of a command that is not written down */
    bool cut;                                   /* the script has broken its link */
    bool doomed;                                /* the script has ended its session, and it has not heard so */
    struct dv_test_proxy *proxies[SERVERS_MAX]; /* to each server, of a mortal session */
};

/* The configuration of a session; the same in both worlds. */
typedef struct {
    int server;
    bool mortal; /* its link can be cut, and it can be expired */
    int acl;
    const char *auth;
} session_plan;

typedef struct {
    void (*open)(seat *s, const session_plan *plan);
    void (*pump)(seat *s); /* lets something happen */
    void (*cut)(seat *s);
    void (*restore)(seat *s, int server); /* to that one only */
    bool (*expire)(seat *s);              /* whose link is cut; false: the session was gone already */
    void (*leave)(seat *s);               /* it was closed */
    void (*destroy)(world *w);
} world_calls;

struct world {
    const char *name;
    const world_calls *calls;
    int index;   /* 0 or 1 */
    int release; /* a divvy_testing_release */
    char version[32];
    int servers;
    seat seats[SEATS + 1]; /* the last one is control's, whose commands are not compared */
    int64_t *session_ids;  /* by number, from 1 */
    size_t session_count;
    divvy_testing_ensemble *ensemble;
    struct dv_test_server *server;
    char surprise[64]; /* what befell a session first that the script did not order; "": nothing */
};

/* Remembers that something befell a session that the script did not order. */
void world_surprise(const seat *s, const char *what);

extern int world_session_timeout_ms;

void world_begin_real(world *w, int servers);
/* `like` is the world that it is to be the same as; NULL: the default. */
void world_begin_memory(world *w, int servers, uint64_t seed, const world *like);
void world_end(world *w);
/* Lets things happen until `met`, on all sessions whose link is up. Ends the program when that takes too long. */
void world_await(seat *s, bool (*met)(const seat *s), const char *what);
bool is_settled(const seat *s);
bool is_connected(const seat *s);

/* ---- commands (session.c) ---- */

typedef struct {
    unsigned number; /* 0: not written down */
    bool is_multi;
    size_t count;
    dv_op ops[OPS_MAX]; /* paths and data live until the round is over */
    int watch;          /* index of a place; -1: none */
} command;

void session_listen(seat *s);
void session_close(seat *s);
void session_submit(seat *s, const command *c);
/* A write that changes nothing; sent, or until it is answered. */
void session_barrier_send(seat *s);
void session_run(seat *s, const command *c);
/* The session's number in its world; a new one is given the next. */
size_t session_number(world *w, int64_t id);

/* ---- comparing (compare.c) ---- */

/* Compares what both worlds have said of one seat. False: something differs, which has been printed. */
bool compare_logs(world worlds[WORLDS], int seat_number, bool sorted);
void compare_free(void);
size_t compared_count(void); /* entries */

/* ---- the script (script.c) ---- */

enum { KNOWN = 24, PATH_BYTES = 96, BLOCKS_MAX = BATCH_MAX * OPS_MAX * 2 };

typedef struct {
    dv_mem_prng prng;
    char root[32];
    struct {
        char path[PATH_BYTES];
        int32_t version;
    } known[KNOWN]; /* paths that replies have told of, with the version that they had */
    unsigned known_next;
    int watch_next[SEATS];
    void *blocks[BLOCKS_MAX]; /* what the commands of a round point to */
    size_t block_count;
} script;

void script_begin(script *s, uint64_t seed);
int64_t script_between(script *s, int64_t min, int64_t max);
bool script_chance(script *s, int percent);
void script_command(script *s, int seat_number, command *c, bool reads_only);
void script_free_round(script *s);
/* Learns from the first world's replies, which the script goes by. */
void script_learn(const char *path, int32_t version);
extern script *script_learning;

/* ---- traces (trace.c) ---- */

typedef enum {
    TRACE_SAME,
    TRACE_DIFFERS,
    TRACE_VOID /* something differs, and so did the premise: see the first world's `surprise` */
} trace_end;

typedef struct {
    unsigned rounds;
    bool verbose;
    int stall_ms; /* how long to stand still in the middle of the trace; 0: not at all */
} trace_plan;

/* Runs one trace of about so many rounds. */
trace_end trace_run(world worlds[WORLDS], uint64_t seed, const trace_plan *plan);
extern size_t trace_operations, trace_sessions;

/* ---- what has been met (coverage.c) ---- */

void coverage_note(const char *what, int error);
/* Returns how many of the required situations were not met; and prints them. */
unsigned coverage_missing(int release);
void coverage_print(void);

/* ---- differences on purpose (breakage.c) ---- */

typedef enum {
    BREAK_NOTHING,
    BREAK_ERROR,
    BREAK_MULTI_ERROR,
    BREAK_NAME,
    BREAK_DATA,
    BREAK_CHILD,
    BREAK_VERSION,
    BREAK_OWNER,
    BREAK_DATA_BYTES,
    BREAK_CHILDREN,
    BREAK_CZXID,
    BREAK_MZXID,
    BREAK_PZXID,
    BREAK_TIME,
    BREAK_WATCH_LOST,
    BREAK_WATCH_TWICE,
    BREAK_WATCH_KIND,
    BREAK_WATCH_LATE,
    BREAK_NEWS,
    BREAKAGES
} breakage;

extern breakage breakage_now; /* in force in the second world */
const char *breakage_name(breakage b);
/* Returns whether to break here, now. */
bool breaks(const world *w, breakage b);
void breakage_reset(void);
unsigned breakage_count(void);

#endif
