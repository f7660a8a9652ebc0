/* sim-mutants: known bugs put back, one at a time; each must be found. SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/test.h"
#include "mutant.h"
#include "runner.h"
#include "sim_commit.h"
#include "steps.h"

dv_mutant_kind dv_mutant;

static const char *const names[] = {
#define NAME(name, text) [DV_MUTANT_##name] = #name,
    DV_MUTANTS(NAME)
#undef NAME
};

static const char *const texts[] = {
#define TEXT(name, text) [DV_MUTANT_##name] = text,
    DV_MUTANTS(TEXT)
#undef TEXT
};

/* A test of test/unit that this program has too, by its name, shows what random histories hardly ever meet. */
static const char *const tests[DV_MUTANT_COUNT] = {
    [DV_MUTANT_one_write_as_proof] = "test_no_proof",
    [DV_MUTANT_watches_in_two_steps] = "test_room_for_both_watches",
    [DV_MUTANT_leave_mark_lost] = "test_leave_mark_lost",
    [DV_MUTANT_leave_unheard] = "test_leave_unheard",
    [DV_MUTANT_note_version_is_proof] = "test_refused_behind_an_open_one",
    [DV_MUTANT_note_line_goes_on] = "test_failure_in_a_line",
    [DV_MUTANT_note_stands_unheard] = "test_note_stands_again",
    [DV_MUTANT_prepare_untold] = "test_told_to_prepare_more",
    [DV_MUTANT_prepare_lost_unproven] = "test_prepare_lost_unproven",
    [DV_MUTANT_any_namesake] = "test_any_namesake",
    [DV_MUTANT_plan_newer_concluded] = "test_plan_newer_concluded",
    [DV_MUTANT_operator_before_return] = "test_members_return_first",
    [DV_MUTANT_withdrawn_silent] = "test_leave_overdue",
    [DV_MUTANT_replaced_by_itself] = "test_replaced_by_itself",
    [DV_MUTANT_report_outlives_node] = "test_report_outlives_node",
    [DV_MUTANT_load_in_round] = "test_round_waits",
    [DV_MUTANT_load_giver_unknown] = "test_came_from",
    [DV_MUTANT_pause_forgets_owner] = "test_resume",
    [DV_MUTANT_empty_change_written] = "test_move_to_nobody",
    [DV_MUTANT_late_move_replaces] = "test_move_comes_too_late",
    [DV_MUTANT_members_not_awaited] = "test_waits_for_all",
    [DV_MUTANT_successor_unknown] = "test_comes_again",
    [DV_MUTANT_nobody_is_no_round] = "test_nobody_is_no_round",
    [DV_MUTANT_roll_waited_for_ever] = "test_roll_waits_in_vain",
    [DV_MUTANT_roll_sum_unchecked] = "test_roll_wrong_sum",
    [DV_MUTANT_roll_written_once] = "test_roll_refused",
    [DV_MUTANT_roll_small_unwritten] = "test_roll_small",
    [DV_MUTANT_roll_stranger_first] = "test_roll_stranger",
    [DV_MUTANT_roll_stands_in_for_ever] = "test_roll_stands_in",
    [DV_MUTANT_roll_any_ends_standing_in] = "test_roll_stands_in",
    [DV_MUTANT_roll_nobody_stands_in] = "test_roll_waits_in_vain",
    [DV_MUTANT_roll_deaf_lookout] = "test_roll_becomes_lookout",
    [DV_MUTANT_roll_unasked] = "test_roll_no_roll",
    [DV_MUTANT_roll_of_other_ensemble] = "test_roll_no_roll",
    [DV_MUTANT_renewal_of_data] = "test_directory_with_data",
    [DV_MUTANT_renewal_in_two] = "test_directories_never_missing",
    [DV_MUTANT_orphans_listed] = "test_crash_costs_few_requests",
    [DV_MUTANT_shortcut_set_unseen] = "test_set_in_between",
};

/* They are shown by histories with odd answers (answers.c). */
static const bool with_odd_answers[DV_MUTANT_COUNT] = {
    [DV_MUTANT_throttled_is_final] = true,
    [DV_MUTANT_unknown_is_undone] = true,
    [DV_MUTANT_listed_leaves_early] = true,
};

/* They are shown by histories with death watches (watches.c). */
static const bool with_death_watch[DV_MUTANT_COUNT] = {
    [DV_MUTANT_due_with_work] = true,  [DV_MUTANT_due_without_end] = true,      [DV_MUTANT_first_will_stays] = true,
    [DV_MUTANT_watch_at_pause] = true, [DV_MUTANT_watch_without_forker] = true,
};

/* They are shown by histories with rolls of small parties (check_rolls.c). */
static const bool with_rolls[DV_MUTANT_COUNT] = {
    [DV_MUTANT_roll_not_audited] = true,
    [DV_MUTANT_roll_chain_unchecked] = true,
    [DV_MUTANT_roll_any_version] = true,
};

/* A history that shows each of the others. */
static const struct {
    uint64_t seed;
    double seconds; /* that the search for it took, on two cores */
    sim_theme theme;
    const char *invariant; /* that is violated */
} recorded[DV_MUTANT_COUNT] = {
    [DV_MUTANT_roll_not_audited] = {7, 1.5, SIM_OF_PLANS, "L1"},
    [DV_MUTANT_roll_chain_unchecked] = {6, 0.2, SIM_OF_PLANS, "S26"},
    [DV_MUTANT_roll_any_version] = {24, 13.4, SIM_OF_PLANS, "S26"},
    [DV_MUTANT_roll_waited_for_ever] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_sum_unchecked] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_written_once] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_small_unwritten] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_stranger_first] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_stands_in_for_ever] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_any_ends_standing_in] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_nobody_stands_in] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_deaf_lookout] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_unasked] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_roll_of_other_ensemble] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_due_with_work] = {13, 0.1, SIM_OF_POOLS, "S24"},
    [DV_MUTANT_due_without_end] = {1, 0.1, SIM_OF_POOLS, "S24"},
    [DV_MUTANT_first_will_stays] = {7, 0.1, SIM_OF_POOLS, "L10"},
    [DV_MUTANT_watch_at_pause] = {1, 0.1, SIM_OF_POOLS, "S24"},
    [DV_MUTANT_watch_without_forker] = {24, 0.2, SIM_OF_POOLS, "S24"},
    [DV_MUTANT_read_as_proof] = {41, 0.9, SIM_OF_POOLS, "L1"},
    [DV_MUTANT_last_write_as_proof] = {127, 0.5, SIM_OF_POOLS, "S1"},
    [DV_MUTANT_unknown_tick_half] = {4805, 46.0, SIM_OF_LOCKS, "S1"},
    [DV_MUTANT_no_guard] = {184, 3.0, SIM_OF_POOLS, "S1"},
    [DV_MUTANT_one_write_as_proof] = {0, 0, SIM_OF_POOLS, NULL},
    [DV_MUTANT_deadline_from_suspended] = {5, 0.1, SIM_OF_POOLS, "S1"},
    [DV_MUTANT_deadline_not_final] = {5, 0.1, SIM_OF_POOLS, "S1"},
    [DV_MUTANT_old_node_adopted] = {17, 0.3, SIM_OF_POOLS, "S21"},
    [DV_MUTANT_read_as_barrier] = {202, 0.4, SIM_OF_POOLS, "L3"},
    [DV_MUTANT_wait_lost_at_reconnect] = {93, 2.4, SIM_OF_POOLS, "L1"},
    [DV_MUTANT_sets_differ] = {26, 0.1, SIM_OF_POOLS, "L1"},
    [DV_MUTANT_leaving_create_lost] = {2, 0.2, SIM_OF_POOLS, "L3"},
    [DV_MUTANT_finish_leaks_place] = {10, 0.1, SIM_OF_POOLS, "L3"},
    [DV_MUTANT_release_unseen] = {36, 1.2, SIM_OF_POOLS, "S7"},
    [DV_MUTANT_delete_before_release] = {1, 0.1, SIM_OF_POOLS, "S7"},
    [DV_MUTANT_stale_gained] = {6, 1.6, SIM_OF_POOLS, "S1"},
    [DV_MUTANT_kept_outside_target] = {5, 0.1, SIM_OF_POOLS, "crash"},
    [DV_MUTANT_release_forgets] = {2, 0.1, SIM_OF_POOLS, "L3"},
    [DV_MUTANT_fall_by_answer] = {22, 0.3, SIM_OF_POOLS, "S21"},
    [DV_MUTANT_latecomer_unlooked] = {111, 0.3, SIM_OF_LOCKS, "L3"},
    [DV_MUTANT_create_repeated] = {2, 0.1, SIM_OF_POOLS, "L3"},
    [DV_MUTANT_allocating_keeps_places] = {37, 0.5, SIM_OF_POOLS, "L3"},
    [DV_MUTANT_settle_without_bound] = {104, 0.1, SIM_OF_POOLS, "L1"},
    [DV_MUTANT_held_without_look] = {2, 0.1, SIM_OF_POOLS, "S4"},
    [DV_MUTANT_first_unseen] = {99, 0.3, SIM_OF_POOLS, "S4"},
    [DV_MUTANT_taken_without_given] = {7, 0.7, SIM_OF_PLANS, "S16"},
    [DV_MUTANT_parked_waits_on] = {605, 6.0, SIM_OF_PLANS, "L8"},
    [DV_MUTANT_note_lost_is_written] = {236, 0.4, SIM_OF_PLANS, "L7"},
    [DV_MUTANT_note_version_is_proof] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_note_line_goes_on] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_given_despite_failure] = {113, 1.0, SIM_OF_PLANS, "S15"},
    [DV_MUTANT_other_numbering] = {2044, 127.3, SIM_OF_PLANS, "S15"},
    [DV_MUTANT_given_of_old_set] = {44, 2.2, SIM_OF_PLANS, "S15"},
    [DV_MUTANT_kept_under_names] = {102, 1.1, SIM_OF_PLANS, "L8"},
    [DV_MUTANT_given_to_any_number] = {288, 3.1, SIM_OF_PLANS, "S16"},
    [DV_MUTANT_given_to_unready] = {115, 8.8, SIM_OF_PLANS, "S15"},
    [DV_MUTANT_given_at_any_time] = {16, 14.3, SIM_OF_PLANS, "S4"},
    [DV_MUTANT_renewed_is_first] = {2, 0.1, SIM_OF_PLANS, "S4"},
    [DV_MUTANT_renewal_unlisted] = {4, 0.2, SIM_OF_PLANS, "L1"},
    [DV_MUTANT_renewal_of_data] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_standing_takes_all] = {41, 1.0, SIM_OF_LOCKS, "L1"},
    [DV_MUTANT_czxid_of_directory] = {12108, 626.7, SIM_OF_POOLS, "S5"},
    [DV_MUTANT_renewal_in_two] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_orphans_listed] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_ready_before_place] = {10, 0.1, SIM_OF_PLANS, "S15"},
    [DV_MUTANT_ready_outlives_place] = {2, 0.1, SIM_OF_PLANS, "S15"},
    [DV_MUTANT_leaving_outlives_place] = {2, 0.1, SIM_OF_PLANS, "S15"},
    [DV_MUTANT_leave_unheard] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_leave_mark_lost] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_patience_without_end] = {7, 0.2, SIM_OF_PLANS, "L8"},
    [DV_MUTANT_gone_next_owner_awaited] = {6, 0.5, SIM_OF_PLANS, "L8"},
    [DV_MUTANT_patience_runs_on] = {127, 11.3, SIM_OF_PLANS, "S18"},
    [DV_MUTANT_withdrawn_silent] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_unprepared_enters] = {4, 0.1, SIM_OF_PLANS, "S19"},
    [DV_MUTANT_prepared_before_told] = {1492, 9.7, SIM_OF_PLANS, "S19"},
    [DV_MUTANT_prepare_untold] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_prepare_lost_unproven] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_unread_next_owner_unknown] = {275, 118.2, SIM_OF_PLANS, "S18"},
    [DV_MUTANT_note_change_unheard] = {17, 0.3, SIM_OF_PLANS, "L8"},
    [DV_MUTANT_back_is_revoked] = {155, 0.4, SIM_OF_PLANS, "S18"},
    [DV_MUTANT_note_stands_unheard] = {0, 0, SIM_OF_POOLS, NULL},
    [DV_MUTANT_left_unreleased] = {2, 0.1, SIM_OF_PLANS, "S7"},
    [DV_MUTANT_any_namesake] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_token_of_sequence] = {1, 0.1, SIM_OF_POOLS, "S5"},
    [DV_MUTANT_kazoo_without_look] = {5, 0.3, SIM_OF_POOLS, "S1"},
    [DV_MUTANT_kazoo_works_on] = {5, 0.4, SIM_OF_POOLS, "S7"},
    [DV_MUTANT_list_before_limit] = {3, 0.1, SIM_OF_LOCKS, "S9"},
    [DV_MUTANT_queue_ignored] = {3, 0.1, SIM_OF_LOCKS, "S9"},
    [DV_MUTANT_admission_unbound] = {99, 0.5, SIM_OF_LOCKS, "S9"},
    [DV_MUTANT_reader_behind_writers] = {124, 0.1, SIM_OF_LOCKS, "L1"},
    [DV_MUTANT_writer_ignores_readers] = {2, 0.1, SIM_OF_LOCKS, "S1"},
    [DV_MUTANT_herd] = {14, 0.1, SIM_OF_LOCKS, "L4"},
    [DV_MUTANT_timeout_leaves_place] = {1, 0.1, SIM_OF_LOCKS, "L3"},
    [DV_MUTANT_admission_leaves_lease] = {4, 0.3, SIM_OF_LOCKS, "L3"},
    [DV_MUTANT_lost_admission_fails] = {58, 0.1, SIM_OF_LOCKS, "L3"},
    [DV_MUTANT_resize_unseen] = {378, 6.2, SIM_OF_LOCKS, "L1"},
    [DV_MUTANT_watches_in_two_steps] = {0, 0, SIM_OF_LOCKS, NULL},
    [DV_MUTANT_deletion_unseen] = {27, 2.1, SIM_OF_LOCKS, "L1"},
    [DV_MUTANT_shortcut_queue_unseen] = {12, 0.4, SIM_OF_LOCKS, "S9"},
    [DV_MUTANT_shortcut_numbers_unseen] = {3, 0.1, SIM_OF_LOCKS, "S9"},
    [DV_MUTANT_shortcut_set_unseen] = {0, 0, SIM_OF_LOCKS, NULL},
    [DV_MUTANT_shortcut_limit_unread] = {151, 4.8, SIM_OF_LOCKS, "S9"},
    [DV_MUTANT_shortcut_list_first] = {80, 3.4, SIM_OF_LOCKS, "S9"},
    [DV_MUTANT_shortcut_lost_is_held] = {27, 0.8, SIM_OF_LOCKS, "S9"},
    [DV_MUTANT_shortcut_lease_stays] = {4, 0.3, SIM_OF_LOCKS, "L1"},
    [DV_MUTANT_numbers_end_unseen] = {933, 3.1, SIM_OF_LOCKS, "S2"},
    [DV_MUTANT_take_over_in_two_steps] = {2, 0.1, SIM_OF_SERVICES, "S11"},
    [DV_MUTANT_claim_by_latest] = {240, 2.2, SIM_OF_SERVICES, "S10"},
    [DV_MUTANT_lost_claim_fails] = {1, 0.1, SIM_OF_SERVICES, "S8"},
    [DV_MUTANT_role_unchecked] = {49, 3.3, SIM_OF_SERVICES, "S10"},
    [DV_MUTANT_first_heartbeat_moves] = {1, 0.1, SIM_OF_SERVICES, "S10"},
    [DV_MUTANT_purge_any_version] = {107, 0.4, SIM_OF_SERVICES, "S11"},
    [DV_MUTANT_leave_takes_anothers] = {685, 9.6, SIM_OF_SERVICES, "S11"},
    [DV_MUTANT_view_outlives_session] = {55, 2.2, SIM_OF_SERVICES, "S10"},
    [DV_MUTANT_list_outlives_change] = {1, 0.1, SIM_OF_SERVICES, "S10"},
    [DV_MUTANT_list_outlives_ttl] = {2, 0.1, SIM_OF_SERVICES, "S10"},
    [DV_MUTANT_plan_without_compare] = {10, 0.5, SIM_OF_PLANS, "D26"},
    [DV_MUTANT_plan_writer_lags] = {16, 0.6, SIM_OF_PLANS, "D26"},
    [DV_MUTANT_plan_epoch_unchecked] = {6, 1.8, SIM_OF_PLANS, "D44"},
    [DV_MUTANT_plan_garbage_first] = {5, 0.6, SIM_OF_PLANS, "D30"},
    [DV_MUTANT_plan_base_ahead] = {5, 0.1, SIM_OF_PLANS, "D23"},
    [DV_MUTANT_plan_base_misnamed] = {5, 0.1, SIM_OF_PLANS, "D23"},
    [DV_MUTANT_plan_older_followed] = {15, 4.5, SIM_OF_PLANS, "L1"},
    [DV_MUTANT_plan_read_torn] = {18, 0.8, SIM_OF_PLANS, "D22"},
    [DV_MUTANT_plan_missing_is_broken] = {18, 6.9, SIM_OF_PLANS, "D23"},
    [DV_MUTANT_plan_forgotten] = {6, 0.1, SIM_OF_PLANS, "D21"},
    [DV_MUTANT_plan_lack_unseen] = {3216, 265.7, SIM_OF_PLANS, "L1"},
    [DV_MUTANT_plan_verdict_stays] = {6, 2.9, SIM_OF_PLANS, "L1"},
    [DV_MUTANT_plan_newer_concluded] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_plan_without_lock] = {1, 0.1, SIM_OF_PLANS, "D34"},
    [DV_MUTANT_plan_among_others] = {2, 1.1, SIM_OF_PLANS, "P3"},
    [DV_MUTANT_plan_fenced_works] = {126, 11.2, SIM_OF_PLANS, "S22"},
    [DV_MUTANT_plan_leaver_readded] = {5, 3.0, SIM_OF_PLANS, "D14"},
    [DV_MUTANT_plan_absence_any] = {68, 0.7, SIM_OF_PLANS, "D13"},
    [DV_MUTANT_plan_round_unseen] = {24, 7.4, SIM_OF_PLANS, "D19"},
    [DV_MUTANT_plan_dealt_anew] = {2, 0.1, SIM_OF_PLANS, "D19"},
    [DV_MUTANT_round_ended_by_namesake] = {14636, 69.6, SIM_OF_PLANS, "D19"},
    [DV_MUTANT_ghost_counted] = {3, 0.1, SIM_OF_PLANS, "L1"},
    [DV_MUTANT_plan_options_stay] = {3, 0.1, SIM_OF_PLANS, "D16"},
    [DV_MUTANT_plan_weight_stays] = {21, 1.0, SIM_OF_PLANS, "D15"},
    [DV_MUTANT_plan_asked_stays] = {10, 0.7, SIM_OF_PLANS, "D17"},
    [DV_MUTANT_operator_before_return] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_plan_rejoin_is_start] = {44, 1.8, SIM_OF_PLANS, "D17"},
    [DV_MUTANT_last_by_node] = {8, 0.5, SIM_OF_PLANS, "S22"},
    [DV_MUTANT_first_unbounded] = {7, 1.4, SIM_OF_PLANS, "S22"},
    [DV_MUTANT_replaced_by_itself] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_history_forgets] = {4, 0.1, SIM_OF_PLANS, "D44"},
    [DV_MUTANT_history_slot_reused] = {2, 0.1, SIM_OF_PLANS, "D44"},
    [DV_MUTANT_history_ready_counts] = {52, 1.4, SIM_OF_PLANS, "D44"},
    [DV_MUTANT_load_of_old_session] = {7, 0.4, SIM_OF_PLANS, "D46"},
    [DV_MUTANT_report_outlives_node] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_load_other_unit] = {80, 0.5, SIM_OF_PLANS, "D50"},
    [DV_MUTANT_load_never_rests] = {7, 0.2, SIM_OF_PLANS, "D47"},
    [DV_MUTANT_load_read_once] = {57, 2.0, SIM_OF_PLANS, "D47"},
    [DV_MUTANT_load_by_index] = {7, 0.3, SIM_OF_PLANS, "D50"},
    [DV_MUTANT_load_in_round] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_load_unlimited] = {7, 0.2, SIM_OF_PLANS, "D50"},
    [DV_MUTANT_load_giver_unknown] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_wishes_go_with_set] = {7, 0.2, SIM_OF_PLANS, "D48"},
    [DV_MUTANT_wishes_forgotten] = {58, 1.4, SIM_OF_PLANS, "D48"},
    [DV_MUTANT_move_outlives_member] = {14, 0.5, SIM_OF_PLANS, "D48"},
    [DV_MUTANT_paused_is_dealt] = {7, 0.2, SIM_OF_PLANS, "D48"},
    [DV_MUTANT_pause_forgets_owner] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_pin_to_leaver] = {57, 5.3, SIM_OF_PLANS, "D14"},
    [DV_MUTANT_pin_is_counted] = {33, 0.4, SIM_OF_PLANS, "D48"},
    [DV_MUTANT_empty_change_written] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_late_move_replaces] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_older_is_ignored] = {43, 1.0, SIM_OF_PLANS, "D48"},
    [DV_MUTANT_option_is_ignored] = {57, 1.3, SIM_OF_PLANS, "D16"},
    [DV_MUTANT_tag_is_ignored] = {7, 0.2, SIM_OF_PLANS, "A9"},
    [DV_MUTANT_cap_is_ignored] = {11, 0.4, SIM_OF_PLANS, "A9"},
    [DV_MUTANT_successor_unknown] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_members_not_awaited] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_nobody_is_no_round] = {0, 0, SIM_OF_PLANS, NULL},
    [DV_MUTANT_directories_stay] = {1, 0.1, SIM_OF_POOLS, "L3"},
    [DV_MUTANT_directories_left] = {15, 0.5, SIM_OF_PLANS, "L3"},
    [DV_MUTANT_preference_ignored] = {3, 0.1, SIM_OF_ELECTIONS, "S20"},
    [DV_MUTANT_yield_keeps_place] = {3, 0.1, SIM_OF_ELECTIONS, "L1"},
    [DV_MUTANT_leader_gone_unseen] = {68, 0.1, SIM_OF_ELECTIONS, "L1"},
    [DV_MUTANT_leader_event_lost] = {253662935, 60.0, SIM_OF_ELECTIONS, "L1"},
    [DV_MUTANT_leader_watch_lost] = {1, 0.1, SIM_OF_ELECTIONS, "L1"},
    [DV_MUTANT_request_stays] = {3, 0.1, SIM_OF_ELECTIONS, "L6"},
    [DV_MUTANT_lost_leader_stays] = {2, 0.1, SIM_OF_ELECTIONS, "S8"},
    [DV_MUTANT_throttled_is_final] = {3, 0.1, SIM_OF_POOLS, "L3"},
    [DV_MUTANT_unknown_is_undone] = {6, 0.1, SIM_OF_POOLS, "L7"},
    [DV_MUTANT_listed_leaves_early] = {1368, 13.0, SIM_OF_PLANS, "S15"},
};

static const char usage[] =
    "usage: sim-mutants --list | --replay-all\n"
    "       sim-mutants --mutant NAME [--seed S] --search SECONDS [--jobs J | --steps FILE]\n"
    "       sim-mutants --mutant NAME --seed S --trace | --shrink\n"
    "       sim-mutants --mutant NAME --replay\n"
    "\n"
    "  --list         each bug: its name; the invariant that finds it, and in which history, with the seconds that a\n"
    "                 search took, or the test that shows it; what the bug is\n"
    "  --replay-all   the recorded history or test of each, or another history: it must violate "
    "something with the bug,\n"
    "                 and nothing without it\n"
    "  --replay       the same of one bug\n"
    "  --search       histories of the seeds S (default 1) and on, until one shows the bug\n"
    "  --steps FILE   their records, for a replay of rules (test/replay)\n"
    "\n"
    "Status: 0 when all that was asked for was found, else 1; 2 usage.\n";

_Noreturn static void refuse(void) {
    fputs(usage, stderr);
    exit(2);
}

static dv_mutant_kind by_name(const char *name) {
    for (int m = 1; name && m < DV_MUTANT_COUNT; m++) {
        if (strcmp(names[m], name) == 0) return (dv_mutant_kind)m;
    }
    refuse();
}

static int list(void) {
    for (int m = 1; m < DV_MUTANT_COUNT; m++) {
        char how[80];
        if (tests[m]) snprintf(how, sizeof how, "%s of test/unit", tests[m]);
        else
            snprintf(how, sizeof how, "sim%s%s%s%s --seed %llu, %.1f s", sim_theme_option(recorded[m].theme),
                     with_odd_answers[m] ? " --odd-answers" : "", with_death_watch[m] ? " --death-watch" : "",
                     with_rolls[m] ? " --rolls" : "", (unsigned long long)recorded[m].seed, recorded[m].seconds);
        printf("%-24s %-4s %-42s %s\n", names[m], tests[m] || !recorded[m].invariant ? "" : recorded[m].invariant, how,
               texts[m]);
    }
    return 0;
}

/* `mutant`, in a history of the kind that `recorded_as` is seen in. */
static bool shows(dv_mutant_kind mutant, dv_mutant_kind recorded_as, uint64_t seed, sim_violation *violation) {
    static sim_script script;
    dv_mutant = mutant;
    sim_script_draw(&script, seed, SIM_KAZOO_SOMETIMES, recorded[recorded_as].theme);
    script.odd_answers = with_odd_answers[recorded_as];
    script.death_watch = with_death_watch[recorded_as];
    script.rolls = with_rolls[recorded_as];
    bool well = sim_run_one(&script, NULL, violation);
    dv_mutant = DV_MUTANT_NONE;
    return !well;
}

/* The library has changed since, and with it what a seed means: another history shows the bug, or none does. */
static uint64_t search_again(dv_mutant_kind mutant) {
    static sim_run_result result;
    const sim_run_config config = {.seed = 1,
                                   .count = UINT32_MAX,
                                   .theme = recorded[mutant].theme,
                                   .odd_answers = with_odd_answers[mutant],
                                   .death_watch = with_death_watch[mutant],
                                   .rolls = with_rolls[mutant],
                                   .jobs = 2,
                                   .limit_ms = 60000,
                                   .stop_at_first = true,
                                   .quiet = true};
    dv_mutant = mutant;
    sim_run(&config, &result);
    dv_mutant = DV_MUTANT_NONE;
    return result.found_count ? result.found[0].seed : 0;
}

/* Returns whether the bug is seen, and nothing without it. */
static bool replay(dv_mutant_kind mutant) {
    sim_violation with = {.set = false}, without = {.set = false};
    uint64_t seed = recorded[mutant].seed;
    bool found = shows(mutant, mutant, seed, &with);
    if (!found && (seed = search_again(mutant)) != 0) {
        printf("%-24s seed %llu no longer shows it; record %llu\n", names[mutant],
               (unsigned long long)recorded[mutant].seed, (unsigned long long)seed);
        found = shows(mutant, mutant, seed, &with);
    }
    if (!found) {
        printf("%-24s NOT FOUND\n", names[mutant]);
        return false;
    }
    const char *invariant = recorded[mutant].invariant;
    if (!invariant || strcmp(with.what, invariant) != 0)
        printf("%-24s is found by %s, and recorded for %s; record that\n", names[mutant], with.what,
               invariant ? invariant : "none");
    bool clean = !shows(DV_MUTANT_NONE, mutant, seed, &without);
    printf("%-24s seed %-8llu %s: %s\n", names[mutant], (unsigned long long)seed, with.what, with.text);
    if (!clean) printf("%-24s BUT WITHOUT IT: %s: %s\n", names[mutant], without.what, without.text);
    fflush(stdout);
    return clean;
}

/* Returns whether the test passes with the bug, in a process of its own. */
static bool passes(dv_mutant_kind mutant, const char *test) {
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0) _exit(2);
        dv_mutant = mutant;
        cmocka_set_test_filter(test);
        _exit(dv_test_run() != 0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("fork");
        exit(2);
    }
    return status == 0;
}

/* Returns whether the test sees the bug, and nothing without it. */
static bool try_test(dv_mutant_kind mutant) {
    const char *test = tests[mutant];
    bool found = !passes(mutant, test), clean = passes(DV_MUTANT_NONE, test);
    printf("%-24s %s %s of test/unit\n", names[mutant], found ? "fails in" : "NOT FOUND by", test);
    if (!clean) printf("%-24s BUT IT FAILS WITHOUT IT\n", names[mutant]);
    fflush(stdout);
    return found && clean;
}

static bool is_seen(dv_mutant_kind mutant) {
    return tests[mutant] ? try_test(mutant) : replay(mutant);
}

static int replay_all(void) {
    int missed = 0;
    for (int m = 1; m < DV_MUTANT_COUNT; m++) missed += !is_seen((dv_mutant_kind)m);
    printf("mutants %d, missed %d\n", DV_MUTANT_COUNT - 1, missed);
    return missed ? 1 : 0;
}

static int search(dv_mutant_kind mutant, const sim_run_config *config) {
    static sim_run_result result;
    dv_mutant = mutant;
    sim_run(config, &result);
    if (result.found_count == 0) {
        printf("%-24s not found in %.1f s, %llu histories\n", names[mutant], result.seconds,
               (unsigned long long)result.coverage.histories);
        return 1;
    }
    const sim_found *f = &result.found[0];
    for (size_t i = 1; i < result.found_count; i++) {
        if (result.found[i].seed < f->seed) f = &result.found[i];
    }
    printf("%-24s seed %llu, %.1f s, %llu histories: %s: %s\n", names[mutant], (unsigned long long)f->seed,
           result.seconds, (unsigned long long)result.coverage.histories, f->violation.what, f->violation.text);
    return 0;
}

static int show(dv_mutant_kind mutant, uint64_t seed, bool shrink) {
    static sim_script script;
    static sim_coverage coverage;
    sim_violation violation;
    dv_mutant = mutant;
    sim_script_draw(&script, seed, SIM_KAZOO_SOMETIMES, recorded[mutant].theme);
    script.odd_answers = with_odd_answers[mutant];
    script.death_watch = with_death_watch[mutant];
    script.rolls = with_rolls[mutant];
    sim_script_print(&script);
    if (shrink) {
        sim_shrink(&script);
        return 0;
    }
    return sim_history(&script, NULL, true, &coverage, &violation) ? 1 : 0;
}

int main(int argc, char **argv) {
    sim_run_config config = {
        .seed = 1, .count = UINT32_MAX, .jobs = 1, .kazoo = SIM_KAZOO_SOMETIMES, .stop_at_first = true, .quiet = true};
    dv_mutant_kind mutant = DV_MUTANT_NONE;
    bool trace = false, shrink = false, again = false;
    FILE *file = NULL;
    printf("sim-mutants: commit %s\n", SIM_COMMIT);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(word, "--list") == 0) return list();
        if (strcmp(word, "--replay-all") == 0) return replay_all();
        trace |= strcmp(word, "--trace") == 0;
        shrink |= strcmp(word, "--shrink") == 0;
        again |= strcmp(word, "--replay") == 0;
        if (strcmp(word, "--trace") == 0 || strcmp(word, "--shrink") == 0 || strcmp(word, "--replay") == 0) continue;
        if (!value) refuse();
        if (strcmp(word, "--mutant") == 0) mutant = by_name(value);
        else if (strcmp(word, "--search") == 0) config.limit_ms = 1000 * atoll(value);
        else if (strcmp(word, "--seed") == 0) config.seed = strtoull(value, NULL, 10);
        else if (strcmp(word, "--jobs") == 0) config.jobs = (unsigned)atoi(value);
        else if (strcmp(word, "--steps") == 0) file = fopen(value, "w");
        else refuse();
        i++;
    }
    if (file && (config.jobs > 1 || !config.limit_ms)) refuse();
    sim_steps_to(file);
    if (mutant == DV_MUTANT_NONE || config.jobs < 1 || config.jobs > SIM_JOBS_MAX) refuse();
    if (again) return !is_seen(mutant);
    config.theme = recorded[mutant].theme;
    config.odd_answers = with_odd_answers[mutant];
    config.death_watch = with_death_watch[mutant];
    config.rolls = with_rolls[mutant];
    if (trace || shrink) return show(mutant, config.seed, shrink);
    return config.limit_ms ? search(mutant, &config) : (refuse(), 2);
}
