/* What a test and the program death_watch_member say to each other. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_DEATH_WATCH_MEMBER_H
#define DV_TEST_DEATH_WATCH_MEMBER_H

enum {
    DV_MEMBER_TICK_MS = 100,
    DV_MEMBER_TEXT_MAX = 1024,
    DV_MEMBER_METRICS_MAX = 64 * 1024,
    DV_MEMBER_CONTROL_FD = 20,
    DV_MEMBER_PIPE_FD = 21 /* a pipe that it has inherited, and that programs it starts would inherit */
};

#define DV_MEMBER_AUTH "u:sesame"

/* Letters of its options. */
enum {
    DV_MEMBER_IGNORES_CHILDREN = 'i',
    DV_MEMBER_REAPS_ALL = 'r',
    DV_MEMBER_CLOSED_STDIO = 'c',
    DV_MEMBER_LITTLE_MEMORY = 'm',
    DV_MEMBER_CREDENTIALS = 'd',
    DV_MEMBER_TWO_CLIENTS = '2'
};

typedef enum {
    DV_ORDER_KILL = 'k',
    DV_ORDER_SEGMENTATION = 's',
    DV_ORDER_ABORT = 'a',
    DV_ORDER_EXIT = 'e',
    DV_ORDER_EXEC = 'x',
    DV_ORDER_EXEC_BY_THREAD = 'X',
    DV_ORDER_END_FIRST_THREAD = 't', /* another takes orders since, and answers "another" */
    DV_ORDER_FORK = 'f',             /* a child that goes on; answers with its pid */
    DV_ORDER_CLOSE = 'c',            /* all clients; answers "closed" */
    DV_ORDER_CLOSE_FIRST = '1',      /* of two clients */
    DV_ORDER_CHILDREN = 'n',         /* answers "none" or "some" */
    DV_ORDER_CLOSE_PIPE = 'p',       /* answers "closed" */
    DV_ORDER_METRIC = 'm',           /* answers with the value of divvy_death_watch */
    DV_ORDER_HELD = 'h',             /* answers "held" or "not held" */
    DV_ORDER_HOLD_AGAIN = 'w'        /* answers as at the beginning, "held SESSION" */
} dv_order;

#endif
