/* Known bugs that can be put back, one at a time: the simulator finds each. SPDX-License-Identifier: Apache-2.0
 *
 * Those of the library are patches, test/sim/mutants/NAME.patch. apply_mutants.py puts them into copies of its files,
 * which sim-mutants and chaos_member_mutants are made of. There DV_MUTANT(name) is true when dv_mutant says so. Those
 * of the simulator stand in its sources. In the plain one DV_MUTANT(name) is false. mutants.c has what finds each. */
#ifndef DV_MUTANT_H
#define DV_MUTANT_H

#include <stdbool.h>

#define DV_MUTANTS(X)                                                                                              \
    X(read_as_proof, "an answered read, the heartbeat among them, proves that the session lives")                  \
    X(last_write_as_proof, "an answered write proves that the session lived when it was sent")                     \
    X(unknown_tick_half, "a tick that is not told is taken for half the timeout, as if none could be longer")      \
    X(no_guard, "a write proves what was answered just before it")                                                 \
    X(one_write_as_proof, "one late write proves an answer, though the leader may have been stopped before")       \
    X(deadline_from_suspended, "the deadline counts from when the connection was found to be down (Curator)")      \
    X(deadline_not_final, "a deadline that passed is taken back by a late proof")                                  \
    X(old_node_adopted, "the node of one's previous session is taken for one's own (CURATOR-498)")                 \
    X(read_as_barrier, "a stale read after a reconnect is taken for absence (CURATOR-264)")                        \
    X(wait_lost_at_reconnect, "a waiting contender forgets to look again after a reconnect (kazoo #283)")          \
    X(sets_differ, "members compute their targets differently and wait in ALLOCATING for ever (kazoo #392)")       \
    X(leaving_create_lost, "a lost reply leaves a node behind which nobody is responsible for (kazoo #732)")       \
    X(finish_leaks_place, "a place whose create is under way at finish() stays (kazoo)")                           \
    X(release_unseen, "release_set() acknowledges a RELEASE that nobody was told of")                              \
    X(delete_before_release, "a revoked item's place is deleted before the user has released it")                  \
    X(stale_gained, "on_items tells of a gain that was queued, though the item has gone since")                    \
    X(kept_outside_target, "in ACQUIRED an item outside the new target is kept")                                   \
    X(release_forgets, "a release forgets its node before the delete has succeeded (Curator #1193)")               \
    X(fall_by_answer, "a czxid is compared with what is known when its node is found, not when it was asked for")  \
    X(latecomer_unlooked, "what seems never made is never looked for again")                                       \
    X(create_repeated, "a create whose reply was lost is sent again without looking")                              \
    X(allocating_keeps_places, "places outside the target are kept while ALLOCATING: a deadlock")                  \
    X(settle_without_bound, "a party that never stands still never settles (kazoo)")                               \
    X(held_without_look, "a place counts as the first without a look at the queue")                                \
    X(first_unseen, "in a new directory a place of any number counts as the first")                                \
    X(taken_without_given, "a place that waits for a note counts as first when the note no longer says leaving")   \
    X(parked_waits_on, "a place that waits for a note waits on when the note no longer says leaving")              \
    X(note_lost_is_written, "a write of the note whose answer was lost is taken for done")                         \
    X(note_version_is_proof, "a refused write that waits behind another counts as done, as the version differs")   \
    X(note_line_goes_on, "what stands behind a write that failed is written at the version that is there")         \
    X(given_despite_failure, "a note still says that an item was given, though the write that gave it failed")     \
    X(other_numbering, "the indices of a note are taken for those of another set")                                 \
    X(given_of_old_set, "what was given is still listed by its old indices when the set has changed")              \
    X(kept_under_names, "what a plan gave away is kept for its next owner, though a rule of names decides by now") \
    X(given_to_any_number, "T6 without s = q + 1: a given number counts for any place behind it")                  \
    X(given_to_unready, "an item counts as given to a next owner that never was ready")                            \
    X(given_at_any_time, "T6 without c <= r: what was given counts for a place that was made later")               \
    X(renewed_is_first, "a place whose queue could not be renewed counts as first, whatever its number")           \
    X(renewal_unlisted, "a place whose queue could not be renewed is never listed")                                \
    X(renewal_of_data, "a queue is renewed though the data of its directory were set")                             \
    X(czxid_of_directory, "a directory, which may be another's by then, tells the token of the places beside it")  \
    X(standing_takes_all, "watches that stand for good take the room that places need")                            \
    X(renewal_in_two, "a directory is deleted by one request, and made by the next")                               \
    X(orphans_listed, "the queue of an item whose owner has gone is listed")                                       \
    X(ready_before_place, "a note says that an item is ready before the place in its queue stands")                \
    X(ready_outlives_place, "a place leaves while the note says that its item is ready")                           \
    X(leaving_outlives_place, "a place leaves while the note says that its item is leaving")                       \
    X(leave_unheard, "who leaves and has nothing does not see that the plan is without it")                        \
    X(leave_mark_lost, "who leaves does not ask again when a restored plan counts on it")                          \
    X(patience_without_end, "an owner waits for a next owner that is not ready without end")                       \
    X(gone_next_owner_awaited, "an owner waits for a next owner that has no note")                                 \
    X(patience_runs_on, "the patience with a next owner runs on, though the plan gave the item back in between")   \
    X(withdrawn_silent, "the note of one that has withdrawn no longer says what leaves")                           \
    X(unprepared_enters, "a next owner enters the queue before its user has prepared")                             \
    X(prepared_before_told, "a user who was not yet told to prepare counts as prepared")                           \
    X(prepare_untold, "a user is not told to prepare when nothing else comes that tells him")                      \
    X(prepare_lost_unproven, "who has to prepare before the clock has proven anything is never told")              \
    X(unread_next_owner_unknown, "the node of a next owner that was not read yet counts for nobody")               \
    X(note_change_unheard, "a place that waits for a note does not look at its changes")                           \
    X(back_is_revoked, "an item that a plan gives back before it was revoked is revoked")                          \
    X(note_stands_unheard, "the return of a member's own note does not count: items to wait are revoked")          \
    X(left_unreleased, "a member that hands over ends before its user has released")                               \
    X(any_namesake, "an item is handed over to any node of a static identifier, not to the last process's")        \
    X(token_of_sequence, "the sequence number, which starts again, serves as the fencing token")                   \
    X(kazoo_without_look, "in the model of kazoo: a lock counts as had without a look at the queue")               \
    X(kazoo_works_on, "in the model of kazoo: its user works on with items that he has released")                  \
    X(list_before_limit, "leases listed on entering a semaphore's queue count at its head: over-admission")        \
    X(queue_ignored, "slots are taken without the queue's head, and whatever the version (kazoo #213)")            \
    X(admission_unbound, "an admission does not ask for the version that was read: a resize is undone")            \
    X(reader_behind_writers, "a reader waits for writers behind it, too (kazoo #649)")                             \
    X(writer_ignores_readers, "a writer waits for writers only")                                                   \
    X(herd, "every waiter watches the first in the queue, not the one before it")                                  \
    X(preference_ignored, "a candidate leads though a preferred one stands behind it")                             \
    X(yield_keeps_place, "a candidate that yields to a preferred one leaves its place behind")                     \
    X(leader_gone_unseen, "a leader that goes before it was read counts as nobody")                                \
    X(leader_watch_lost, "who leads is not looked for on a new connection")                                        \
    X(leader_event_lost, "who leads is not looked for when that changed before the answer came")                   \
    X(request_stays, "a request to step down outlives the leader that was asked")                                  \
    X(lost_leader_stays, "a leader that is lost is not told so, and stands again")                                 \
    X(timeout_leaves_place, "an acquire of a lock that times out leaves its place behind")                         \
    X(admission_leaves_lease, "an acquire given up during its transaction leaves the lease behind (#429)")         \
    X(lost_admission_fails, "an admission whose reply was lost is taken for one that failed")                      \
    X(resize_unseen, "the head of a semaphore's queue is not woken by another limit")                              \
    X(shortcut_queue_unseen, "the shortcut to a semaphore's slots is taken past those who wait")                   \
    X(shortcut_numbers_unseen, "the shortcut counts the leases, and does not compare their slots")                 \
    X(shortcut_set_unseen, "the shortcut does not ask whether somebody was admitted since its lease was made")     \
    X(shortcut_limit_unread, "the shortcut takes the limit of the acquire before")                                 \
    X(shortcut_list_first, "the shortcut lists the leases before it makes its own")                                \
    X(shortcut_lost_is_held, "a lease by the shortcut whose reply was lost counts as soon as it is found")         \
    X(shortcut_lease_stays, "a lease by the shortcut that does not count stays where it is")                       \
    X(numbers_end_unseen, "places near the end of the sequence numbers are taken for good (kazoo #606)")           \
    X(deletion_unseen, "that somebody deleted a held node is never found out")                                     \
    X(watches_in_two_steps, "a semaphore's watches are reserved in two steps, as if the second had room")          \
    X(take_over_in_two_steps, "a unique role is taken over by a deletion, and a create after it")                  \
    X(claim_by_latest, "a holder counts as expired by the latest that the servers' time can be")                   \
    X(lost_claim_fails, "a claim whose reply was lost is taken for one that failed")                               \
    X(role_unchecked, "a holder sets its entry at the node's version alone, which starts again")                   \
    X(first_heartbeat_moves, "each heartbeat sets first_heartbeat again")                                          \
    X(purge_any_version, "a purge deletes whatever stands there by then")                                          \
    X(leave_takes_anothers, "a closed registry deletes what another has stored on the same session")               \
    X(view_outlives_session, "a view answers from what it had on a session that is over")                          \
    X(list_outlives_change, "the list of a view is given out though an entry has changed since")                   \
    X(list_outlives_ttl, "the list of a view is given out though the ttl of an entry has ended since")             \
    X(plan_without_compare, "a plan is written whatever stands there by then")                                     \
    X(plan_writer_lags, "a writer that has not read the newest plan writes over it")                               \
    X(plan_epoch_unchecked, "a plan is written at a version of a root that was deleted and made again")            \
    X(plan_garbage_first, "chunks are collected before the plan that does without them is written")                \
    X(plan_base_ahead, "a new base has the step in it that its delta tells again")                                 \
    X(plan_base_misnamed, "a new base is called by the name of the base before")                                   \
    X(plan_older_followed, "a member goes by generations, and stays with an older plan of a higher one")           \
    X(plan_read_torn, "what changed last is applied to whatever is remembered, and its sum not looked at")         \
    X(plan_missing_is_broken, "a missing chunk makes a plan broken without another look at the root")              \
    X(plan_forgotten, "when the root goes, what it said is forgotten")                                             \
    X(plan_lack_unseen, "that somebody deleted a chunk of the plan is seen by those alone who cannot read it")     \
    X(plan_verdict_stays, "that nothing is to be written for a party holds for later plans, too")                  \
    X(plan_newer_concluded, "a later release's plan that comes during an attempt is taken for good")               \
    X(plan_without_lock, "a member has acquired what the plan gives it, whether it holds the locks or not")        \
    X(plan_among_others, "a plan rules though not all members follow plans")                                       \
    X(plan_fenced_works, "of two live members of one identifier both are served")                                  \
    X(plan_leaver_readded, "a member that leaves is taken up again as long as its node lives")                     \
    X(plan_absence_any, "the time of an earlier absence runs on for a later one")                                  \
    X(plan_round_unseen, "the next items move though the last have not arrived")                                   \
    X(plan_dealt_anew, "items are dealt without regard to who has them")                                           \
    X(round_ended_by_namesake, "a new owner whose nodes are not read yet counts as gone, so the round ends")       \
    X(ghost_counted, "a persistent node in the party counts as a member")                                          \
    X(plan_options_stay, "the options of the first plan stay, whatever all members are configured with")           \
    X(plan_weight_stays, "a static member keeps its weight, though it comes back configured with another")         \
    X(plan_asked_stays, "items that were asked for stay, though all members were started again since")             \
    X(operator_before_return, "an operator writes a plan before members have gone back to their own items")        \
    X(plan_rejoin_is_start, "a member that lost its session counts as one that was started again")                 \
    X(last_by_node, "of several nodes of a static identifier the youngest counts, not the last process's")         \
    X(first_unbounded, "a member that never learned of its first node counts as older than all others")            \
    X(replaced_by_itself, "a member ends because a node of its own former session has not gone yet")               \
    X(history_forgets, "a writer goes on with the history that it remembers, though others have written since")    \
    X(history_slot_reused, "items of a member that goes count as kept if another gets its slot")                   \
    X(history_ready_counts, "a note that has given nothing counts as the end of a handover")                       \
    X(directories_stay, "the last member leaves the directories of its items")                                     \
    X(directories_left, "what the set no longer has keeps its directories as long as there are members")           \
    X(throttled_is_final, "an answer that says throttled is taken for the end of what was asked for")              \
    X(unknown_is_undone, "a create that was answered by an unknown code is taken for one that did not happen")     \
    X(due_with_work, "a death watch ends a session though what ran under the process has not ended")               \
    X(due_without_end, "a death watch ends a session though the process has not ended")                            \
    X(first_will_stays, "a death watch is told of the first session alone")                                        \
    X(watch_at_pause, "a death watch takes a process that has stopped for one that has ended")                     \
    X(watch_without_forker, "another watch acts for a forker that was killed, and knows of no work that is left")  \
    X(load_of_old_session, "the loads of items that were had on an earlier session are told at once")              \
    X(report_outlives_node, "the report of a node in the party that is lost stays")                                \
    X(load_other_unit, "loads in another unit than the pool's count as they are")                                  \
    X(load_never_rests, "loads are read again as soon as items have moved for them")                               \
    X(load_read_once, "a reader looks for loads once, and never again")                                            \
    X(load_by_index, "items keep their loads by number when others come")                                          \
    X(load_in_round, "new loads count while a round is under way")                                                 \
    X(load_unlimited, "a step for load moves as many items as it likes")                                           \
    X(load_giver_unknown, "the deal is not told from whom items came for load")                                    \
    X(wishes_go_with_set, "the wishes go when the pool gets other items")                                          \
    X(wishes_forgotten, "a reader that meets a root without wishes forgets those that it knows")                   \
    X(move_outlives_member, "a move stays when its member has gone")                                               \
    X(paused_is_dealt, "a paused item is taken from its owner, and dealt to another")                              \
    X(pause_forgets_owner, "an item that is resumed does not go back to who had it")                               \
    X(pin_to_leaver, "a pin gives its item to a member that leaves")                                               \
    X(pin_is_counted, "a pinned item moves when others are dealt")                                                 \
    X(empty_change_written, "a plan is written for a wish that ends as it comes")                                  \
    X(late_move_replaces, "a move to a member that has just gone ends the pin or move that the item had")          \
    X(older_is_ignored, "wishes and loads are in force though an older member is there")                           \
    X(option_is_ignored, "the option that an operator asked for does not count")                                   \
    X(tag_is_ignored, "an item goes to a member that lacks its tag")                                               \
    X(cap_is_ignored, "a member gets more items than its cap")                                                     \
    X(successor_unknown, "an operator's request stays with a member that has gone")                                \
    X(members_not_awaited, "a pool begins with fewer members than it is to wait for")                              \
    X(nobody_is_no_round, "items that are taken for nobody are not listed as moved, so no round follows")          \
    X(roll_not_audited, "a member that listens never asks for the party's pzxid")                                  \
    X(roll_waited_for_ever, "a member that listens waits for a roll for ever")                                     \
    X(roll_sum_unchecked, "the names that a roll leads to are not held against its sum")                           \
    X(roll_chain_unchecked, "a step is written behind a roll of another party than the one it leads from")         \
    X(roll_any_version, "a roll is written whatever the version is")                                               \
    X(roll_written_once, "a write of a roll that was refused or lost is given up")                                 \
    X(roll_stands_in_for_ever, "a member that has waited in vain lists for ever")                                  \
    X(roll_any_ends_standing_in, "a member that stands in listens again when another that does has written")       \
    X(roll_deaf_lookout, "a member that becomes a lookout goes on listening")                                      \
    X(roll_small_unwritten, "no roll is written of a party that has become small")                                 \
    X(roll_stranger_first, "a member writes at once, though it does not know the party of the roll")               \
    X(roll_unasked, "a member listens though no roll names its party")                                             \
    X(roll_nobody_stands_in, "a member that has waited in vain writes no roll")                                    \
    X(roll_of_other_ensemble, "a roll that is ahead of the party is followed")                                     \
    X(listed_leaves_early, "a place that an earlier note names leaves before the note that does not")

#ifdef DIVVY_MUTANTS
#define DV_MUTANT_ENUM(name, text) DV_MUTANT_##name,
typedef enum { DV_MUTANT_NONE, DV_MUTANTS(DV_MUTANT_ENUM) DV_MUTANT_COUNT } dv_mutant_kind;
#undef DV_MUTANT_ENUM
extern dv_mutant_kind dv_mutant;
#define DV_MUTANT(name) (dv_mutant == DV_MUTANT_##name)
#else
#define DV_MUTANT(name) false
#endif

#endif
