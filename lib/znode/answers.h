/* The meaning of each answer of a server: docs/protocol.md, rule B10. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ANSWERS_H
#define DV_ANSWERS_H

#include <stdbool.h>

#include "divvy/error.h"

typedef enum {
    DV_VERDICT_DONE,
    DV_VERDICT_NOT_DONE, /* certain not to have happened; the error says why */
    DV_VERDICT_LINK,     /* the connection has ended, or does: a write may have happened */
    DV_VERDICT_FINAL,    /* nothing more can be done on this session */
    DV_VERDICT_AGAIN,    /* certain not to have happened: sent again after a moment */
    DV_VERDICT_TOLD,     /* likewise, but somebody has to do something first, and is told so */
    DV_VERDICT_MAYBE,    /* a write may have happened: as when its answer is lost. A read is sent again */
} dv_answer_verdict;

/* X(name, code, verdict, error): the error is given to recipes, if any is. Other codes are DV_VERDICT_MAYBE. */
#define DV_ANSWERS(X)                                         \
    X(OK, 0, DONE, 0)                                         \
    X(SYSTEMERROR, -1, MAYBE, DIVVY_ECONNECTION)              \
    X(RUNTIMEINCONSISTENCY, -2, MAYBE, DIVVY_ECONNECTION)     \
    X(DATAINCONSISTENCY, -3, MAYBE, DIVVY_ECONNECTION)        \
    X(CONNECTIONLOSS, -4, LINK, DIVVY_ECONNECTION)            \
    X(MARSHALLINGERROR, -5, MAYBE, DIVVY_ECONNECTION)         \
    X(UNIMPLEMENTED, -6, NOT_DONE, DIVVY_EUNSUPPORTED)        \
    X(OPERATIONTIMEOUT, -7, LINK, DIVVY_ECONNECTION)          \
    X(BADARGUMENTS, -8, NOT_DONE, DIVVY_EINVAL)               \
    X(INVALIDSTATE, -9, LINK, DIVVY_ECONNECTION)              \
    X(UNKNOWNSESSION, -12, MAYBE, DIVVY_ECONNECTION)          \
    X(NEWCONFIGNOQUORUM, -13, MAYBE, DIVVY_ECONNECTION)       \
    X(RECONFIGINPROGRESS, -14, MAYBE, DIVVY_ECONNECTION)      \
    X(SSLCONNECTIONERROR, -15, LINK, DIVVY_ECONNECTION)       \
    X(APIERROR, -100, MAYBE, DIVVY_ECONNECTION)               \
    X(NONODE, -101, NOT_DONE, DIVVY_ENOENT)                   \
    X(NOAUTH, -102, NOT_DONE, DIVVY_EACCES)                   \
    X(BADVERSION, -103, NOT_DONE, DIVVY_EVERSION)             \
    X(NOCHILDRENFOREPHEMERALS, -108, NOT_DONE, DIVVY_EINVAL)  \
    X(NODEEXISTS, -110, NOT_DONE, DIVVY_EEXIST)               \
    X(NOTEMPTY, -111, NOT_DONE, DIVVY_ENOTEMPTY)              \
    X(SESSIONEXPIRED, -112, FINAL, DIVVY_ELOST)               \
    X(INVALIDCALLBACK, -113, MAYBE, DIVVY_ECONNECTION)        \
    X(INVALIDACL, -114, NOT_DONE, DIVVY_EACCES)               \
    X(AUTHFAILED, -115, FINAL, DIVVY_EAUTH)                   \
    X(CLOSING, -116, LINK, DIVVY_ECONNECTION)                 \
    X(NOTHING, -117, LINK, DIVVY_ECONNECTION)                 \
    X(SESSIONMOVED, -118, LINK, DIVVY_ECONNECTION)            \
    X(NOTREADONLY, -119, AGAIN, DIVVY_ECONNECTION)            \
    X(EPHEMERALONLOCALSESSION, -120, TOLD, DIVVY_ECONNECTION) \
    X(NOWATCHER, -121, MAYBE, DIVVY_ECONNECTION)              \
    X(REQUESTTIMEOUT, -122, MAYBE, DIVVY_ECONNECTION)         \
    X(RECONFIGDISABLED, -123, MAYBE, DIVVY_ECONNECTION)       \
    X(SESSIONCLOSEDREQUIRESASLAUTH, -124, FINAL, DIVVY_EAUTH) \
    X(QUOTAEXCEEDED, -125, TOLD, DIVVY_EQUOTA)                \
    X(THROTTLEDOP, -127, AGAIN, DIVVY_ECONNECTION)

typedef struct {
    int code;
    dv_answer_verdict verdict;
    int error;
    const char *name; /* NULL: the code is not in the table */
} dv_answer_meaning;

dv_answer_meaning dv_answer_of(int code);

/* Returns a DIVVY_E*, or where again.c has to decide, a raw error, from which dv_answer_code() reads the code. */
int dv_answer_error(int code);
bool dv_answer_is_raw(int error);
int dv_answer_code(int error);
/* Returns the name of an error as logs show it, be it raw or not. */
const char *dv_answer_errname(int error);

#endif
