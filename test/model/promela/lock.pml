/* The lock's queue: Q1, Q3, Q4, Q6 and R1 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0

   A second model, for spin, that shares nothing with test/model/NAME.cc. N contenders acquire a lock ROUNDS times each by
   places in a queue. FAULTS times an answer about a place is lost, or a session ends. A place whose answer was lost was
   made, is made later, or never. It claims, by assertions and by pan's check for invalid end states:

   1. No two hold the lock (S2).
   2. The place of the holder is the first (S1).
   3. Each contender comes to its end.

   Broken variants: -DNO_BARRIER (what is not found counts as never made), -DGONE_UNSEEN (the watch is set on a place
   that has gone, and the contender waits). */

#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#define QUEUE 8 /* places at one moment, strays among them */
#define NOBODY 255

byte owner[QUEUE] = NOBODY; /* the queue in order, 0 to length - 1: the names of the places */
byte name[N]; /* of the place in this round: a name is used once (R2) */
byte length;
byte faults = FAULTS;
byte holders;
bool went[N];     /* the event of a watch is under way */
byte watched[N] = NOBODY; /* the place that it watches: the last before its own */
bool late[N];     /* a create of a lost connection may still be carried out */

inline append(who) {
    assert(length < QUEUE);
    owner[length] = who;
    length++;
}

/* Takes the first place of this name out, and fires the watches on it. */
inline take_out(who) {
    d_step {
        at = 0;
        do
        :: at < length && owner[at] != who -> at++
        :: else -> break
        od;
        if
        :: at < length ->
            length--;
            do
            :: at < length -> owner[at] = owner[at + 1]; at++
            :: else -> break
            od;
            owner[length] = NOBODY;
            at = 0;
            do
            :: at < N ->
                if
                :: watched[at] == who -> watched[at] = NOBODY; went[at] = true
                :: else
                fi;
                at++
            :: else -> break
            od
        :: else
        fi;
        at = 0
    }
}

/* Sets found and before: the name of the place just before its own, or NOBODY. */
inline list(who) {
    d_step {
        at = 0;
        found = false;
        before = NOBODY;
        do
        :: at < length && owner[at] == who -> found = true; break
        :: at < length && owner[at] != who -> before = owner[at]; at++
        :: else -> break
        od;
        if
        :: !found -> before = NOBODY
        :: else
        fi;
        at = 0
    }
}

inline set_watch(who) {
    d_step {
        at = 0;
        do
        :: at < length && owner[at] != before -> at++
        :: else -> break
        od;
        if
        :: at < length -> watched[who] = before; set = true
        :: else -> set = false
        fi;
        at = 0
    }
}

mtype = {out, doubt, find, look, watch, wait, holds, leave};

proctype Contender(byte me) {
    byte at, before = NOBODY, rounds = ROUNDS;
    bool found, set;
    mtype s = out;

    name[me] = me + 4 * rounds;
    do
    :: atomic { s == out && rounds == 0 -> break }
    :: atomic { s == out && rounds > 0 -> append(name[me]); s = look }
    :: atomic { s == out && rounds > 0 && faults > 0 -> faults--; append(name[me]); s = doubt } /* made; the answer is lost */
    :: atomic { s == out && rounds > 0 && faults > 0 && !late[me] -> faults--; late[me] = true; s = doubt }
#ifdef NO_BARRIER
    :: atomic { s == doubt -> s = find }
#else
    :: atomic { s == doubt -> late[me] = false; s = find } /* a write that is answered on the new connection: R1 */
#endif
    :: atomic { s == find -> list(name[me]); s = (found -> look : out); found = false; before = NOBODY }
    :: atomic {
        s == look -> list(name[me]);
        if
        :: found && before == NOBODY -> s = holds; holders++; assert(holders == 1); assert(owner[0] == name[me])
        :: else -> s = watch
        fi;
        found = false
    }
    :: atomic { s == watch -> went[me] = false; set_watch(me);
#ifdef GONE_UNSEEN
        s = wait;
#else
        s = (set -> wait : look);
#endif
        set = false; before = NOBODY
    }
    :: atomic { s == wait && went[me] -> went[me] = false; s = look } /* Q4 */
    :: atomic { s == holds -> holders--; s = leave }
    :: atomic { s == leave -> take_out(name[me]); rounds--; name[me] = me + 4 * rounds; s = out } /* repeated until it is answered: Q6 */
    :: atomic { (s == wait || s == holds) && faults > 0 -> /* The session ends. */
        faults--;
        holders = holders - (s == holds -> 1 : 0);
        watched[me] = NOBODY;
        went[me] = false;
        s = leave
    }
    od
}

/* Carries out what a lost connection left under way. */
proctype Servers() {
    byte who;
end:
    do
    :: atomic { late[0] -> late[0] = false; append(name[0]) }
    :: atomic { late[1] -> late[1] = false; append(name[1]) }
#if N > 2
    :: atomic { late[2] -> late[2] = false; append(name[2]) }
#endif
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
