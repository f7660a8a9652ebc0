/**
 * @file zookeeper.h
 * divvy inside a program that uses the Apache ZooKeeper C client itself: clients on the program's own session, and
 * guards for its own transactions. SPDX-License-Identifier: Apache-2.0
 *
 * The one header of divvy that includes the native client's, so divvy.h does not include it. Programs that use it are
 * linked with libzookeeper_mt as well as with libdivvy: the package divvy_zookeeper of pkg-config and the target
 * divvy::zookeeper of CMake name both. The host, below, is the program that owns the handle.
 *
 * The native header declares its synchronous calls (zoo_get(), zoo_multi() and their kind) only where THREADED is
 * defined. This header defines it, and the package and the target do so for the whole program. A program that includes
 * the native header first, without THREADED, does not compile.
 *
 * Lifetime: rules 1 to 7 of client.h, and
 * 11. The host opens and closes its handle; divvy never closes it. The host closes a live handle only after
 *     divvy_client_close() of every client on it has returned. The clients on a handle may be closed in any order.
 * 12. A handle that has expired may be closed at once, with clients on it, by a thread that was told of the expiry. The
 *     watcher tells it, after divvy has taken note, and so does divvy_client_state() of a client on it. After that
 *     divvy touches it no more. A host that polls zoo_state() instead waits for DIVVY_LOST before it closes.
 */
#ifndef DIVVY_ZOOKEEPER_H
#define DIVVY_ZOOKEEPER_H

#ifndef THREADED
#ifdef ZOOKEEPER_H_
#error "zookeeper.h was included without THREADED: include divvy/zookeeper.h before it, or compile with -DTHREADED"
#endif
#define THREADED
#endif
#include <zookeeper/zookeeper.h>

#include "divvy/client.h"
#include "divvy/election.h"
#include "divvy/lock.h"
#include "divvy/partitioner.h"

DIVVY_EXTERN_C_BEGIN

/**
 * Opens a client on the session of a handle of the host's. All else is as with divvy_client_open(); several clients may
 * sit on one handle. Returns at once: the client is DIVVY_CONNECTING, and DIVVY_CONNECTED as soon as a server has
 * answered on the handle.
 *
 * What the host notices. Its watcher is called for each session event as before, once, with its own context, on the
 * native client's thread; ours stands before it from now on until the last client on the handle is closed. Its node
 * watches and completions are not touched. It may set another watcher with zoo_set_watcher() at any time; that one
 * then stays, also when the last client is closed. Nodes and watches of ours are the session's, so they count against
 * its limits, and our requests and the host's share one connection: answers come in one order. Removing all watches of
 * a path (zoo_remove_all_watches()) removes ours too; do not do that below a pool's path.
 *
 * Session. A client owns nothing before it is proven that the session lives (docs/protocol.md, C1 to C4), which takes
 * half of ensemble_tick_ms and a little more. When its deadline passes, the client tells DIVVY_LOST, though the host's
 * session may live on; then it deletes its nodes there, one by one, and goes on on the same session by itself when they
 * are gone. When the session has expired
 * it stays DIVVY_LOST until divvy_client_reattach(), or is closed.
 *
 * Close. divvy_client_close() waits up to 2 s for the deletes of its nodes, and up to half a second more for other
 * answers. A request without an answer then is left to the handle; its answer finds nobody. Nodes of ours that
 * are still there, since there was no connection or no answer, are deleted as soon as the handle is connected, for as
 * long as the host keeps it open; after that they go with its session. Better not close a client inside a watcher or
 * completion of the handle: the answers that it waits for come by that very thread, so the time passes in vain.
 *
 * Paths. A chroot of the handle's own counts for us as for the host, and must exist. There is none of ours on top.
 *
 * Ownership: `config` is copied. On success end *out with divvy_client_close(). On error *out is NULL and the handle is
 *   as it was.
 * Thread: any; not concurrently with the host's zoo_set_watcher(). No callback runs inside this call.
 *   divvy_client_error(NULL) tells more on failure.
 *
 * @param out    [out] the client
 * @param handle of libzookeeper_mt, connected or not
 * @param config NULL: all defaults. hosts, session_timeout_ms, auth_scheme and auth are the host's business and are
 *   ignored. acl: DIVVY_ACL_AUTO is DIVVY_ACL_OPEN here, since it cannot be seen whether the host has given the handle
 *   credentials; with DIVVY_ACL_CREATOR or _READABLE it must have, or creating fails with DIVVY_EACCES. on_log gets
 *   our lines only: the native client's go where the host has sent them. Both budgets are of this client alone
 * @return 0, or
 *   DIVVY_EINVAL  out or handle is NULL, tls_* or sasl_* are set (open the handle by
 *                 zookeeper_init_ssl() or zookeeper_init_sasl() instead), death_watch is set (the session is the
 *                 host's to end), a time out of range, an unknown acl, a config without its INIT macro, the servers'
 *                 tick is not known, or the handle's session timeout can hold nothing on such ticks
 *   DIVVY_ELOST   the session of the handle has expired
 *   DIVVY_EAUTH   the servers have refused the credentials of the handle
 *   DIVVY_ENOMEM  allocation failed
 *   DIVVY_ESYSTEM no thread or no descriptor could be had
 */
DIVVY_API int divvy_client_attach(divvy_client **out, zhandle_t *handle, const divvy_client_config *config);

/**
 * Goes on with another handle, after the host has replaced one whose session is over. The client and all objects on it
 * stay: a partitioner with DIVVY_REJOIN comes back with a new share; one without is in DIVVY_FAILURE.
 *
 * The old handle may be closed already: this call does not touch it. If its session should live, nodes of
 * ours there are deleted when that handle next calls back, or go when it ends. Returns at once; the client is
 * DIVVY_CONNECTING, then DIVVY_CONNECTED.
 *
 * Thread: any, also in callbacks, such as on_session with DIVVY_LOST. Not concurrently with the host's
 *   zoo_set_watcher() on the new handle.
 *
 * @param client attached, and DIVVY_LOST
 * @param handle the new one; rules 11 and 12 hold for it
 * @return 0, or
 *   DIVVY_ESTATE  the client is not DIVVY_LOST; or the handle is the old one and lives: the client goes on by itself
 *   DIVVY_EINVAL  handle or client is NULL, or the client is not attached but opened by divvy_client_open()
 *   DIVVY_ELOST   the session of the new handle has expired too; the client stays DIVVY_LOST
 *   DIVVY_EAUTH   the servers have refused the credentials of the new handle; likewise
 *   DIVVY_ENOMEM  allocation failed; likewise
 *   DIVVY_ECLOSED the client is closed, or closing
 *   DIVVY_EFORK   called in the child of a fork
 */
DIVVY_API int divvy_client_reattach(divvy_client *client, zhandle_t *handle);

/**
 * Makes a check for the user's own zoo_multi() or zoo_amulti(): with it in the list, the transaction is carried out
 * only if this member's lock of `item` still exists at that moment.
 *
 * What it proves: the servers put transactions in one order. At the place of this one in that order (its zxid) our
 * node was there; nobody else owns the item before our node is gone; so nobody else owned it there, whatever clocks,
 * delays or lost answers did. Failing with ZNONODE in its place it proves that the lock was gone, and nothing of the
 * transaction was done. It proves nothing for any other moment, nor for work outside the transaction: show the token
 * (divvy_partition_token()) there.
 *
 * The transaction may go by any handle: the check is of a node, not of a session. Its path is the one that the client
 * itself uses: of an attached client relative to the chroot of its handle; of one opened by divvy_client_open() from
 * the root of ZooKeeper, the chroot of `hosts` included. So the handle must have the same chroot, or none.
 *
 * Ownership: on success *op owns memory until divvy_guard_end(op), called once. An asynchronous call copies it, so it
 *   may be ended when zoo_amulti() has returned. It may be used for several transactions, copied bytewise for them, and
 *   outlive the partitioner and the client; it is as good as it was: it fails once the lock is gone.
 *   On error *op is zeroed, and divvy_guard_end(op) does nothing.
 * Thread: any; no request is sent.
 *
 * @param item held now; an item that is revoked is held until it is released
 * @param op   [out] caller's memory, for one operation
 * @return 0, or
 *   DIVVY_ENOTHELD the item is not held, or is none of the set, or the session's deadline has passed
 *   DIVVY_EINVAL   p, item or op is NULL
 *   DIVVY_ENOMEM   allocation failed
 *   DIVVY_EFORK    called in the child of a fork
 */
DIVVY_API int divvy_partitioner_guard(divvy_partitioner *p, const char *item, zoo_op_t *op);

/**
 * Makes the same check for a lock that is held. All that divvy_partitioner_guard() says of the item holds for the lock;
 * one that is held for reading may have other readers beside it.
 * @return 0, or
 *   DIVVY_ENOTHELD the lock is not held, or the session's deadline has passed
 *   DIVVY_EINVAL   lock or op is NULL
 *   DIVVY_ENOMEM, DIVVY_EFORK
 */
DIVVY_API int divvy_lock_guard(divvy_lock *lock, zoo_op_t *op);

/**
 * Makes the same check for an election that this one leads.
 * @return 0, or
 *   DIVVY_ENOTHELD it does not lead, or the session's deadline has passed
 *   DIVVY_EINVAL   election or op is NULL
 *   DIVVY_ENOMEM, DIVVY_EFORK
 */
DIVVY_API int divvy_election_guard(divvy_election *election, zoo_op_t *op);

/** Releases what a guard owns, and zeroes it. Does nothing for a zeroed one and for NULL. Thread: any. */
DIVVY_API void divvy_guard_end(zoo_op_t *op);

DIVVY_EXTERN_C_END

#endif
