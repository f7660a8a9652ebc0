/* A pool as it stands: its members, its items, and who owns what. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_STATUS_POOL_H
#define DV_STATUS_POOL_H

#include "item_list.h"
#include "look.h"
#include "pool_plan.h"
#include "pool_rules.h"

#define DV_NO_MEMBER SIZE_MAX

struct dv_status_entry;

typedef struct {
    char *node;             /* its name in the party */
    const char *identifier; /* inside it */
    bool kazoo;
    char *host;  /* "" where nothing is said of it, as by kazoo */
    int64_t pid; /* 0 likewise */
    char *since; /* UTC, "2026-01-31T12:00:00Z": by its own word, else by its node */
    int64_t session, made_ms, czxid, first_czxid;
    size_t item_count;
    size_t path_bytes; /* of its places: dv_status_room_count() */
    bool follows;      /* it follows plans */
    bool can_balance;  /* it knows of loads, wishes, tags and caps */
    bool is_static;    /* by its own word, as are the next three */
    uint32_t weight;
    char *zone;
    char *tags;   /* "": none */
    uint32_t cap; /* 0: none */
    int64_t rejoin_delay_ms;
    const struct dv_status_entry *entry; /* in the plan; NULL: none */
    bool fenced;                         /* another one has taken its place in the plan */
    size_t releasing;                    /* items that it holds, and that the plan gives to another or to nobody */
} dv_status_member;

/* A member of the plan. */
typedef struct dv_status_entry {
    const dv_plan_member *entry;
    size_t member; /* the live one that it is, or DV_NO_MEMBER */
    size_t item_count;
} dv_status_entry;

typedef struct {
    char *name;
    char *node;     /* its directory's name; with slashes where kazoo nested it */
    bool expected;  /* it is one of dv_status.expected, or the plan gives it to nobody */
    bool there;     /* it has a directory */
    bool denied;    /* which may not be read */
    bool nested;    /* it was found inside another's directory */
    bool looked;    /* so was what is inside of its own */
    char *head;     /* the node that is first in its queue; NULL: there is none */
    size_t waiting; /* nodes behind it */
    char *owner;    /* NULL: nobody. The member's identifier, or what is known of one that is not in the party */
    size_t member;  /* DV_NO_MEMBER: nobody, or not in the party */
    int64_t token, made_ms;
    int64_t session; /* of `head` */
    int64_t pzxid;   /* of the directory when its children were read */
    const struct dv_status_entry
        *planned; /* whose it is by a plan in force; NULL: nobody's, or there is no such plan */
} dv_status_item;

typedef struct {
    const char *path;             /* as it was given */
    const dv_item_list *expected; /* items that there should be; NULL: not known */
    bool only_expected;           /* others are not looked at */
    bool skip_denied;             /* items that may not be read are passed over */
    bool owners_by_name;          /* a place of a divvy member is not read: its name tells whose it is (N5), but neither
                                     the token nor the age is known */
    dv_pool_plan *plan;           /* to be read, too; NULL: not to be */
    bool found;                   /* there is a pool at `path` */
    dv_status_member *members;    /* sorted by identifier, bytewise, then by node */
    size_t member_count;
    size_t stray_count;    /* children of the party that are no members */
    char *stray;           /* the name of one of them */
    dv_status_item *items; /* sorted by name, bytewise: those with a directory, and the expected ones */
    size_t item_count;
    size_t empty_count;           /* directories inside of others' that nobody owns: they are left out */
    size_t denied_count;          /* of the items, those that were passed over: nobody seems to own them */
    size_t least_load, most_load; /* of all members; 0 when there are none */
    dv_status_entry *entries;     /* of the plan, if there is one that can be followed */
    size_t entry_count;
    bool in_force;       /* all members follow it */
    dv_pool_rules rules; /* of that plan */
    int64_t read_at_ms;  /* by the wall clock */
} dv_status;

/* For dv_look_at(): fills in all but the first six members of the dv_status at `context`. Its former contents are
 * freed. */
int dv_status_pool_read(dv_look *look, void *context);

/* Whose a place in a queue is: the member with its session, of several on one session the one whose identifier is what
 * its node says (*name). *name, malloc'ed, becomes the member's identifier; or stays what the node says; or is the
 * session. *member is DV_NO_MEMBER where it is not in the party. 0 or DIVVY_ENOMEM. */
int dv_status_name_owner(const dv_status *status, int64_t session, char **name, size_t *member);

/* All but these. */
void dv_status_pool_clear(dv_status *status);

#endif
