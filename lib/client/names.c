/* Names: codes as text, for logs and for people. SPDX-License-Identifier: Apache-2.0
 *
 * No switch has a default, so that the compiler finds a code without a name. */
#include "divvy/divvy.h"

#define UNKNOWN "unknown"
#define NAME(prefix, name) \
    case prefix##name: return #name

const char *divvy_session_state_name(divvy_session_state state) {
    switch (state) {
        NAME(DIVVY_, CONNECTING);
        NAME(DIVVY_, CONNECTED);
        NAME(DIVVY_, SUSPENDED);
        NAME(DIVVY_, LOST);
        NAME(DIVVY_, AUTH_FAILED);
        NAME(DIVVY_, CLOSED);
    }
    return UNKNOWN;
}

const char *divvy_partition_state_name(divvy_partition_state state) {
    switch (state) {
        NAME(DIVVY_, ALLOCATING);
        NAME(DIVVY_, ACQUIRED);
        NAME(DIVVY_, RELEASE);
        NAME(DIVVY_, FAILURE);
    }
    return UNKNOWN;
}

const char *divvy_reason_name(int reason) {
    switch ((enum divvy_reason)reason) {
        NAME(DIVVY_REASON_, MEMBERS);
        NAME(DIVVY_REASON_, RELEASED);
        NAME(DIVVY_REASON_, SUSPEND);
        NAME(DIVVY_REASON_, SESSION);
        NAME(DIVVY_REASON_, FINISH);
        NAME(DIVVY_REASON_, TIMEOUT);
        NAME(DIVVY_REASON_, DENIED);
        NAME(DIVVY_REASON_, FOREIGN);
        NAME(DIVVY_REASON_, JOIN);
        NAME(DIVVY_REASON_, LEAVE);
        NAME(DIVVY_REASON_, LOSS);
        NAME(DIVVY_REASON_, WEIGHT);
        NAME(DIVVY_REASON_, SET);
        NAME(DIVVY_REASON_, DRAIN);
        NAME(DIVVY_REASON_, OPERATOR);
        NAME(DIVVY_REASON_, LOAD);
    }
    return UNKNOWN;
}

static const char *registry_warning_name(int code) {
    switch ((enum divvy_registry_warning)code) {
        NAME(DIVVY_WARN_, ENTRY);
        NAME(DIVVY_WARN_, NO_SERVICE);
        NAME(DIVVY_WARN_, HEARTBEAT);
        NAME(DIVVY_WARN_, POLLED);
        NAME(DIVVY_WARN_, PRESERVED);
    }
    return UNKNOWN;
}

const char *divvy_warning_name(int code) {
    switch ((enum divvy_warning)code) {
        NAME(DIVVY_WARN_, ITEMS_DIFFER);
        NAME(DIVVY_WARN_, ASSIGN_DIFFERS);
        NAME(DIVVY_WARN_, STRAY);
        NAME(DIVVY_WARN_, SHORT);
        NAME(DIVVY_WARN_, ITEM_NAME);
        NAME(DIVVY_WARN_, SLOW_RELEASE);
        NAME(DIVVY_WARN_, IDENTIFIER);
        NAME(DIVVY_WARN_, NODE_GONE);
        NAME(DIVVY_WARN_, SESSION);
        NAME(DIVVY_WARN_, PLAN);
        NAME(DIVVY_WARN_, FENCED);
        NAME(DIVVY_WARN_, ABSENT);
        NAME(DIVVY_WARN_, WEIGHT);
        NAME(DIVVY_WARN_, LATE);
        NAME(DIVVY_WARN_, ROUND);
        NAME(DIVVY_WARN_, TLS);
        NAME(DIVVY_WARN_, TOKENS);
        NAME(DIVVY_WARN_, QUOTA);
        NAME(DIVVY_WARN_, ANSWER);
        NAME(DIVVY_WARN_, HEAVY);
        NAME(DIVVY_WARN_, LOAD_UNIT);
    }
    return registry_warning_name(code);
}
