/* The semaphore's admission: E2 to E7 and R1 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0

   A second model, for spin, that shares nothing with test/model/NAME.cc. N contenders take one of some slots ROUNDS
   times each, by the queue, while the limit changes RESIZES times. FAULTS times the answer about an admission is lost,
   which was carried out, is later, or never. It claims, by assertions and by pan's check for invalid end states:

   1. At each admission all leases are within the limit that is then in force, and the slot is below it (S9).
   2. The slot was free (S2), and the contender stood at the head of the queue.
   3. Whoever holds has its lease (S1).
   4. Each contender comes to its end.

   How a contender finds that it is first is the lock's model. Broken variants: -DUNVERSIONED (admitted at any version
   of the limit), -DNO_BARRIER (what is not found counts as never done), -DUNWATCHED (no watch on the leases). */

#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef RESIZES
#define RESIZES 2
#endif
#define SLOTS 3
#define NOBODY 255

byte owner[N] = NOBODY; /* the queue, in order */
byte length;
byte holder[SLOTS] = NOBODY; /* of each slot's lease */
byte taken;                  /* the leases */
byte limit = 2, version = 1;
byte faults = FAULTS, resizes = RESIZES;
byte known_version[N], slot[N]; /* what a transaction says */
bool late[N];                   /* a transaction of a lost connection may still be carried out */
bool on_data[N], on_list[N], fired[N]; /* watches at the servers, and what they have told */

mtype = {out, queued, reads, lists, no_room, admits, doubt, find, holds};

/* The pool gets another version. */
inline set_pool() {
    version++;
    k = 0;
    do
    :: k < N -> fired[k] = fired[k] || on_data[k]; on_data[k] = false; k++
    :: else -> break
    od;
    k = 0
}

inline fire_list() {
    k = 0;
    do
    :: k < N ->
#ifndef UNWATCHED
        fired[k] = fired[k] || on_list[k];
#endif
        on_list[k] = false;
        k++
    :: else -> break
    od;
    k = 0
}

/* The transaction of E6. */
inline transact(who) {
#ifdef UNVERSIONED
    if
    :: length > 0 && owner[0] == who ->
#else
    if
    :: known_version[who] == version ->
#endif
        assert(length > 0 && owner[0] == who);
        assert(slot[who] < limit && holder[slot[who]] == NOBODY);
        holder[slot[who]] = who;
        taken++;
        assert(taken <= limit);
        length--;
        k = 0;
        do
        :: k < length -> owner[k] = owner[k + 1]; k++
        :: else -> break
        od;
        owner[length] = NOBODY;
        set_pool();
        fire_list()
    :: else
    fi
}

proctype Contender(byte me) {
    byte k, rounds = ROUNDS, known_limit;
    mtype s = out;

    do
    :: atomic { s == out && rounds == 0 -> break }
    :: atomic { s == out && rounds > 0 -> owner[length] = me; length++; s = queued }
    :: atomic { s == queued && owner[0] == me -> s = reads }
    :: atomic { s == reads -> /* the limit first: E6 */
        fired[me] = false;
        on_data[me] = true;
        known_limit = limit;
        known_version[me] = version;
        s = lists
    }
    :: atomic { s == lists ->
        on_list[me] = true;
        if
        :: version != known_version[me] -> s = reads
        :: version == known_version[me] && taken >= known_limit -> s = no_room
        :: version == known_version[me] && taken < known_limit && known_limit > 0 && holder[0] == NOBODY ->
            slot[me] = 0; s = admits
        :: version == known_version[me] && taken < known_limit && known_limit > 1 && holder[1] == NOBODY ->
            slot[me] = 1; s = admits
        :: version == known_version[me] && taken < known_limit && known_limit > 2 && holder[2] == NOBODY ->
            slot[me] = 2; s = admits
        fi;
        known_limit = 0
    }
    :: atomic { s == no_room && fired[me] -> fired[me] = false; s = reads } /* E7 */
    :: atomic { s == admits ->
        on_data[me] = false;
        on_list[me] = false;
        fired[me] = false;
        transact(me);
        s = (holder[slot[me]] == me -> holds : reads)
    }
    :: atomic { s == admits && faults > 0 -> faults--; transact(me); s = doubt }
    :: atomic { s == admits && faults > 0 && !late[me] -> faults--; late[me] = true; s = doubt }
#ifdef NO_BARRIER
    :: atomic { s == doubt -> s = find }
#else
    :: atomic { s == doubt -> late[me] = false; s = find } /* R1 */
#endif
    :: atomic { s == find -> s = (holder[slot[me]] == me -> holds : reads) }
    :: atomic { s == holds ->
        assert(holder[slot[me]] == me);
        holder[slot[me]] = NOBODY;
        taken--;
        slot[me] = 0;
        fire_list();
        rounds--;
        s = out
    }
    od
}

/* Carries out what a lost connection left under way, and sets the limit. */
proctype Servers() {
    byte k;
end:
    do
    :: atomic { late[0] -> late[0] = false; transact(0) }
    :: atomic { late[1] -> late[1] = false; transact(1) }
#if N > 2
    :: atomic { late[2] -> late[2] = false; transact(2) }
#endif
    :: atomic { resizes > 0 && limit != 1 -> resizes--; limit = 1; set_pool() }
    :: atomic { resizes > 0 && limit != 2 -> resizes--; limit = 2; set_pool() }
    :: atomic { resizes > 0 && limit != 3 -> resizes--; limit = 3; set_pool() }
    od
}

init {
    byte i;
    atomic {
        do
        :: i < N -> run Contender(i); i++
        :: else -> break
        od;
        run Servers()
    }
}
