/**
 * @file partitioner_config.h
 * The configuration of a member of a pool, for divvy_partitioner_create() of partitioner.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DIVVY_PARTITIONER_CONFIG_H
#define DIVVY_PARTITIONER_CONFIG_H

#include "divvy/assign.h"
#include "divvy/partition.h"

DIVVY_EXTERN_C_BEGIN

/** One member's part in a pool. Opaque. */
typedef struct divvy_partitioner divvy_partitioner;

enum {
    DIVVY_INCREMENTAL, /**< only what must move is revoked */
    DIVVY_EAGER        /**< kazoo's: at the first sign of a change everything is revoked; items come all at once */
};

/** The rule that computes the target. Members with different choices meet at the least of them: docs/protocol.md,
 * P3. */
enum {
    DIVVY_ASSIGN_AUTO, /**< the best that all members can: the sticky plan, if all have this choice or the next */
    DIVVY_ASSIGN_ROUND_ROBIN, /**< kazoo's rule, divvy_assign_round_robin() */
    DIVVY_ASSIGN_RENDEZVOUS,  /**< divvy_assign_rendezvous() */
    DIVVY_ASSIGN_STICKY, /**< in this release the same as DIVVY_ASSIGN_AUTO. A plan in path/plan says who owns what;
                              a change of the pool moves as little of it as possible */
    DIVVY_ASSIGN_FUNC    /**< the function in the config, which all members must have */
};

/** The behaviour when the connection is lost while the session may live on. */
enum {
    DIVVY_HOLD,              /**< keep what is owned, up to the session's deadline */
    DIVVY_RELEASE_ON_SUSPEND /**< kazoo's: every session event revokes everything */
};

/** The behaviour when the session is lost. */
enum {
    DIVVY_FAIL,  /**< DIVVY_FAILURE, as kazoo */
    DIVVY_REJOIN /**< DIVVY_RELEASE with all items lost already, a new state_id even in DIVVY_RELEASE; after
                      divvy_partitioner_release_set() the member takes part again, on the client's next session */
};

/**
 * An own rule of assignment. It marks in `mine` the items of the member `identifier`. The same arguments must give the
 * same result in every process, and each item must go to exactly one member.
 *
 * Thread: called with the client lock held, so it must not call divvy functions.
 * @param members sorted bytewise, `identifier` among them (equal ones are given once for each); items sorted bytewise
 * @param mine    [out] item_count bytes, zeroed; set to 1 for each item that is mine
 * @return 0; anything else makes the partitioner fail
 */
typedef int (*divvy_partition_func)(const char *identifier, const char *const *members, size_t member_count,
                                    const char *const *items, size_t item_count, uint8_t *mine, void *user);

/** The configuration of a member. Initialise with one of the two INIT macros; copied by divvy_partitioner_create(). */
typedef struct {
    size_t size;                 /**< sizeof of this struct, set by the INIT macros */
    const char *path;            /**< absolute; nodes go under path/party and path/locks */
    const char *const *items;    /**< at least one, no empty, no repeated one; up to 1,000,000 */
    size_t item_count;           /**< how many */
    const char *identifier;      /**< NULL: host-pid-number. Up to 512 bytes that may stand in a node's name */
    int mode;                    /**< DIVVY_INCREMENTAL, DIVVY_EAGER */
    int assign;                  /**< DIVVY_ASSIGN_* */
    divvy_partition_func func;   /**< with DIVVY_ASSIGN_FUNC */
    const char *func_name;       /**< a name for `func`, by which members see whether theirs is the same; NULL: "" */
    int items_order;             /**< in which order round robin deals the items out, so where kazoo members are in the
                                    pool: DIVVY_ORDER_BYTES, or DIVVY_ORDER_NUMERIC where theirs are integers. The same
                                    in all members */
    int64_t time_boundary_ms;    /**< for how long the party must stand still before a join counts; 0 is legal */
    int64_t leave_boundary_ms;   /**< the same when members only left; -1: as time_boundary_ms */
    int64_t settle_max_ms;       /**< a party that never stands still counts after this; 0: 4 x the larger boundary */
    int64_t allocate_timeout_ms; /**< DIVVY_FAILURE when ALLOCATING lasts longer; 0: never */
    int64_t release_warn_ms;     /**< DIVVY_WARN_SLOW_RELEASE when RELEASE lasts longer, and each time that it has
                                       lasted twice as long. Others wait until it ends. Default: 10 s; 0: never */
    int on_suspend;              /**< DIVVY_HOLD, DIVVY_RELEASE_ON_SUSPEND */
    int on_session_loss;         /**< DIVVY_FAIL, DIVVY_REJOIN */
    /* The next six count where a plan decides (DIVVY_ASSIGN_AUTO, all members can), and are ignored where kazoo or
     * older members make the pool go by names. */
    /** The share, in proportion to that of others; 1000 is usual. A member of weight 0 gets no items, unless all
     * members weigh 0. The weight counts when the member is new to the plan, and when a static member comes back with
     * a different weight. A weight from divvy_partitioner_set_weight() outlives a static member's restart; then
     * DIVVY_WARN_WEIGHT says so. */
    uint32_t weight;
    const char *zone; /**< items are spread evenly over the zones that members name, then inside each. NULL: none;
                                  members without one form a zone together. Up to 512 bytes of UTF-8 */
    /** At most so many items are taken from living members in one round; 0: no limit. The next round begins when the
     * new owners hold them all. The plan keeps the number of the pool's first member. It takes a new number when
     * all live members are configured with that. Members with another number are warned (DIVVY_WARN_ASSIGN_DIFFERS). */
    size_t max_moves;
    /** With max_moves: a round ends after this time even if new owners do not hold all of its items. Default: a minute.
     * The plan keeps it, as it does max_moves. Set it above handover_timeout_ms (DIVVY_WARN_ROUND). */
    int64_t round_timeout_ms;
    /** With static_membership: for how long this member's items wait for it when it is gone; 0: not at all. Members
     * that join during that time are warned (DIVVY_WARN_ABSENT). */
    int64_t rejoin_delay_ms;
    /** 1: the identifier, which must be given, is this member's for good. A process that comes back with it takes over
     * the member's place in the plan, with all items. Of live ones only the one that was created last counts, even
     * if an older one comes back later. The others hand over all, and get nothing more (DIVVY_WARN_FENCED). */
    int static_membership;
    /** States that have come and gone before the call begins are left out: `from` is always what you were told last. */
    void (*on_state)(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user);
    /** Items came or went: the difference from what you were told last, before the on_state of the same change. */
    void (*on_items)(divvy_partitioner *p, const divvy_items_event *event, void *user);
    void (*on_destroyed)(void *user); /**< the last callback: everything of the partitioner is gone */
    void *user;                       /**< handed to the callbacks and to `func`; not copied */
    /* The next two count where a plan decides, in incremental mode. */
    /** For how long this member keeps an item that a plan gives to another, while that one gets ready. Then the item is
     * revoked all the same. Default: 30 s; 0: no handovers, neither to others nor from them. */
    int64_t handover_timeout_ms;
    /** For how long the user may prepare for an item while its present owner goes on. Then this member asks for it,
     * prepared or not. The owner waits no longer than its own handover_timeout_ms, so stay below that. An item that
     * nobody can hand over, as its owner has crashed, is asked for at once, and may be gained before it is prepared.
     * What kazoo's members had when the last of them left is prepared for first, and has no owner until then.
     * 0, the default: `prepare` is not told, and no item waits for it. */
    int64_t prepare_timeout_ms;
    /* The next three are about loads, as divvy_partitioner_set_load() tells them. */
    /** The unit of this member's loads: 1 to 16 of A-Z, a-z, 0-9, "_", "/", "%", ".", "-". NULL: "load". A pool has
     * one; what members tell in another is passed over (DIVVY_WARN_LOAD_UNIT). */
    const char *load_unit;
    /** At most so often a member tells its loads, and the pool's first member reads them: 1 s to 1 h. Default: 10 s. */
    int64_t load_interval_ms;
    /** Nothing is moved for load while the loads of the members are below this in the mean. That of the member that
     * reads them counts: the pool's first. Default: 0. */
    double load_floor;
    /* The next four count where a plan decides. */
    /** The tags of this member, which items may need, separated by commas: up to 16, each of 1 to 64 of A-Z, a-z, 0-9,
     * "_", ".", "-". NULL: none. */
    const char *tags;
    size_t item_cap; /**< this member takes at most so many items; what nobody has room for waits. 0: no limit */
    /** No first plan is written before so many members have settled, or min_members_wait_ms have passed since this one
     * settled first. Up to 10,000; 0 and 1: the first member begins. The same holds where a plan has no live member
     * left. */
    size_t min_members;
    int64_t min_members_wait_ms; /**< Default: a minute */
} divvy_partitioner_config;

#define DIVVY_PARTITIONER_CONFIG_INIT                                                                                 \
    {                                                                                                                 \
        sizeof(divvy_partitioner_config), NULL, NULL, 0, NULL, DIVVY_INCREMENTAL, DIVVY_ASSIGN_AUTO, NULL, NULL,      \
            DIVVY_ORDER_BYTES, 1000, -1, 0, 0, 10000, DIVVY_HOLD, DIVVY_FAIL, 1000, NULL, 0, 60000, 0, 0, NULL, NULL, \
            NULL, NULL, 30000, 0, NULL, 10000, 0, NULL, 0, 0, 60000                                                   \
    }

/** As kazoo's SetPartitioner behaves: eager, everything released on session events, a boundary of 30 s, round robin. */
#define DIVVY_PARTITIONER_CONFIG_KAZOO                                                                                \
    {                                                                                                                 \
        sizeof(divvy_partitioner_config), NULL, NULL, 0, NULL, DIVVY_EAGER, DIVVY_ASSIGN_ROUND_ROBIN, NULL, NULL,     \
            DIVVY_ORDER_BYTES, 30000, -1, 0, 0, 10000, DIVVY_RELEASE_ON_SUSPEND, DIVVY_FAIL, 1000, NULL, 0, 60000, 0, \
            0, NULL, NULL, NULL, NULL, 30000, 0, NULL, 10000, 0, NULL, 0, 0, 60000                                    \
    }

/**
 * Writes the defaults of DIVVY_PARTITIONER_CONFIG_INIT to *config, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param config [out] caller's memory; NULL: does nothing
 * @param size   sizeof *config, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_partitioner_config_init(divvy_partitioner_config *config, size_t size);

/** Writes the defaults of DIVVY_PARTITIONER_CONFIG_KAZOO to *config; otherwise as divvy_partitioner_config_init(). */
DIVVY_API void divvy_partitioner_config_init_kazoo(divvy_partitioner_config *config, size_t size);

DIVVY_EXTERN_C_END

#endif
