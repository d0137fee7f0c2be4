//! The command line: what there is, in words for somebody who sees it for the first time.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod records;

pub(crate) use records::{
    Audit, Channel, Contact, Db, Dead, Event, Flow, Gate, Key, Move, MoveDead, PageArgs, Schedule, Task,
};

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
