/**
 * @file error.h
 * The errors of divvy, one list. SPDX-License-Identifier: Apache-2.0
 *
 * Every call that can fail returns 0 (or a count) on success and one of these negative numbers otherwise.
 * divvy_client_error() of the same thread tells what was wrong in particular, with path and reason.
 */
#ifndef DIVVY_ERROR_H
#define DIVVY_ERROR_H

#include "divvy/export.h"

/**
 * X(name, number, text, retryable, fatal)
 *   retryable  1: the same call may succeed later without anything being changed by the caller
 *   fatal      1: the client (or the object) is of no further use; make a new one
 *
 * Each says one thing. Where two are near to each other:
 *   DIVVY_EALREADY is about the object: it holds, stands or watches already; DIVVY_EINPROGRESS about a call: another of
 *   that kind waits on the object, and its end may change everything; DIVVY_EBUSY about others, who have it now.
 *   DIVVY_E2BIG is about what was asked for, which is too large for ever; DIVVY_ELIMIT about a budget of this client,
 *   which has no room now, and has when something is given back (client.h); DIVVY_EDIFFERS about an agreement: the
 *   others agreed otherwise; DIVVY_EEXHAUSTED about the path, whose sequence numbers have come to their end.
 *   DIVVY_EQUOTA: a limit that an operator has set on the servers, and can raise.
 *   DIVVY_ECANCELED: a call of the user's, in whatever thread, ended this one; DIVVY_EINTERRUPTED: `interrupted` did.
 */
#define DIVVY_ERRORS(X)                                                                                \
    X(DIVVY_EINVAL, -1, "invalid argument", 0, 0)                                                      \
    X(DIVVY_ENOMEM, -2, "out of memory", 1, 0)                                                         \
    X(DIVVY_ETIMEDOUT, -3, "timed out", 1, 0)                                                          \
    X(DIVVY_ECANCELED, -4, "canceled", 0, 0)                                                           \
    X(DIVVY_ESTATE, -5, "not allowed in this state", 0, 0)                                             \
    X(DIVVY_EDEADLK, -6, "a waiting call inside a callback would wait for itself", 0, 0)               \
    X(DIVVY_ECLOSED, -7, "the client is closed", 0, 1)                                                 \
    X(DIVVY_ELOST, -8, "the session is lost", 0, 1)                                                    \
    X(DIVVY_ECONNECTION, -9, "the connection is down; the outcome may be unknown", 1, 0)               \
    X(DIVVY_EAUTH, -10, "the server refused the credentials", 0, 1)                                    \
    X(DIVVY_EACCES, -11, "the access list of the node denies this", 0, 0)                              \
    X(DIVVY_ENOENT, -12, "no such node", 0, 0)                                                         \
    X(DIVVY_EEXIST, -13, "the node exists already", 0, 0)                                              \
    X(DIVVY_ENOTEMPTY, -14, "the node has children", 0, 0)                                             \
    X(DIVVY_EVERSION, -15, "the node has another version", 0, 0)                                       \
    X(DIVVY_E2BIG, -16, "larger, or more, than there may be", 0, 0)                                    \
    X(DIVVY_ELIMIT, -17, "no room in a budget of the client", 0, 0)                                    \
    X(DIVVY_EBUSY, -18, "held by another", 1, 0)                                                       \
    X(DIVVY_EALREADY, -19, "held, stood for or watched already", 0, 0)                                 \
    X(DIVVY_ENOTHELD, -20, "not held", 0, 0)                                                           \
    X(DIVVY_EUNSUPPORTED, -21, "not supported by this build, or these servers", 0, 0)                  \
    X(DIVVY_EFORK, -22, "used in the child of a fork; open a client there", 0, 1)                      \
    X(DIVVY_ERESOLVE, -23, "no host name could be resolved", 1, 0)                                     \
    X(DIVVY_EPROTO, -24, "unexpected data or answer", 0, 0)                                            \
    X(DIVVY_ESYSTEM, -25, "the operating system refused a thread or a descriptor", 1, 0)               \
    X(DIVVY_EROLLEDBACK, -26, "undone because another operation of the same transaction failed", 1, 0) \
    X(DIVVY_EINTERRUPTED, -27, "the wait was interrupted", 1, 0)                                       \
    X(DIVVY_EINPROGRESS, -28, "another such call on this object waits", 1, 0)                          \
    X(DIVVY_EDIFFERS, -29, "the pool has another limit", 0, 0)                                         \
    X(DIVVY_EEXHAUSTED, -30, "the sequence numbers of the path are used up", 0, 0)                     \
    X(DIVVY_EQUOTA, -31, "a quota of the servers is used up", 1, 0)

enum {
#define DIVVY_ERROR_ENUM(name, number, text, retryable, fatal) name = (number),
    DIVVY_ERRORS(DIVVY_ERROR_ENUM)
#undef DIVVY_ERROR_ENUM
};

DIVVY_EXTERN_C_BEGIN

/**
 * Returns the text of an error number.
 *
 * Ownership: the string is static. Thread: any.
 * @param error a value that a divvy call returned
 * @return a short text without a full stop; "success" for values >= 0, "unknown error" for foreign numbers
 */
DIVVY_API const char *divvy_strerror(int error);

/**
 * Returns the name of an error number, such as "DIVVY_EINVAL". Ownership: static. Thread: any.
 * @return the name; "DIVVY_OK" for values >= 0, "DIVVY_EUNKNOWN" for foreign numbers
 */
DIVVY_API const char *divvy_errname(int error);

/**
 * Returns whether the same call may succeed later without any change by the caller. Thread: any.
 * @return 1 or 0
 */
DIVVY_API int divvy_error_retryable(int error);

/**
 * Returns whether the object that gave the error is of no further use. Thread: any.
 * @return 1 or 0
 */
DIVVY_API int divvy_error_fatal(int error);

DIVVY_EXTERN_C_END

#endif
