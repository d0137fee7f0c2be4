//! The Store contract: the verbs of Retoma's protocol, in batches, with their promises.
//!
//! **Execution model.** Every verb takes a whole batch and is one transaction: all of it is on synced storage when the
//! future resolves to `Ok`, or none of it is. A store may join several verbs that wait at the same time into one commit
//! (natural group commit); callers cannot tell. Verbs may be called from any task; cancelling the future does not cancel
//! the work.
//!
//! **Who may write what** (DESIGN.md, "One writer per contact"). *Facts* (`append_events`, receipts, attempt results, gate
//! calls, operator commands) are inserts and merges by anybody. *Decisions* name the owner's epoch. *Task status* moves
//! by compare-and-set only.
//!
//! **Not here:** SQL, threads, and any rule of the domain. What a decision *means* is `Decision::apply` in `retoma-core`;
//! a store must leave the rows that `apply` would leave, and the suite in `conformance` (feature `conformance`) holds it to that.

use std::future::Future;

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod error;
pub mod types;

pub use error::{Error, Result};
pub use types::*;

use jiff::Timestamp;
use retoma_core::decision::Decision;
use retoma_core::flow::Standing;
use retoma_core::ids::{ChannelName, ContactId, EventId, FlowName, TaskId, Tenant};
use retoma_core::keys::Key16;
use retoma_core::receipt::Arrivals;
use retoma_core::state::ContactView;
use retoma_core::task::Task;

/// The contract. Generic code takes `S: Store`; the binary chooses the backend.
pub trait Store: Clone + Send + Sync + 'static {
    // ---- facts: events -------------------------------------------------------------------------------------------

    /// Recognises and stores the events of many requests, each request's parts together (A5, A6).
    ///
    /// In this order, in one transaction: delivery keys (a batch dedupes within itself first), business keys, contacts
    /// and identities under their match keys, payment facts, the event rows, the raw bytes. For each part the answer says
    /// whether it is new, a repetition (counted on the first event; `altered` if the body digest differs, and then the new
    /// bytes are kept), or a fact that was known under another delivery key (stored as `ignored`, reason
    /// `repeated_fact`, and sent to no contact).
    ///
    /// An event that was ignored because its content was not there yet (reason `content_pending`) is filled by the first
    /// copy of its key that is to be decided: it keeps its id, takes over everything else from that copy, enters the inbox,
    /// and is answered as new. Further copies without content change nothing and flag nothing (FC-06). Such a message moves
    /// its known contact's last inbound time forward: somebody wrote, whatever it will say.
    ///
    /// A payment-type event whose identities (order, phone, e-mail) name further contacts with open conversations becomes a
    /// child event (key derived from the parent's and the contact) in each of their inboxes (C11 "cancel wide").
    ///
    /// A message of our own that comes back with its text (an echo) after the policy had judged its send proves that send: the
    /// same text to the same contact through the same channel, within the window of [`retoma_core::evidence::Wanted`], of a
    /// task that is `held` as `unconfirmed`, or `sent` without the provider's id. Such a task becomes `sent` under that id, with
    /// a row of evidence; it is never a word of a person (E4).
    /// Never merges contacts.
    fn append_events(&self, batch: Vec<Intake>) -> impl Future<Output = Result<Vec<Vec<Appended>>>> + Send;

    /// Which of these delivery or business keys were claimed already. A hint: another intake may claim one right after.
    fn known_keys(&self, keys: Vec<Key16>) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// Releases, discards or replays held, quarantined or ended events; one audit row each. A released or replayed event
    /// becomes `received` and enters the inbox again; what was concluded under derived keys is recognised, not repeated.
    fn move_events(&self, moves: EventMoves) -> impl Future<Output = Result<Vec<EventId>>> + Send;

    // ---- decisions -----------------------------------------------------------------------------------------------

    /// Events in the inbox (committed, not decided) of the owner's buckets, oldest first: those newer than `after`, plus
    /// every one received since `rescan_from`, so that late commits cannot hide. At most `limit`.
    fn load_pending(&self, query: PendingQuery) -> impl Future<Output = Result<Vec<retoma_core::event::Event>>> + Send;

    /// Everything `decide` and the check may look at, as of the last commit, in the order asked for. Unknown ids are left
    /// out.
    fn load_contacts(
        &self,
        tenant_contacts: Vec<(Tenant, ContactId)>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<ContactView>>> + Send;

    /// Commits decisions (C3). Each is accepted only if the owner's epoch still holds its bucket, the contact's version is
    /// `expected_version`, and each of its events is still in the inbox; otherwise that one is `Stale` and changes
    /// nothing, while its neighbours commit. The inbox rows go, the event rows get their end. New task ids are claimed in
    /// the dedupe table; one that was claimed before adds no task and is reported in `already_claimed`.
    fn commit_decisions(
        &self,
        owner: Owner,
        batch: Vec<DecisionCommit>,
    ) -> impl Future<Output = Result<Vec<Committed>>> + Send;

    /// Marks an event that could not be decided `attempts` times as `dead`, with the error, out of the inbox.
    fn park_event(&self, event: EventId, error: String, now: Timestamp) -> impl Future<Output = Result<()>> + Send;

    /// Conversations whose deadline is at or before `now`, earliest first.
    fn load_deadlines(&self, now: Timestamp, limit: usize) -> impl Future<Output = Result<Vec<DueDeadline>>> + Send;

    // ---- tasks ---------------------------------------------------------------------------------------------------

    /// Tasks that are `scheduled` or `failed`, handed over, and due at or before `now`. Of each channel that is not skipped
    /// at most `limit` reminders and as many others, earliest first; the whole answer in the order of due times, others
    /// before reminders. What is due on a skipped channel costs nothing, however much it is.
    fn load_due(&self, query: DueQuery) -> impl Future<Output = Result<Due>> + Send;

    /// Tasks that are `unsure`, with the attempt in question, those whose time for evidence ends first in front.
    fn load_unsure(&self, limit: usize) -> impl Future<Output = Result<Vec<Unsure>>> + Send;

    /// For each question: messages of our own to that contact that events tell of since then (echoes, what a person typed,
    /// receipts), and which of them belong to a task already.
    fn load_sightings(&self, questions: Vec<SightingQuery>) -> impl Future<Output = Result<Vec<Sightings>>> + Send;

    /// Which of these provider message ids belong to a task already.
    fn claimed_messages(
        &self,
        tenant: Tenant,
        channel: ChannelName,
        ids: Vec<String>,
    ) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Adds to the evidence of tasks (E4). Append only; rows of unknown tasks are dropped.
    fn add_evidence(&self, rows: Vec<Evidence>) -> impl Future<Output = Result<()>> + Send;

    /// The evidence of a task, oldest first.
    fn list_evidence(&self, tenant: Tenant, task: TaskId) -> impl Future<Output = Result<Vec<Evidence>>> + Send;

    /// The earliest deadline, and the earliest time at which a task falls due or an unsure one runs out of time; both may
    /// have passed.
    fn next_wake(&self) -> impl Future<Output = Result<NextWake>> + Send;

    /// Commits start rows: the point of no return (DESIGN.md). For each start, in the same transaction: the task is still
    /// `scheduled` or `failed` with `attempts` as seen; the contact's version is as seen; no urgent undecided event of the
    /// contact exists (and none at all where `block_on_chat`); no payment fact of rank 30 or more exists for `unpaid` that
    /// was not there before. Then status `sending`, attempts + 1, attempt row `started`. Otherwise nothing changes for it,
    /// and the answer says why.
    fn start_attempts(
        &self,
        owner: Owner,
        batch: Vec<Start>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Started>>> + Send;

    /// Commits what the check said about tasks that will not start now: avoided, deferred, held. Compare-and-set on
    /// `scheduled|failed` with `attempts` as seen. Answers whether each took effect.
    fn settle_tasks(&self, batch: Vec<Settle>, now: Timestamp) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// Waiting tasks that were promised for a local time and not tried yet.
    fn load_local_tasks(&self, tenant: Tenant) -> impl Future<Output = Result<Vec<Task>>> + Send;

    /// Gives waiting tasks that were not tried yet another time. Answers how many took it.
    fn plan_again(
        &self,
        tenant: Tenant,
        tasks: Vec<(TaskId, Timestamp)>,
        now: Timestamp,
    ) -> impl Future<Output = Result<usize>> + Send;

    /// Records ends of attempts. Truth may come late: accepted from any node at any time; the attempt row's end is written
    /// once. The task moves only if it is still `sending` with that attempt, or `unsure` with it (then a policy or late
    /// evidence settles it: the row keeps its first end, the evidence is added to its error). A task marked as cancelled
    /// meanwhile ends `cancelled` unless accepted (`unsure` is no end yet). A retry that does not count gives its attempt
    /// back: `attempts` is what it was, and the next start takes the same number. `dead` writes the dead letter (E7). Writes
    /// the provider-message row of E6. Answers whether each end was taken.
    fn finish_attempts(&self, batch: Vec<Finish>) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// Tasks in `sending` whose start is older than `started_before`, with the attempt that is open (D7).
    fn load_stuck(
        &self,
        started_before: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Task, AttemptRow)>>> + Send;

    /// Adds tasks asked for through the API. The id is claimed as in `commit_decisions`; answers the stored task either
    /// way.
    fn schedule_tasks(&self, batch: Vec<Task>, actor: String)
    -> impl Future<Output = Result<Vec<(Task, bool)>>> + Send;

    /// Closes every waiting task that matches, in one statement, and marks those under way; with an audit row. Answers
    /// the tasks. A filter that names nothing beyond the tenant is refused.
    fn cancel_tasks(
        &self,
        filter: TaskFilter,
        actor: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<TaskId>>> + Send;

    /// Puts ended or held tasks back to `scheduled`, due now (`retry`), or settles an `unsure` or `held` one as sent or not
    /// sent (`resolve`); with audit rows. Ids keep their claim.
    fn reopen_tasks(
        &self,
        reopen: Reopen,
        actor: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<TaskId>>> + Send;

    /// For each channel: of its newest messages (at most 200) that were accepted between a week and `SILENT_AFTER` before
    /// `now`, how many were never heard of again (FC-78).
    fn arrivals(
        &self,
        tenant: Tenant,
        channels: Vec<ChannelName>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Arrivals>>> + Send;

    /// Receipts of messages that no task claims, said last at or before `before`, newest first (FC-28).
    fn list_orphan_receipts(
        &self,
        tenant: Tenant,
        before: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<OrphanReceipt>>> + Send;

    /// Merges receipts (E6): one row per (channel, provider message id), monotonic.
    fn merge_receipts(&self, batch: Vec<Receipt>) -> impl Future<Output = Result<()>> + Send;

    // ---- dead letters --------------------------------------------------------------------------------------------

    /// Dead letters, newest first.
    fn list_dead(&self, tenant: Tenant, page: Page) -> impl Future<Output = Result<Paged<DeadLetter>>> + Send;

    /// Retries or discards dead letters by id or all of a filter; with audit rows. Answers the ids it took.
    fn move_dead(&self, moves: DeadMoves) -> impl Future<Output = Result<Vec<String>>> + Send;

    // ---- reading -------------------------------------------------------------------------------------------------

    /// Events, newest first.
    fn list_events(
        &self,
        tenant: Tenant,
        filter: EventFilter,
        page: Page,
    ) -> impl Future<Output = Result<Paged<EventRow>>> + Send;

    /// One event.
    fn get_event(&self, tenant: Tenant, id: EventId) -> impl Future<Output = Result<Option<EventRow>>> + Send;

    /// The bytes as they came, with the chosen headers.
    fn get_raw(&self, tenant: Tenant, id: EventId) -> impl Future<Output = Result<Option<RawRequest>>> + Send;

    /// Tasks, live and finished, newest first.
    fn list_tasks(
        &self,
        tenant: Tenant,
        filter: TaskFilter,
        page: Page,
    ) -> impl Future<Output = Result<Paged<TaskRow>>> + Send;

    /// One task with its attempts.
    fn get_task(
        &self,
        tenant: Tenant,
        id: TaskId,
    ) -> impl Future<Output = Result<Option<(TaskRow, Vec<AttemptRow>)>>> + Send;

    /// Contacts holding that identity (by match key), best first; a UUID finds by id.
    fn find_contacts(&self, tenant: Tenant, find: FindContact) -> impl Future<Output = Result<Vec<ContactId>>> + Send;

    /// The transition log of a contact, oldest first.
    fn list_transitions(
        &self,
        tenant: Tenant,
        contact: ContactId,
    ) -> impl Future<Output = Result<Vec<retoma_core::decision::Transition>>> + Send;

    /// Counts for status page, `db stats` and health.
    fn stats(&self, now: Timestamp) -> impl Future<Output = Result<Stats>> + Send;

    /// Runs one read-only statement and answers its rows as JSON (`db sql`). Refuses anything that writes.
    fn query_sql(&self, sql: String) -> impl Future<Output = Result<SqlRows>> + Send;

    // ---- flows ---------------------------------------------------------------------------------------------------

    /// Records flows that take effect (C15). One whose text is that of the flow's last record adds nothing. Answers, for
    /// each, whether it was recorded.
    fn publish_flows(&self, flows: Vec<PublishedFlow>) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// What took effect, newest first; of one flow where it is named.
    fn list_flows(
        &self,
        tenant: Tenant,
        flow: Option<FlowName>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<PublishedFlow>>> + Send;

    /// How many conversations that are not closed stand in each state of each flow (M1). Counts; for rare questions.
    fn count_standing(&self, tenant: Tenant) -> impl Future<Output = Result<Vec<Standing>>> + Send;

    // ---- leases, heartbeats, channels, keys, audit, gate ---------------------------------------------------------

    /// Renews the node's lease and takes buckets that are free, answering what it owns. On a store with one process every
    /// bucket is the caller's at epoch 1 without I/O, unless `explicit`.
    fn acquire_leases(&self, request: LeaseRequest) -> impl Future<Output = Result<Lease>> + Send;

    /// Gives the node's buckets back.
    fn release_leases(&self, node: String) -> impl Future<Output = Result<()>> + Send;

    /// Marks the end of a loop's round.
    fn beat(&self, beats: Vec<Heartbeat>) -> impl Future<Output = Result<()>> + Send;

    /// The state of every channel that was ever stopped.
    fn channel_states(&self, tenant: Tenant) -> impl Future<Output = Result<Vec<ChannelState>>> + Send;

    /// Stops or resumes a channel; with an audit row.
    fn set_channel_state(&self, state: ChannelState, actor: String) -> impl Future<Output = Result<()>> + Send;

    /// Stores an API key's hash.
    fn put_api_key(&self, key: ApiKey) -> impl Future<Output = Result<()>> + Send;

    /// Keys that are not revoked.
    fn list_api_keys(&self, tenant: Tenant) -> impl Future<Output = Result<Vec<ApiKey>>> + Send;

    /// Revokes a key; `false` if there is none of that id.
    fn revoke_api_key(&self, tenant: Tenant, id: String, now: Timestamp) -> impl Future<Output = Result<bool>> + Send;

    /// Appends to the audit log.
    fn append_audit(&self, rows: Vec<AuditRow>) -> impl Future<Output = Result<()>> + Send;

    /// The audit log, newest first.
    fn list_audit(&self, tenant: Tenant, page: Page) -> impl Future<Output = Result<Paged<AuditRow>>> + Send;

    /// Claims, renews, completes, fails or releases gate keys (B1-B7); each answers the key's record after it. A stored
    /// result never changes, at most one claim of a key is live, and a token that is not the owner's writes nothing.
    fn gate(&self, calls: Vec<GateCall>, now: Timestamp) -> impl Future<Output = Result<Vec<GateAnswer>>> + Send;

    /// A key's trail: its record with every attempt and the repetitions that were stopped (B6).
    fn get_gate_key(
        &self,
        tenant: Tenant,
        scope: String,
        key: String,
    ) -> impl Future<Output = Result<Option<GateRecord>>> + Send;

    /// Gate keys, newest first.
    fn list_gate_keys(
        &self,
        tenant: Tenant,
        filter: GateFilter,
        page: Page,
    ) -> impl Future<Output = Result<Paged<GateRecord>>> + Send;

    /// Claims without a usable key, newest first (B5).
    fn list_gate_held(
        &self,
        tenant: Tenant,
        scope: Option<String>,
        page: Page,
    ) -> impl Future<Output = Result<Paged<GateHeld>>> + Send;

    /// Every scope that was ever used, with what happened in it (B7).
    fn gate_scopes(&self, tenant: Tenant) -> impl Future<Output = Result<Vec<GateScope>>> + Send;

    /// Removes what its retention no longer keeps, receipts that no task claims with the events, in slices of at most 50 ms. Answers whether more is left.
    fn sweep_history(&self, keep: Retention, now: Timestamp) -> impl Future<Output = Result<bool>> + Send;

    /// Writes a consistent copy of the database to a path while running.
    fn backup(&self, path: std::path::PathBuf) -> impl Future<Output = Result<()>> + Send;
}

/// One decision with what it was based on.
#[derive(Clone, Debug)]
pub struct DecisionCommit {
    /// Whose data.
    pub tenant: Tenant,
    /// The bucket, checked against the owner's epoch.
    pub bucket: retoma_core::ids::BucketNo,
    /// The contact's version it was decided on; 0 and no contact for events without one.
    pub expected_version: u64,
    /// What was decided.
    pub decision: Decision,
    /// When.
    pub now: Timestamp,
}
