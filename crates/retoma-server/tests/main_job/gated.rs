//! A store with a gate before every start: what a test hands over is committed between the check and the start, the worst
//! moment there is. Everything else is the real store's.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use retoma_core::decision::Transition;
use retoma_core::event::Event;
use retoma_core::flow::Standing;
use retoma_core::ids::{ChannelName, ContactId, EventId, FlowName, TaskId, Tenant};
use retoma_core::keys::Key16;
use retoma_core::receipt::Arrivals;
use retoma_core::state::ContactView;
use retoma_core::task::Task;
use retoma_sqlite::SqliteStore;
use retoma_store::*;

/// Makes the events that are to be committed before these starts.
pub(crate) type Worst = Box<dyn FnMut(&[Start]) -> Vec<Intake> + Send>;

/// The store of every world.
#[derive(Clone)]
pub(crate) struct GatedStore {
    inner: SqliteStore,
    worst: Arc<Mutex<Option<Worst>>>,
    journal: Arc<Mutex<Journal>>,
}

/// What was decided, on what, in the order of the commits.
#[derive(Default)]
pub(crate) struct Journal {
    /// Views as they were loaded, the last one of each contact and version.
    seen: HashMap<(ContactId, u64), ContactView>,
    /// Accepted decisions about contacts, each with the view that it was taken on.
    pub(crate) decided: Vec<(ContactView, DecisionCommit)>,
}

impl GatedStore {
    pub(crate) fn new(inner: SqliteStore) -> Self {
        Self { inner, worst: Arc::default(), journal: Arc::default() }
    }

    /// Closes the real store.
    pub(crate) async fn close(self) {
        self.inner.close().await;
    }

    /// What was decided so far.
    pub(crate) fn journal(&self) -> Vec<(ContactView, DecisionCommit)> {
        self.journal.lock().unwrap().decided.clone()
    }

    /// From now on, commits what `worst` says before each batch of starts.
    pub(crate) fn at_the_worst_moment(&self, worst: Worst) {
        *self.worst.lock().unwrap() = Some(worst);
    }
}

impl Store for GatedStore {
    async fn append_events(&self, batch: Vec<Intake>) -> Result<Vec<Vec<Appended>>> {
        self.inner.append_events(batch).await
    }

    async fn known_keys(&self, keys: Vec<Key16>) -> Result<Vec<bool>> {
        self.inner.known_keys(keys).await
    }

    async fn move_events(&self, moves: EventMoves) -> Result<Vec<EventId>> {
        self.inner.move_events(moves).await
    }

    async fn load_pending(&self, query: PendingQuery) -> Result<Vec<Event>> {
        self.inner.load_pending(query).await
    }

    async fn load_contacts(
        &self,
        tenant_contacts: Vec<(Tenant, ContactId)>,
        now: Timestamp,
    ) -> Result<Vec<ContactView>> {
        let views = self.inner.load_contacts(tenant_contacts, now).await?;
        let mut journal = self.journal.lock().unwrap();
        for view in &views {
            journal.seen.insert((view.contact.id, view.contact.version), view.clone());
        }
        Ok(views)
    }

    async fn commit_decisions(&self, owner: Owner, batch: Vec<DecisionCommit>) -> Result<Vec<Committed>> {
        let answers = self.inner.commit_decisions(owner, batch.clone()).await?;
        let journal = &mut *self.journal.lock().unwrap();
        for (commit, answer) in batch.into_iter().zip(&answers) {
            let contact = commit.decision.contact.as_ref().map(|contact| contact.id);
            let view = contact.and_then(|id| journal.seen.get(&(id, commit.expected_version)));
            if let (Some(view), Committed::Done { .. }) = (view, answer) {
                journal.decided.push((view.clone(), commit));
            }
        }
        Ok(answers)
    }

    async fn park_event(&self, event: EventId, error: String, now: Timestamp) -> Result<()> {
        self.inner.park_event(event, error, now).await
    }

    async fn load_deadlines(&self, now: Timestamp, limit: usize) -> Result<Vec<DueDeadline>> {
        self.inner.load_deadlines(now, limit).await
    }

    async fn load_due(&self, query: DueQuery) -> Result<Due> {
        self.inner.load_due(query).await
    }

    async fn load_unsure(&self, limit: usize) -> Result<Vec<Unsure>> {
        self.inner.load_unsure(limit).await
    }

    async fn load_sightings(&self, questions: Vec<SightingQuery>) -> Result<Vec<Sightings>> {
        self.inner.load_sightings(questions).await
    }

    async fn claimed_messages(&self, tenant: Tenant, channel: ChannelName, ids: Vec<String>) -> Result<Vec<String>> {
        self.inner.claimed_messages(tenant, channel, ids).await
    }

    async fn add_evidence(&self, rows: Vec<Evidence>) -> Result<()> {
        self.inner.add_evidence(rows).await
    }

    async fn list_evidence(&self, tenant: Tenant, task: TaskId) -> Result<Vec<Evidence>> {
        self.inner.list_evidence(tenant, task).await
    }

    async fn load_local_tasks(&self, tenant: Tenant) -> Result<Vec<Task>> {
        self.inner.load_local_tasks(tenant).await
    }

    async fn plan_again(&self, tenant: Tenant, tasks: Vec<(TaskId, Timestamp)>, now: Timestamp) -> Result<usize> {
        self.inner.plan_again(tenant, tasks, now).await
    }

    async fn arrivals(&self, tenant: Tenant, channels: Vec<ChannelName>, now: Timestamp) -> Result<Vec<Arrivals>> {
        self.inner.arrivals(tenant, channels, now).await
    }

    async fn list_orphan_receipts(
        &self,
        tenant: Tenant,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<OrphanReceipt>> {
        self.inner.list_orphan_receipts(tenant, before, limit).await
    }

    async fn next_wake(&self) -> Result<NextWake> {
        self.inner.next_wake().await
    }

    async fn start_attempts(&self, owner: Owner, batch: Vec<Start>, now: Timestamp) -> Result<Vec<Started>> {
        let before = self.worst.lock().unwrap().as_mut().map(|worst| worst(&batch)).unwrap_or_default();
        if !before.is_empty() {
            self.inner.append_events(before).await?;
        }
        self.inner.start_attempts(owner, batch, now).await
    }

    async fn settle_tasks(&self, batch: Vec<Settle>, now: Timestamp) -> Result<Vec<bool>> {
        self.inner.settle_tasks(batch, now).await
    }

    async fn finish_attempts(&self, batch: Vec<Finish>) -> Result<Vec<bool>> {
        self.inner.finish_attempts(batch).await
    }

    async fn load_stuck(&self, started_before: Timestamp, limit: usize) -> Result<Vec<(Task, AttemptRow)>> {
        self.inner.load_stuck(started_before, limit).await
    }

    async fn schedule_tasks(&self, batch: Vec<Task>, actor: String) -> Result<Vec<(Task, bool)>> {
        self.inner.schedule_tasks(batch, actor).await
    }

    async fn cancel_tasks(&self, filter: TaskFilter, actor: String, now: Timestamp) -> Result<Vec<TaskId>> {
        self.inner.cancel_tasks(filter, actor, now).await
    }

    async fn reopen_tasks(&self, reopen: Reopen, actor: String, now: Timestamp) -> Result<Vec<TaskId>> {
        self.inner.reopen_tasks(reopen, actor, now).await
    }

    async fn merge_receipts(&self, batch: Vec<Receipt>) -> Result<()> {
        self.inner.merge_receipts(batch).await
    }

    async fn list_dead(&self, tenant: Tenant, page: Page) -> Result<Paged<DeadLetter>> {
        self.inner.list_dead(tenant, page).await
    }

    async fn move_dead(&self, moves: DeadMoves) -> Result<Vec<String>> {
        self.inner.move_dead(moves).await
    }

    async fn list_events(&self, tenant: Tenant, filter: EventFilter, page: Page) -> Result<Paged<EventRow>> {
        self.inner.list_events(tenant, filter, page).await
    }

    async fn get_event(&self, tenant: Tenant, id: EventId) -> Result<Option<EventRow>> {
        self.inner.get_event(tenant, id).await
    }

    async fn get_raw(&self, tenant: Tenant, id: EventId) -> Result<Option<RawRequest>> {
        self.inner.get_raw(tenant, id).await
    }

    async fn list_tasks(&self, tenant: Tenant, filter: TaskFilter, page: Page) -> Result<Paged<TaskRow>> {
        self.inner.list_tasks(tenant, filter, page).await
    }

    async fn get_task(&self, tenant: Tenant, id: TaskId) -> Result<Option<(TaskRow, Vec<AttemptRow>)>> {
        self.inner.get_task(tenant, id).await
    }

    async fn find_contacts(&self, tenant: Tenant, find: FindContact) -> Result<Vec<ContactId>> {
        self.inner.find_contacts(tenant, find).await
    }

    async fn list_transitions(&self, tenant: Tenant, contact: ContactId) -> Result<Vec<Transition>> {
        self.inner.list_transitions(tenant, contact).await
    }

    async fn stats(&self, now: Timestamp) -> Result<Stats> {
        self.inner.stats(now).await
    }

    async fn query_sql(&self, sql: String) -> Result<SqlRows> {
        self.inner.query_sql(sql).await
    }

    async fn acquire_leases(&self, request: LeaseRequest) -> Result<Lease> {
        self.inner.acquire_leases(request).await
    }

    async fn release_leases(&self, node: String) -> Result<()> {
        self.inner.release_leases(node).await
    }

    async fn beat(&self, beats: Vec<Heartbeat>) -> Result<()> {
        self.inner.beat(beats).await
    }

    async fn channel_states(&self, tenant: Tenant) -> Result<Vec<ChannelState>> {
        self.inner.channel_states(tenant).await
    }

    async fn set_channel_state(&self, state: ChannelState, actor: String) -> Result<()> {
        self.inner.set_channel_state(state, actor).await
    }

    async fn put_api_key(&self, key: ApiKey) -> Result<()> {
        self.inner.put_api_key(key).await
    }

    async fn publish_flows(&self, flows: Vec<PublishedFlow>) -> Result<Vec<bool>> {
        self.inner.publish_flows(flows).await
    }

    async fn list_flows(&self, tenant: Tenant, flow: Option<FlowName>, limit: usize) -> Result<Vec<PublishedFlow>> {
        self.inner.list_flows(tenant, flow, limit).await
    }

    async fn count_standing(&self, tenant: Tenant) -> Result<Vec<Standing>> {
        self.inner.count_standing(tenant).await
    }

    async fn list_api_keys(&self, tenant: Tenant) -> Result<Vec<ApiKey>> {
        self.inner.list_api_keys(tenant).await
    }

    async fn revoke_api_key(&self, tenant: Tenant, id: String, now: Timestamp) -> Result<bool> {
        self.inner.revoke_api_key(tenant, id, now).await
    }

    async fn append_audit(&self, rows: Vec<AuditRow>) -> Result<()> {
        self.inner.append_audit(rows).await
    }

    async fn list_audit(&self, tenant: Tenant, page: Page) -> Result<Paged<AuditRow>> {
        self.inner.list_audit(tenant, page).await
    }

    async fn gate(&self, calls: Vec<GateCall>, now: Timestamp) -> Result<Vec<GateAnswer>> {
        self.inner.gate(calls, now).await
    }

    async fn get_gate_key(&self, tenant: Tenant, scope: String, key: String) -> Result<Option<GateRecord>> {
        self.inner.get_gate_key(tenant, scope, key).await
    }

    async fn list_gate_keys(&self, tenant: Tenant, filter: GateFilter, page: Page) -> Result<Paged<GateRecord>> {
        self.inner.list_gate_keys(tenant, filter, page).await
    }

    async fn list_gate_held(&self, tenant: Tenant, scope: Option<String>, page: Page) -> Result<Paged<GateHeld>> {
        self.inner.list_gate_held(tenant, scope, page).await
    }

    async fn gate_scopes(&self, tenant: Tenant) -> Result<Vec<GateScope>> {
        self.inner.gate_scopes(tenant).await
    }

    async fn sweep_history(&self, keep: Retention, now: Timestamp) -> Result<bool> {
        self.inner.sweep_history(keep, now).await
    }

    async fn backup(&self, path: PathBuf) -> Result<()> {
        self.inner.backup(path).await
    }
}
