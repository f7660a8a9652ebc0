/* Forces the expiry of a session. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_EXPIRE_H
#define DV_TEST_EXPIRE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a session's password. */
#define DV_TEST_PASSWORD_BYTES 16

/* Ends a session at the server as its expiry would: its ephemeral nodes are gone when this returns true, and its client
 * learns of the expiry when it connects next. For that it takes the session over on a connection of its own and closes
 * it. False: the servers do not know such a session, or its password differs.
 *
 * `connect` are the servers themselves, "127.0.0.1:PORT[,...]", and no proxy. The client's own link must be cut before,
 * at a proxy (or the client be gone): a connected client comes back while its session is taken over, and then the
 * server now and then (1 of 75 tries) leaves it a connection without a session, or this call without an answer.
 *
 * `password` may be NULL when the test has no way to it, as with a session that the library hides: the password is then
 * computed from the id, as the server itself does (ZooKeeperServer.generatePasswd). A session's id is also the
 * ephemeralOwner of its nodes. Ends the test program when no server answers. */
bool dv_test_expire(const char *connect, int64_t session_id, const char *password);

#endif
