/**
 * @file partition.h
 * What a member of a pool owns: snapshots of it, and changes of it as on_items is told of them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * divvy_partitioner_partition() and divvy_partitioner_to_prepare() of partitioner.h make snapshots.
 */
#ifndef DIVVY_PARTITION_H
#define DIVVY_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "divvy/export.h"

DIVVY_EXTERN_C_BEGIN

/** kazoo's states. */
typedef enum {
    DIVVY_ALLOCATING, /**< the share is not complete yet; in incremental mode what is there may be worked on */
    DIVVY_ACQUIRED,   /**< the share is complete */
    DIVVY_RELEASE,    /**< items are revoked or, after the loss of a session, all are lost: stop work on all that is not
                           ours, wait until it has ended, then call divvy_partitioner_release_set() */
    DIVVY_FAILURE     /**< final: the session was lost, or see divvy_partitioner_failure() */
} divvy_partition_state;

/** The items that a member owned, or was to prepare, at one moment: immutable, reference-counted. Opaque. */
typedef struct divvy_partition divvy_partition;

/** The reason why items came or went. */
enum divvy_reason {
    DIVVY_REASON_MEMBERS,  /**< members joined or left */
    DIVVY_REASON_RELEASED, /**< the user released them */
    DIVVY_REASON_SUSPEND,  /**< a session event, with DIVVY_RELEASE_ON_SUSPEND */
    DIVVY_REASON_SESSION,  /**< the session was lost */
    DIVVY_REASON_FINISH,   /**< divvy_partitioner_finish() */
    DIVVY_REASON_TIMEOUT,  /**< allocate_timeout_ms passed */
    DIVVY_REASON_DENIED,   /**< credentials or access lists */
    DIVVY_REASON_FOREIGN,  /**< somebody else deleted a node of ours */
    /* The next reasons say why the pool has a new plan. DIVVY_REASON_MEMBERS: the pool has its first plan, or follows
     * plans again, a static member came back, or a round goes on with what an earlier plan began. */
    DIVVY_REASON_JOIN,     /**< a member joined */
    DIVVY_REASON_LEAVE,    /**< a member left: divvy_partitioner_leave() */
    DIVVY_REASON_LOSS,     /**< a member is gone: its session ended, or it finished */
    DIVVY_REASON_WEIGHT,   /**< a weight, a zone or an option is another */
    DIVVY_REASON_SET,      /**< the items are others */
    DIVVY_REASON_DRAIN,    /**< a weight became 0 */
    DIVVY_REASON_OPERATOR, /**< an operator asked for it: a pin, a move, a pause, an option; `divvy history` says who */
    DIVVY_REASON_LOAD      /**< loads were uneven */
};

/**
 * A change of what is owned, as given to on_items: the difference between what you were told last and what is true when
 * the call begins. Items that came and went before that are not told, so nothing is gained that is not owned at that
 * moment. The arrays live during the call. One item may be in `lost` and in `gained` of the same event: it was revoked,
 * released, and is ours again under the same token, or it went and came back under another. Handle `lost` first, then
 * `gained`, then the rest: an item that is gained may be leaving at once, and one that is lost may be prepared again.
 */
typedef struct {
    const char *const *gained;    /**< ours from now on */
    const int64_t *gained_tokens; /**< the fencing token of each */
    size_t gained_count;
    const char *const *revoked; /**< to be released by divvy_partitioner_release_set() */
    size_t revoked_count;
    /** No longer ours: released, or lost with the session. Also what was told as `prepare`, and is no longer needed. */
    const char *const *lost;
    size_t lost_count;
    int reason;          /**< DIVVY_REASON_* */
    uint64_t generation; /**< of the snapshot after this change */
    /** Still ours, until their next owners are ready. Go on working, but begin nothing that takes long. Later each is
     * told as `revoked`, `staying` or `lost`. */
    const char *const *leaving;
    size_t leaving_count;
    const char *const *staying; /**< told as `leaving` before, and ours to keep after all */
    size_t staying_count;
    /** With prepare_timeout_ms: not ours yet, but soon. Get ready to work on them without touching what their present
     * owners work on, and then call divvy_partitioner_prepared(). Later each is told as `gained`, perhaps before it is
     * prepared, or as `lost` when it is no longer needed. */
    const char *const *prepare;
    size_t prepare_count;
} divvy_items_event;

/**
 * Names a state as its constant does, without the prefix: "ALLOCATING". Ownership: static. Thread: any.
 * @return the name; "unknown" for any other number, never NULL
 */
DIVVY_API const char *divvy_partition_state_name(divvy_partition_state state);

/**
 * Names a reason of on_items as its constant does, without the prefix: "JOIN" for DIVVY_REASON_JOIN.
 * Ownership: static. Thread: any.
 * @return the name; "unknown" for any other number, never NULL
 */
DIVVY_API const char *divvy_reason_name(int reason);

/** Returns the number of items; 0 for NULL. */
DIVVY_API size_t divvy_partition_count(const divvy_partition *partition);
/** Returns the i-th item, sorted bytewise; lives as long as the snapshot. NULL past the end. */
DIVVY_API const char *divvy_partition_item(const divvy_partition *partition, size_t i);
/**
 * Returns the i-th item's fencing token, which grows strictly from owner to owner. Show it to what you work on.
 * @return 0 past the end, and for an item that is only to be prepared
 */
DIVVY_API int64_t divvy_partition_token(const divvy_partition *partition, size_t i);
/** Returns whether the i-th item is revoked: 1 or 0. */
DIVVY_API int divvy_partition_revoked(const divvy_partition *partition, size_t i);
/** Returns whether the i-th item is ours only until its next owner is ready: 1 or 0. */
DIVVY_API int divvy_partition_leaving(const divvy_partition *partition, size_t i);
/** Returns the snapshot's generation, which grows with every change. */
DIVVY_API uint64_t divvy_partition_generation(const divvy_partition *partition);
/** Returns whether the share does not fit the session's limits, so that items of it stay unowned: 1 or 0. */
DIVVY_API int divvy_partition_short(const divvy_partition *partition);
/** Releases a snapshot; NULL is allowed. */
DIVVY_API void divvy_partition_unref(divvy_partition *partition);

DIVVY_EXTERN_C_END

#endif
