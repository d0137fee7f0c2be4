//! The [`Store`] over threads: one writer, two readers, a checkpointer.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, mpsc as std_mpsc};
use std::thread::JoinHandle;

use jiff::Timestamp;
use retoma_core::decision::Transition;
use retoma_core::event::Event;
use retoma_core::flow::Standing;
use retoma_core::ids::{ChannelName, ContactId, EventId, FlowName, TaskId, Tenant};
use retoma_core::receipt::Arrivals;
use retoma_core::state::ContactView;
use retoma_core::task::Task;
use retoma_store::{
    ApiKey, Appended, AttemptRow, AuditRow, ChannelState, Committed, DeadLetter, DeadMoves, DecisionCommit, Due,
    DueDeadline, DueQuery, Error, EventFilter, EventMoves, EventRow, Evidence, FindContact, Finish, GateAnswer,
    GateCall, GateFilter, GateHeld, GateRecord, GateScope, Heartbeat, Intake, Lease, LeaseRequest, NextWake,
    OrphanReceipt, Owner, Page, Paged, PendingQuery, PublishedFlow, RawRequest, Receipt, Reopen, Result, Retention,
    Settle, SightingQuery, Sightings, SqlRows, Start, Started, Stats, Store, TaskFilter, TaskRow, Unsure,
};
use tokio::sync::{mpsc, oneshot};

use crate::database::Database;
use crate::options::Options;
use crate::readers::{self, Reader};
use crate::writer::{self, Call, Writer};
use crate::{OpenError, backup, checkpoint, leases};

/// The store on a SQLite file. Clones share it; [`close`](SqliteStore::close) ends it.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    options: Options,
    writer: mpsc::Sender<writer::Message>,
    /// For the loops.
    loads: mpsc::Sender<readers::Message>,
    /// For people.
    lists: mpsc::Sender<readers::Message>,
    poison: Arc<OnceLock<String>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, creating it where there is none, and starts the threads. Refused while another process, or another
    /// store of this one, has it open for writing.
    pub fn open(path: impl AsRef<Path>, options: Options) -> std::result::Result<Self, OpenError> {
        let path = path.as_ref();
        let mut database = Database::open(path, options.clone())?;
        let log = checkpoint::Log::default();
        let seen = Arc::clone(&log.pages);
        database.connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
            seen.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        let checkpointer = checkpoint::open(path, &options)?;
        let (loads, lists) = (reader(path, &options)?, reader(path, &options)?);
        let poison = Arc::new(OnceLock::new());
        let (wake, wakes) = std_mpsc::sync_channel(1);
        let keeper = checkpoint::Keeper::new(log.clone(), wake);
        let writer = Writer { database, poison: Arc::clone(&poison), keeper };
        let (to_writer, for_writer) = mpsc::channel(options.queue_max);
        let (to_loads, for_loads) = mpsc::channel(options.queue_max);
        let (to_lists, for_lists) = mpsc::channel(options.queue_max);
        let threads = vec![
            // The writer ends last of the readers' files: see `close`.
            spawn(path, "load", move || loads.run(for_loads))?,
            spawn(path, "list", move || lists.run(for_lists))?,
            spawn(path, "write", move || writer.run(for_writer))?,
            spawn(path, "checkpoint", move || checkpoint::run(&checkpointer, &wakes, &log))?,
        ];
        Ok(Self {
            inner: Arc::new(Inner {
                path: path.to_owned(),
                options,
                writer: to_writer,
                loads: to_loads,
                lists: to_lists,
                poison,
                threads: Mutex::new(threads),
            }),
        })
    }

    /// Commits what is queued, ends the threads, and gives the file back. Whoever calls a verb later gets
    /// [`Error::Closed`].
    pub async fn close(&self) {
        let inner = &self.inner;
        let _ = inner.writer.send(writer::Message::Stop).await;
        let _ = inner.loads.send(readers::Message::Stop).await;
        let _ = inner.lists.send(readers::Message::Stop).await;
        let threads = std::mem::take(&mut *inner.threads.lock().expect("no thread panics while it holds this lock"));
        // Joining blocks; a thread of its own tells us when it is done.
        let (done, ended) = oneshot::channel();
        std::thread::spawn(move || {
            threads.into_iter().for_each(|thread| drop(thread.join()));
            let _ = done.send(());
        });
        let _ = ended.await;
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Queues a writing verb and waits for its commit.
    async fn write<O: Send + 'static>(
        &self,
        items: usize,
        bytes: usize,
        verb: impl FnMut(&Database) -> Result<O> + Send + 'static,
    ) -> Result<O> {
        if let Some(why) = self.inner.poison.get() {
            return Err(Error::Poisoned(why.clone()));
        }
        let (caller, answer) = oneshot::channel();
        let job = Box::new(Call { verb, items, bytes, output: None, caller });
        self.inner.writer.send(writer::Message::Run(job)).await.map_err(|_| Error::Closed)?;
        answer.await.unwrap_or_else(|_| Err(self.gone()))
    }

    async fn read<O: Send + 'static>(
        &self,
        reader: &mpsc::Sender<readers::Message>,
        verb: impl FnOnce(&Database) -> Result<O> + Send + 'static,
    ) -> Result<O> {
        if let Some(why) = self.inner.poison.get() {
            return Err(Error::Poisoned(why.clone()));
        }
        let (read, answer) = readers::read(verb);
        reader.send(readers::Message::Run(read)).await.map_err(|_| Error::Closed)?;
        answer.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// A read of the loops.
    async fn load<O: Send + 'static>(&self, verb: impl FnOnce(&Database) -> Result<O> + Send + 'static) -> Result<O> {
        self.read(&self.inner.loads, verb).await
    }

    /// A read of people.
    async fn list<O: Send + 'static>(&self, verb: impl FnOnce(&Database) -> Result<O> + Send + 'static) -> Result<O> {
        self.read(&self.inner.lists, verb).await
    }

    fn gone(&self) -> Error {
        self.inner.poison.get().map_or(Error::Closed, |why| Error::Poisoned(why.clone()))
    }
}

fn reader(path: &Path, options: &Options) -> std::result::Result<Reader, OpenError> {
    Reader::new(Database::open_reader(path, options.clone())?)
}

fn spawn(
    path: &Path,
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> std::result::Result<JoinHandle<()>, OpenError> {
    std::thread::Builder::new()
        .name(format!("sqlite-{name}"))
        .spawn(run)
        .map_err(|source| OpenError::Io { path: path.to_owned(), source })
}

fn intake_bytes(batch: &[Intake]) -> usize {
    batch.iter().filter_map(|intake| intake.request.as_ref()).map(|request| request.body.len()).sum()
}

impl Store for SqliteStore {
    async fn append_events(&self, batch: Vec<Intake>) -> Result<Vec<Vec<Appended>>> {
        let items = batch.iter().map(|intake| intake.events.len()).sum();
        self.write(items, intake_bytes(&batch), move |database| database.append_events(&batch)).await
    }

    async fn move_events(&self, moves: EventMoves) -> Result<Vec<EventId>> {
        self.write(moves.ids.len(), 0, move |database| database.move_events(&moves)).await
    }

    async fn load_pending(&self, query: PendingQuery) -> Result<Vec<Event>> {
        self.load(move |database| database.load_pending(&query)).await
    }

    async fn load_contacts(
        &self,
        tenant_contacts: Vec<(Tenant, ContactId)>,
        now: Timestamp,
    ) -> Result<Vec<ContactView>> {
        self.load(move |database| database.load_contacts(&tenant_contacts, now)).await
    }

    async fn commit_decisions(&self, owner: Owner, batch: Vec<DecisionCommit>) -> Result<Vec<Committed>> {
        self.write(batch.len(), 0, move |database| database.commit_decisions(&owner, &batch)).await
    }

    async fn park_event(&self, event: EventId, error: String, now: Timestamp) -> Result<()> {
        self.write(1, 0, move |database| database.park_event(event, &error, now)).await
    }

    async fn load_deadlines(&self, now: Timestamp, limit: usize) -> Result<Vec<DueDeadline>> {
        self.load(move |database| database.load_deadlines(now, limit)).await
    }

    async fn load_due(&self, query: DueQuery) -> Result<Due> {
        self.load(move |database| database.load_due(&query)).await
    }

    async fn load_unsure(&self, limit: usize) -> Result<Vec<Unsure>> {
        self.load(move |database| database.load_unsure(limit)).await
    }

    async fn load_sightings(&self, questions: Vec<SightingQuery>) -> Result<Vec<Sightings>> {
        self.load(move |database| database.load_sightings(&questions)).await
    }

    async fn claimed_messages(&self, tenant: Tenant, channel: ChannelName, ids: Vec<String>) -> Result<Vec<String>> {
        self.load(move |database| database.claimed_messages(&tenant, &channel, &ids)).await
    }

    async fn add_evidence(&self, rows: Vec<Evidence>) -> Result<()> {
        self.write(rows.len(), 0, move |database| database.add_evidence(&rows)).await
    }

    async fn list_evidence(&self, tenant: Tenant, task: TaskId) -> Result<Vec<Evidence>> {
        self.list(move |database| database.list_evidence(&tenant, &task)).await
    }

    async fn load_local_tasks(&self, tenant: Tenant) -> Result<Vec<Task>> {
        self.load(move |database| database.load_local_tasks(&tenant)).await
    }

    async fn plan_again(&self, tenant: Tenant, tasks: Vec<(TaskId, Timestamp)>, now: Timestamp) -> Result<usize> {
        self.write(tasks.len(), 0, move |database| database.plan_tasks_again(&tenant, &tasks, now)).await
    }

    async fn arrivals(&self, tenant: Tenant, channels: Vec<ChannelName>, now: Timestamp) -> Result<Vec<Arrivals>> {
        self.list(move |database| database.arrivals(&tenant, &channels, now)).await
    }

    async fn list_orphan_receipts(
        &self,
        tenant: Tenant,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<OrphanReceipt>> {
        self.list(move |database| database.list_orphan_receipts(&tenant, before, limit)).await
    }

    async fn next_wake(&self) -> Result<NextWake> {
        self.load(|database| database.next_wake()).await
    }

    async fn start_attempts(&self, owner: Owner, batch: Vec<Start>, now: Timestamp) -> Result<Vec<Started>> {
        self.write(batch.len(), 0, move |database| database.start_attempts(&owner, &batch, now)).await
    }

    async fn settle_tasks(&self, batch: Vec<Settle>, now: Timestamp) -> Result<Vec<bool>> {
        self.write(batch.len(), 0, move |database| database.settle_tasks(&batch, now)).await
    }

    async fn finish_attempts(&self, batch: Vec<Finish>) -> Result<Vec<bool>> {
        self.write(batch.len(), 0, move |database| database.finish_attempts(&batch)).await
    }

    async fn load_stuck(&self, started_before: Timestamp, limit: usize) -> Result<Vec<(Task, AttemptRow)>> {
        self.load(move |database| database.load_stuck(started_before, limit)).await
    }

    async fn schedule_tasks(&self, batch: Vec<Task>, actor: String) -> Result<Vec<(Task, bool)>> {
        self.write(batch.len(), 0, move |database| database.schedule_tasks(&batch, &actor)).await
    }

    async fn cancel_tasks(&self, filter: TaskFilter, actor: String, now: Timestamp) -> Result<Vec<TaskId>> {
        self.write(1, 0, move |database| database.cancel_tasks(&filter, &actor, now)).await
    }

    async fn reopen_tasks(&self, reopen: Reopen, actor: String, now: Timestamp) -> Result<Vec<TaskId>> {
        self.write(reopen.ids.len(), 0, move |database| database.reopen_tasks(&reopen, &actor, now)).await
    }

    async fn merge_receipts(&self, batch: Vec<Receipt>) -> Result<()> {
        self.write(batch.len(), 0, move |database| database.merge_receipts(&batch)).await
    }

    async fn list_dead(&self, tenant: Tenant, page: Page) -> Result<Paged<DeadLetter>> {
        self.list(move |database| database.list_dead(&tenant, &page)).await
    }

    async fn move_dead(&self, moves: DeadMoves) -> Result<Vec<String>> {
        self.write(moves.ids.len().max(1), 0, move |database| database.move_dead(&moves)).await
    }

    async fn list_events(&self, tenant: Tenant, filter: EventFilter, page: Page) -> Result<Paged<EventRow>> {
        self.list(move |database| database.list_events(&tenant, &filter, &page)).await
    }

    async fn get_event(&self, tenant: Tenant, id: EventId) -> Result<Option<EventRow>> {
        self.list(move |database| database.get_event(&tenant, id)).await
    }

    async fn known_keys(&self, keys: Vec<retoma_core::keys::Key16>) -> Result<Vec<bool>> {
        self.write(1, 0, move |database| database.known_keys(&keys)).await
    }

    async fn get_raw(&self, tenant: Tenant, id: EventId) -> Result<Option<RawRequest>> {
        self.list(move |database| database.get_raw(&tenant, id)).await
    }

    async fn list_tasks(&self, tenant: Tenant, filter: TaskFilter, page: Page) -> Result<Paged<TaskRow>> {
        self.list(move |database| database.list_tasks(&tenant, &filter, &page)).await
    }

    async fn get_task(&self, tenant: Tenant, id: TaskId) -> Result<Option<(TaskRow, Vec<AttemptRow>)>> {
        self.list(move |database| database.get_task(&tenant, &id)).await
    }

    async fn find_contacts(&self, tenant: Tenant, find: FindContact) -> Result<Vec<ContactId>> {
        self.list(move |database| database.find_contacts(&tenant, &find)).await
    }

    async fn list_transitions(&self, tenant: Tenant, contact: ContactId) -> Result<Vec<Transition>> {
        self.list(move |database| database.list_transitions(&tenant, contact)).await
    }

    async fn stats(&self, now: Timestamp) -> Result<Stats> {
        self.list(move |database| database.stats(now)).await
    }

    async fn query_sql(&self, sql: String) -> Result<SqlRows> {
        self.list(move |database| database.query_sql(&sql)).await
    }

    async fn acquire_leases(&self, request: LeaseRequest) -> Result<Lease> {
        if !request.explicit {
            return Ok(leases::everything(&request, (self.inner.options.clock)()));
        }
        self.write(1, 0, move |database| database.acquire_leases(&request)).await
    }

    async fn release_leases(&self, node: String) -> Result<()> {
        self.write(1, 0, move |database| database.release_leases(&node)).await
    }

    async fn beat(&self, beats: Vec<Heartbeat>) -> Result<()> {
        self.write(1, 0, move |database| database.beat(&beats)).await
    }

    async fn channel_states(&self, tenant: Tenant) -> Result<Vec<ChannelState>> {
        self.load(move |database| database.channel_states(&tenant)).await
    }

    async fn set_channel_state(&self, state: ChannelState, actor: String) -> Result<()> {
        self.write(1, 0, move |database| database.set_channel_state(&state, &actor)).await
    }

    async fn put_api_key(&self, key: ApiKey) -> Result<()> {
        self.write(1, 0, move |database| database.put_api_key(&key)).await
    }

    async fn publish_flows(&self, flows: Vec<PublishedFlow>) -> Result<Vec<bool>> {
        self.write(flows.len(), 0, move |database| database.publish_flows(&flows)).await
    }

    async fn list_flows(&self, tenant: Tenant, flow: Option<FlowName>, limit: usize) -> Result<Vec<PublishedFlow>> {
        self.list(move |database| database.list_flows(&tenant, flow.as_ref(), limit)).await
    }

    async fn count_standing(&self, tenant: Tenant) -> Result<Vec<Standing>> {
        self.list(move |database| database.count_standing(&tenant)).await
    }

    async fn list_api_keys(&self, tenant: Tenant) -> Result<Vec<ApiKey>> {
        self.list(move |database| database.list_api_keys(&tenant)).await
    }

    async fn revoke_api_key(&self, tenant: Tenant, id: String, now: Timestamp) -> Result<bool> {
        self.write(1, 0, move |database| database.revoke_api_key(&tenant, &id, now)).await
    }

    async fn append_audit(&self, rows: Vec<AuditRow>) -> Result<()> {
        self.write(rows.len(), 0, move |database| database.append_audit(&rows)).await
    }

    async fn list_audit(&self, tenant: Tenant, page: Page) -> Result<Paged<AuditRow>> {
        self.list(move |database| database.list_audit(&tenant, &page)).await
    }

    async fn gate(&self, calls: Vec<GateCall>, now: Timestamp) -> Result<Vec<GateAnswer>> {
        self.write(calls.len(), 0, move |database| database.gate(&calls, now)).await
    }

    async fn get_gate_key(&self, tenant: Tenant, scope: String, key: String) -> Result<Option<GateRecord>> {
        self.list(move |database| database.get_gate_key(&tenant, &scope, &key)).await
    }

    async fn list_gate_keys(&self, tenant: Tenant, filter: GateFilter, page: Page) -> Result<Paged<GateRecord>> {
        self.list(move |database| database.list_gate_keys(&tenant, &filter, &page)).await
    }

    async fn list_gate_held(&self, tenant: Tenant, scope: Option<String>, page: Page) -> Result<Paged<GateHeld>> {
        self.list(move |database| database.list_gate_held(&tenant, scope.as_deref(), &page)).await
    }

    async fn gate_scopes(&self, tenant: Tenant) -> Result<Vec<GateScope>> {
        self.list(move |database| database.gate_scopes(&tenant)).await
    }

    async fn sweep_history(&self, keep: Retention, now: Timestamp) -> Result<bool> {
        // Counts as a full batch: what came before commits with it, what comes after waits one slice at most.
        let items = self.inner.options.commit_items_max;
        self.write(items, 0, move |database| database.sweep_history(&keep, now)).await
    }

    async fn backup(&self, path: PathBuf) -> Result<()> {
        let database = self.inner.path.clone();
        let (done, answer) = oneshot::channel();
        // A copy takes as long as the disk wants; neither readers nor the runtime wait for it.
        std::thread::Builder::new()
            .name("sqlite-backup".to_owned())
            .spawn(move || {
                let _ = done.send(backup::run(&database, &path));
            })
            .map_err(|error| Error::Other(format!("backup: {error}")))?;
        answer.await.unwrap_or(Err(Error::Closed))
    }
}
