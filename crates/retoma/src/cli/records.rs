//! What people ask of what is stored: events, contacts, tasks, flows, channels, dead letters, the gate, keys, the database.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Which page of a list.
#[derive(Args, Clone)]
pub(crate) struct PageArgs {
    /// At most so many rows, 1 to 500.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) limit: u16,
    /// Where the page before ended (its `next_cursor`).
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Event {
    /// List events, newest first.
    List {
        /// received, decided, ignored, held, quarantined, dead or discarded.
        #[arg(long)]
        status: Option<String>,
        /// The source's name.
        #[arg(long)]
        source: Option<String>,
        /// The canonical type, like payment.approved.
        #[arg(long = "type")]
        kind: Option<String>,
        /// Id, phone or e-mail of a contact.
        #[arg(long)]
        contact: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one event.
    Show {
        id: String,
        /// Print the body as it came, byte for byte, instead. Looking at it is put on record.
        #[arg(long)]
        raw: bool,
    },
    /// Have ended events decided once more; what was concluded is recognised, not repeated.
    Replay(Move),
    /// Let held or quarantined events through.
    Release(Move),
    /// End held, quarantined or dead events without an effect.
    Discard(Move),
}

#[derive(Args)]
pub(crate) struct Move {
    /// Ids of events.
    #[arg(required_unless_present = "status")]
    pub(crate) ids: Vec<String>,
    /// Instead of ids: every event of this status (held, quarantined, dead, ..).
    #[arg(long, conflicts_with = "ids")]
    pub(crate) status: Option<String>,
    /// Of those, only the ones of this source.
    #[arg(long, requires = "status")]
    pub(crate) source: Option<String>,
    /// Why, for the audit log.
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Contact {
    /// Show a contact with its open conversations.
    Show(Who),
    /// Show what will be sent, when, and what would stop it as things stand.
    Plan(Who),
    /// Show the whole story: events, decisions with their rule, messages and what stopped them.
    Why(Who),
    /// Withhold automatic messages until a time: a person is in the chat.
    Pause {
        #[command(flatten)]
        who: Who,
        /// Until when, like 18:00 or 2026-12-02T18:00:00-03:00.
        #[arg(long, conflicts_with = "for")]
        until: Option<String>,
        /// For how long, like 2h or 1d.
        #[arg(long = "for", value_name = "TIME", default_value = "4h")]
        r#for: String,
        /// Why, for the record.
        #[arg(long)]
        reason: Option<String>,
    },
    /// End a pause.
    Resume(WhoWhy),
    /// Record that this person wants no more messages.
    Optout(WhoWhy),
    /// Say that two contacts are one person: their cycles, promises and wishes come together.
    Link {
        #[command(flatten)]
        who: Who,
        /// The other one: id, phone or e-mail.
        #[arg(long = "with", value_name = "WHO")]
        with: String,
        /// Why, for the record.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Forget a person for good: what stays is proof without data, and a wish for silence.
    Erase {
        #[command(flatten)]
        who: Who,
        /// Yes, for good.
        #[arg(long)]
        yes: bool,
        /// Why, for the record.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Print everything that is kept of a person, as JSON.
    Export(Who),
    /// Move a conversation to another state of its flow.
    Move {
        #[command(flatten)]
        who: Who,
        /// The conversation's id; the only open one where nothing is said.
        #[arg(long)]
        conversation: Option<String>,
        /// The state.
        #[arg(long)]
        to: String,
        /// Why, for the record.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Args)]
pub(crate) struct Who {
    /// Id, phone or e-mail.
    #[arg(value_name = "WHO")]
    pub(crate) who: String,
}

#[derive(Args)]
pub(crate) struct WhoWhy {
    /// Id, phone or e-mail.
    #[arg(value_name = "WHO")]
    pub(crate) who: String,
    /// Why, for the record.
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Task {
    /// List tasks, newest first.
    List {
        /// Id, phone or e-mail of a contact.
        #[arg(long)]
        contact: Option<String>,
        /// scheduled, sending, sent, failed, cancelled, dead, held or unsure.
        #[arg(long)]
        status: Option<String>,
        /// The cadence or action, like pix_pendente.
        #[arg(long)]
        reason: Option<String>,
        /// The transaction.
        #[arg(long)]
        reference: Option<String>,
        /// The touch's number: 2 is the second one.
        #[arg(long)]
        touch: Option<u32>,
        /// Only those that the provider accepted a day ago or longer and that nothing was heard of since.
        #[arg(long)]
        no_receipt: bool,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a task with its attempts, and the evidence where its outcome was unknown.
    Show {
        /// The task's id, as `task list` shows it.
        id: String,
    },
    /// What is stuck right now: overdue, sending for too long, held, unsure.
    Stuck(PageArgs),
    /// Receipts of messages that no task is known to have sent: typed on the phone, or sent by another program.
    Orphans {
        /// Said at least this long ago.
        #[arg(long, value_name = "DURATION", default_value = "1h")]
        older_than: String,
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Promise a message. The same key twice is one message.
    Schedule(Schedule),
    /// Close waiting tasks: by id, or all of a contact, a transaction or a cadence.
    Cancel {
        /// Ids of tasks.
        ids: Vec<String>,
        /// Id, phone or e-mail of a contact.
        #[arg(long, conflicts_with = "ids")]
        contact: Option<String>,
        /// The transaction.
        #[arg(long, conflicts_with = "ids")]
        reference: Option<String>,
        /// The cadence or action.
        #[arg(long, conflicts_with = "ids")]
        reason: Option<String>,
    },
    /// Put held, dead, failed or cancelled tasks back, due now. The check before sending still has its say.
    Retry {
        /// Ids of tasks.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Settle a task whose outcome nobody knows. Look at its evidence first: retoma task show ID
    Resolve {
        /// The task's id.
        id: String,
        /// What you found out. `not_sent` puts it back, due now; the check before sending still has its say.
        #[arg(long = "as", value_parser = ["sent", "not_sent"])]
        outcome: String,
    },
}

#[derive(Args)]
pub(crate) struct Schedule {
    /// A key of your own for this very message, like order-9482:shipped:v1.
    #[arg(long)]
    pub(crate) key: String,
    /// Id, phone or e-mail of a contact.
    #[arg(long)]
    pub(crate) contact: String,
    /// A message of the flow.
    #[arg(long, conflicts_with = "text", required_unless_present = "text")]
    pub(crate) message: Option<String>,
    /// A text instead.
    #[arg(long)]
    pub(crate) text: Option<String>,
    /// When: an instant like 2026-12-02T10:00:00-03:00, or a local time that stays what it is whatever happens to clocks, like
    /// 2027-12-15T10:00[America/Sao_Paulo]; now where nothing is said.
    #[arg(long)]
    pub(crate) at: Option<String>,
    /// The channel; the one the contact last wrote through where nothing is said.
    #[arg(long)]
    pub(crate) channel: Option<String>,
    /// Types of events that cancel it, like payment.approved.
    #[arg(long, value_delimiter = ',')]
    pub(crate) cancel_on: Vec<String>,
    /// reminder, reply, receipt or optout_ack: which steps of the check apply.
    #[arg(long)]
    pub(crate) class: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Flow {
    /// List the flows that run: version, since when, how many conversations live; and how the last reload ended.
    List,
    /// List what took effect, newest first.
    History {
        /// Of this flow only.
        flow: Option<String>,
        /// Print the texts, too.
        #[arg(long)]
        text: bool,
    },
    /// Let the running server read its flow files anew. What is wrong with them changes nothing: the flows that ran run on.
    Reload,
}

#[derive(Subcommand)]
pub(crate) enum Channel {
    /// List channels: open, paused by a person, stopped by wrong credentials, or unreachable.
    List,
    /// Stop a channel. Its messages wait and are checked again when it runs; none fails and none is lost.
    Pause {
        /// The channel's name in the configuration.
        name: String,
        /// Why, for the record.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let a channel run again, whatever stopped it. What waited leaves slowly at first.
    Resume {
        /// The channel's name in the configuration.
        name: String,
        /// Why, for the record.
        #[arg(long)]
        reason: Option<String>,
    },
}

#[derive(Subcommand)]
pub(crate) enum Dead {
    /// List dead letters, newest first; of all, or of a filter.
    List {
        /// task or event.
        #[arg(long)]
        kind: Option<String>,
        /// Those of a source.
        #[arg(long)]
        source: Option<String>,
        /// Those of a flow.
        #[arg(long)]
        flow: Option<String>,
        /// Those given up for this reason, like recipient.
        #[arg(long)]
        cause: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one with its payload and errors.
    Show {
        /// The id of its task or event.
        id: String,
    },
    /// Try again, under the same keys.
    Retry(MoveDead),
    /// Put away for good; needs a reason.
    Discard(MoveDead),
}

#[derive(Subcommand)]
pub(crate) enum Gate {
    /// List scopes with what happened in each; or the keys of one scope, or in one status, newest first.
    List {
        /// The scope.
        scope: Option<String>,
        /// locked, uncertain (a person decides), done, failed, or held (claims that came without a key).
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Tell the trail of a key: was it executed, when, by which execution, how many repetitions were stopped, and why.
    Show {
        /// The scope.
        scope: String,
        /// The key.
        key: String,
    },
    /// Decide about a key that is uncertain or failed: the next caller may try; or, with --done, it was done after all.
    Release {
        /// The scope.
        scope: String,
        /// The key.
        key: String,
        /// The effect happened: later callers are told that it is done.
        #[arg(long)]
        done: bool,
        /// Why, for the audit log.
        #[arg(long)]
        reason: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct MoveDead {
    /// Ids of dead letters.
    #[arg(required_unless_present_any = ["all", "kind", "source", "flow", "cause"])]
    pub(crate) ids: Vec<String>,
    /// Every one of them.
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,
    /// task or event.
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    pub(crate) kind: Option<String>,
    /// Those of a source.
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    pub(crate) source: Option<String>,
    /// Those of a flow.
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    pub(crate) flow: Option<String>,
    /// Those given up for this reason.
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    pub(crate) cause: Option<String>,
    /// Only count them and show which; move nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Why, for the audit log.
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Key {
    /// Make a key and print it, this once.
    Create {
        name: String,
        /// How far it reaches.
        #[arg(long, default_value = "read", value_parser = ["read", "write", "admin"])]
        scope: String,
    },
    /// List keys.
    List,
    /// End a key.
    Revoke { id: String },
}

#[derive(Subcommand)]
pub(crate) enum Db {
    /// Bring the database to this version's schema (also happens when it is opened).
    Migrate,
    /// Write a consistent copy, while running or not.
    Backup { path: PathBuf },
    /// Put a copy in the database's place. The present one is kept beside it. No server may run.
    Restore { file: PathBuf },
    /// Counts by status, ages, size.
    Stats,
    /// Run one read-only statement on the views tarefas, conversas, transicoes, eventos, fluxo_batimento, idempotency_keys.
    Sql { statement: String },
}

#[derive(Subcommand)]
pub(crate) enum Audit {
    /// List who did what, newest first.
    List(PageArgs),
}
