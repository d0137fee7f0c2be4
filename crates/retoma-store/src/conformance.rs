//! The conformance suite that every backend passes, written against the contract alone.
//!
//! Each case is a function that takes a fresh, empty store and panics where the store breaks a promise. Backends run every
//! case as a test of its own through [`conformance_cases!`](crate::conformance_cases), which is the one list of them:
//!
//! ```ignore
//! macro_rules! tests {
//!     ($($module:ident :: $case:ident,)*) => {$(
//!         #[tokio::test]
//!         async fn $case() {
//!             retoma_store::conformance::$module::$case(&fresh_store()).await;
//!         }
//!     )*};
//! }
//! retoma_store::conformance_cases!(tests);
//! ```
//!
//! It never sleeps, reads no clock and needs no runtime of its own. New promise in the contract, new case here.

#![allow(clippy::unwrap_used, reason = "every line of this module is a test")]

pub mod arrivals;
pub mod decisions;
pub mod dice;
pub mod ends;
pub mod equivalence;
pub mod events;
pub mod flows;
pub mod gate;
pub mod inbox;
pub mod leases;
pub mod merges;
pub mod operators;
pub mod people;
pub mod starts;
pub mod upkeep;
mod world;

use crate::Store;

/// Hands the list of cases to a macro of the caller's.
#[macro_export]
macro_rules! conformance_cases {
    ($callback:ident) => {
        $callback! {
            events::a_hundred_identical_deliveries_at_once_are_one_event,
            events::a_batch_dedupes_within_itself,
            events::keys_are_known_once_somebody_claimed_them,
            events::a_message_without_content_is_filled_by_the_copy_that_has_it,
            events::content_that_never_comes_is_counted,
            events::a_later_copy_without_content_takes_nothing_away,
            events::a_message_without_content_counts_as_written,
            events::the_same_key_with_another_body_is_kept_and_flagged,
            events::a_repetition_of_a_completed_event_reports_its_outcome,
            events::a_fact_known_under_another_key_is_stored_and_reaches_nobody,
            events::one_fact_told_twice_in_one_batch_happens_once,
            events::parts_of_one_request_are_stored_together_over_bytes_kept_once,
            events::bytes_come_back_as_they_came,
            events::a_repeated_request_keeps_no_second_copy_of_its_bytes,
            events::keys_of_two_tenants_are_apart,
            events::an_ignored_event_creates_nobody,
            events::a_receipt_in_an_event_is_merged_with_it,
            inbox::what_is_committed_is_pending_until_it_is_decided,
            inbox::a_rescan_finds_what_sorts_before_the_cursor,
            inbox::pending_is_oldest_first_and_bounded,
            inbox::events_without_a_contact_share_the_bucket_of_their_order,
            inbox::a_held_event_waits_for_a_person,
            inbox::a_discarded_event_never_enters_the_inbox,
            inbox::a_released_fact_that_became_known_meanwhile_is_ignored,
            inbox::a_replayed_event_enters_the_inbox_once_more,
            inbox::moving_what_cannot_move_changes_nothing,
            inbox::an_event_that_cannot_be_decided_becomes_a_dead_letter,
            people::both_spellings_of_a_mobile_are_one_contact,
            people::a_confirmed_spelling_is_not_replaced_by_a_guess,
            people::an_identity_that_comes_later_is_attached,
            people::an_email_alone_finds_its_contact,
            people::an_email_never_gives_a_contact_a_second_phone,
            people::an_email_without_a_phone_takes_the_first_one,
            people::one_transaction_is_evidence,
            people::the_phone_wins_over_the_transaction,
            people::five_messages_at_once_make_one_contact,
            people::a_payment_reaches_everybody_who_waits_for_it,
            people::a_released_payment_reaches_everybody_too,
            people::a_payment_reaches_who_talks_of_nothing_named_yet,
            people::a_payment_spares_who_waits_for_something_else,
            people::a_repeated_payment_spreads_no_further,
            people::one_candidate_given_to_two_people_makes_two_contacts,
            people::identities_of_two_tenants_are_apart,
            people::what_was_paid_is_delivered_to_the_best_match,
            people::an_echo_is_known_by_the_providers_id,
            merges::a_contact_that_gives_way_takes_everything_along,
            merges::what_names_the_one_that_gave_way_reaches_the_one_that_stays,
            merges::only_what_the_merge_closed_is_taken_over_and_once,
            merges::the_merge_blocks_every_start_until_it_is_decided,
            merges::whoever_is_forgotten_leaves_no_data_behind,
            merges::silence_outlives_forgetting,
            decisions::a_stale_decision_changes_nothing_and_its_neighbours_commit,
            decisions::an_event_is_decided_once,
            decisions::decisions_of_one_batch_build_on_each_other,
            decisions::a_task_id_is_claimed_once_for_ever,
            decisions::an_event_without_a_contact_is_only_recorded,
            decisions::the_transition_log_keeps_its_order,
            decisions::deadlines_fall_due_earliest_first,
            decisions::facts_of_an_order_are_seen_whichever_contact_holds_it,
            decisions::an_unknown_contact_is_left_out,
            equivalence::a_decision_leaves_what_apply_leaves,
            flows::what_takes_effect_is_kept_in_order_and_once,
            flows::conversations_are_counted_where_they_stand,
            starts::due_tasks_come_earliest_first_and_only_if_handed_over,
            starts::a_full_channel_hides_no_other_and_reminders_hide_no_answer,
            starts::a_task_is_started_once,
            starts::an_urgent_event_stops_every_start,
            starts::a_chat_message_stops_reminders_only,
            starts::money_under_another_contact_stops_a_reminder,
            starts::a_decision_since_the_check_sends_it_back,
            starts::what_is_sending_is_never_due_and_is_found_when_stuck,
            starts::the_check_settles_only_what_it_saw,
            starts::starts_of_the_last_seven_days_count_unless_surely_not_sent,
            ends::an_end_counts_once,
            ends::a_failure_is_tried_again_at_its_time,
            ends::a_try_that_does_not_count_burns_no_attempt,
            ends::a_number_is_respelled_once,
            ends::a_marked_task_ends_cancelled_unless_accepted,
            ends::what_nobody_knows_is_unsure_until_somebody_says,
            ends::the_one_resend_is_on_record,
            ends::what_is_given_up_becomes_a_dead_letter,
            ends::an_attempt_closed_before_a_byte_left_is_avoided,
            ends::receipts_in_any_order_say_the_same,
            ends::a_failed_receipt_is_overridden_by_delivery_only,
            ends::a_receipt_may_come_before_our_own_result,
            ends::each_receipt_keeps_its_first_time,
            ends::messages_of_our_own_are_found_by_their_contact,
            ends::evidence_is_kept_in_order,
            ends::a_late_echo_settles_what_the_policy_had_given_up,
            arrivals::messages_without_a_receipt_are_counted_apart,
            arrivals::a_channel_that_never_tells_is_known,
            arrivals::receipts_that_nobody_claims_are_listed,
            operators::scheduling_twice_promises_once,
            operators::promises_for_a_local_time_are_planned_anew,
            operators::cancelling_closes_what_waits_and_marks_what_is_under_way,
            operators::cancelling_needs_a_filter_and_keeps_to_it,
            operators::a_person_sends_again_what_ended,
            operators::a_person_settles_what_is_unsure,
            operators::dead_letters_are_retried_or_discarded,
            operators::stuck_tasks_are_one_query,
            operators::pages_follow_each_other_without_gap_or_repetition,
            operators::a_cursor_of_somebody_else_is_refused,
            leases::two_nodes_share_the_buckets,
            leases::renewing_changes_no_epoch,
            leases::a_lapsed_lease_is_taken_under_a_higher_epoch,
            leases::a_stale_epoch_commits_and_starts_nothing,
            leases::released_buckets_are_free_at_once,
            leases::a_node_sees_pending_events_of_its_buckets_only,
            gate::a_hundred_claims_at_once_proceed_once,
            gate::a_done_key_answers_its_result,
            gate::a_failed_key_is_taken_again_only_if_retryable,
            gate::another_fingerprint_is_refused_before_anything_else,
            gate::a_stale_token_writes_nothing,
            gate::a_lapsed_lease_waits_for_a_person_or_proceeds,
            gate::a_caller_whose_answer_was_lost_may_ask_again,
            gate::an_operator_frees_what_is_uncertain,
            gate::the_trail_tells_every_attempt,
            gate::scopes_and_tenants_are_apart,
            gate::a_person_may_say_that_it_was_done,
            gate::the_trail_tells_who_was_stopped,
            gate::a_result_that_is_too_large_is_left_out,
            gate::a_claim_without_a_key_leaves_evidence_only,
            gate::what_happened_is_counted_by_scope,
            gate::keys_are_listed_by_scope_and_status,
            gate::a_key_is_forgotten_after_its_time,
            upkeep::channels_keys_and_heartbeats_are_kept,
            upkeep::what_people_do_is_audited_newest_first,
            upkeep::counts_follow_what_happens,
            upkeep::sql_reads_and_refuses_to_write,
            upkeep::retention_removes_what_ended_and_keeps_what_is_claimed,
        }
    };
}

/// Runs every case on a store of its own.
pub async fn run<S: Store>(new_store: impl AsyncFn() -> S) {
    macro_rules! all {
        ($($module:ident :: $case:ident,)*) => {$(
            $module::$case(&new_store().await).await;
        )*};
    }
    conformance_cases!(all);
}
