//! The command line: what there is, in words for somebody who sees it for the first time.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Retoma stands between the webhooks and the money: it receives events durably, recognises each once, decides by the state
/// of the conversation, and sends the right message at the right time, once, if its reason still holds.
#[derive(Parser)]
#[command(
    name = "retoma",
    version,
    after_help = "\
Start here:    retoma demo                     the whole of it on invented events, with a live page
               retoma init minha-loja          a commented setup of your own; then: cd minha-loja && retoma serve
Look around:   retoma task list                what was promised, what left, what was avoided and why
               retoma contact why PHONE        the whole story of one person
               retoma task stuck               what needs a person now
Try safely:    retoma fake evolution --help    a fake WhatsApp with faults to order
Each command explains itself with --help."
)]
pub(crate) struct Cli {
    /// The configuration file; flows lie beside it in flows/*.yaml.
    #[arg(long, global = true, value_name = "FILE", env = "RETOMA_CONFIG", default_value = "retoma.toml")]
    pub(crate) config: PathBuf,
    /// Print JSON instead of text; the last line of stdout is one object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Write a commented, runnable setup into a new folder.
    Init(Init),
    /// Run: receive webhooks, decide, send, show the status page. Ctrl-C or SIGTERM ends it in order.
    Serve(Serve),
    /// See the main job done on invented events, with a fake provider and a live page. Needs no configuration.
    Demo(crate::demo::DemoArgs),
    /// Run a fake provider on a local port, with a delivery log and faults to order.
    Fake(crate::fake_cmd::FakeArgs),
    /// Check the configuration and the flows, without starting anything. Every finding names file, line and fix.
    Check(Check),
    /// Run the scenarios of flow files on a virtual clock. Nothing is sent.
    Test(Test),
    /// Show which rule of a flow understands a text, and why.
    Classify(Classify),
    /// Draw a flow: states, rows, clocks and touches.
    Graph(Graph),
    /// Play conversations on a virtual clock and print them. Nothing is sent.
    Simulate(Simulate),
    /// Events: what came in and what became of it.
    #[command(subcommand)]
    Event(Event),
    /// People: where they stand, what will be sent to them, and why.
    #[command(subcommand)]
    Contact(Contact),
    /// Promised messages: look, schedule, cancel, try again, settle.
    #[command(subcommand)]
    Task(Task),
    /// Dead letters: what was given up, with its evidence.
    #[command(subcommand)]
    Dead(Dead),
    /// The idempotency gate: what flows elsewhere asked for, what was stopped, what a person must decide.
    #[command(subcommand)]
    Gate(Gate),
    /// Channels: how each way out stands; stop one and let it run again.
    #[command(subcommand)]
    Channel(Channel),
    /// Flows: which version runs, who stands where, what ran before; read the files anew.
    #[command(subcommand)]
    Flow(Flow),
    /// Keys of the API. A key is shown once, when it is made.
    #[command(subcommand)]
    Key(Key),
    /// The database: upgrade, copy, restore, count, ask.
    #[command(subcommand)]
    Db(Db),
    /// The audit log: who did what.
    #[command(subcommand)]
    Audit(Audit),
    /// Look whether this installation can keep its promises: configuration, disk, clock, channels.
    Doctor,
    /// Print a completion script: retoma completions bash > /etc/bash_completion.d/retoma
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write manual pages into a folder, one per command.
    Man {
        /// The folder; made where it does not exist.
        dir: PathBuf,
    },
    /// Measure this machine beside a null server: every commit synced, losses counted.
    Bench(crate::bench::BenchArgs),
    /// The server that `bench` measures.
    #[command(hide = true)]
    BenchServe(crate::bench::ServeArgs),
}

impl Command {
    /// Whether it runs until it is told to stop, and says what it does meanwhile.
    pub(crate) fn is_service(&self) -> bool {
        matches!(self, Command::Serve(_) | Command::Bench(_) | Command::Fake(_))
    }
}

#[derive(Args)]
pub(crate) struct Init {
    /// The folder to make.
    pub(crate) dir: PathBuf,
    /// What it starts from.
    #[arg(long, value_enum, default_value = "vendas")]
    pub(crate) template: Template,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// Sales over WhatsApp: Hotmart and Evolution, from the first message to the payment.
    Vendas,
    /// Reminders for unpaid PIX, refused cards and abandoned carts, without a bot: whoever answers talks to a person.
    Recuperacao,
    /// The idempotency gate alone, for n8n and the like: no flow, no message.
    Gateway,
}

#[derive(Args)]
pub(crate) struct Serve {
    /// Which parts run; all of them where nothing is said. `work` decides and sends.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) role: Vec<Role>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Role {
    /// Webhooks and the API.
    Intake,
    /// Decide and send.
    Work,
    /// The status page.
    Ui,
    /// The watchdog (comes with a later version).
    Watch,
}

#[derive(Args)]
pub(crate) struct Check {
    /// Flow files to check alone, without the configuration.
    pub(crate) flows: Vec<PathBuf>,
    /// Say at length what a code means and what to do about it, like W2.
    #[arg(long, value_name = "CODE", conflicts_with_all = ["flows", "schema"])]
    pub(crate) explain: Option<String>,
    /// Count the live conversations that these flows would strand, on the running server or its database (M1).
    #[arg(long, conflicts_with_all = ["flows", "schema", "explain"])]
    pub(crate) against_running: bool,
    /// Print the JSON Schema of flow files, for editors that complete and underline.
    #[arg(long, conflicts_with = "flows")]
    pub(crate) schema: bool,
}

#[derive(Args)]
pub(crate) struct Test {
    /// Flow files, scenario files, or folders of them; the configuration's flows where nothing is said.
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Graph {
    /// The flow's name, or its file.
    pub(crate) flow: String,
    /// For Mermaid (in Markdown) or for Graphviz.
    #[arg(long, value_enum, default_value_t = GraphFormat::Mermaid)]
    pub(crate) format: GraphFormat,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum GraphFormat {
    Mermaid,
    Dot,
}

#[derive(Args)]
pub(crate) struct Simulate {
    /// The flow's name, or its file.
    pub(crate) flow: String,
    /// What happens and when: a YAML list such as `- { at: 0s, event: pix.created }`, or a scenario file. Without it, the
    /// flow's own scenarios are played.
    #[arg(long)]
    pub(crate) events: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Classify {
    /// The flow's name, or its file.
    pub(crate) flow: String,
    /// What a customer might write.
    #[arg(required_unless_present = "file")]
    pub(crate) text: Option<String>,
    /// Instead: a file of phrases, one a line. With `word<TAB>phrase` the word is what you expect (`-` for none), and every
    /// phrase that is taken for something else is shown; then the exit code is 1.
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub(crate) file: Option<PathBuf>,
}

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
    /// List scopes with what happened in each; or the keys of one scope, newest first.
    List {
        /// The scope.
        scope: Option<String>,
        /// locked, uncertain (a person decides), done, failed, or held (claims that came without a key).
        #[arg(long, requires = "scope")]
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_every_command_explains_itself() {
        let command = Cli::command();
        command.clone().debug_assert();
        let mut open = vec![command];
        while let Some(command) = open.pop() {
            assert!(command.get_about().is_some() || command.get_name() == "help", "{}", command.get_name());
            open.extend(command.get_subcommands().cloned());
        }
    }
}
