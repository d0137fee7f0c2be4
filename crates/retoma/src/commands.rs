//! One module per command. Those about data are thin clients of the API; the rest work on files.

use std::path::Path;

use crate::bench;
use crate::cli::{Cli, Command};
use crate::client::Client;
use crate::{demo, fake_cmd};

mod audit;
mod channel;
mod check;
mod classify;
mod contact;
mod db;
mod dead;
mod doctor;
mod event;
mod flow;
mod gate;
mod graph;
mod init;
mod key;
pub(crate) mod load;
mod manual;
mod serve;
mod shown;
mod simulate;
mod task;
mod test;

/// What a data command works with.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) json: bool,
}

/// Runs the command; answers the exit code.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<u8> {
    let (config, json) = (cli.config.as_path(), cli.json);
    match cli.command {
        Command::Init(args) => init::run(&args, json),
        Command::Serve(args) => serve::run(config, &args).await,
        Command::Demo(args) => demo::run(args, json).await,
        Command::Fake(args) => fake_cmd::run(args, json).await,
        Command::Check(args) => check::run(config, &args, json).await,
        Command::Test(args) => test::run(config, &args, json),
        Command::Classify(args) => classify::run(config, &args, json),
        Command::Graph(args) => graph::run(config, &args),
        Command::Simulate(args) => simulate::run(config, &args, json),
        Command::Doctor => doctor::run(config, json).await,
        Command::Completions { shell } => Ok(manual::completions(shell)),
        Command::Man { dir } => manual::pages(&dir, json),
        Command::Bench(args) => bench::run(&args, json).await,
        Command::BenchServe(args) => bench::serve(args).await,
        Command::Event(command) => with_session(config, json, async |session| event::run(session, command).await).await,
        Command::Contact(command) => {
            with_session(config, json, async |session| contact::run(session, command).await).await
        }
        Command::Task(command) => with_session(config, json, async |session| task::run(session, command).await).await,
        Command::Dead(command) => with_session(config, json, async |session| dead::run(session, command).await).await,
        Command::Gate(command) => with_session(config, json, async |session| gate::run(session, command).await).await,
        Command::Channel(command) => {
            with_session(config, json, async |session| channel::run(session, command).await).await
        }
        Command::Flow(command) => with_session(config, json, async |session| flow::run(session, command).await).await,
        Command::Key(command) => with_session(config, json, async |session| key::run(session, command).await).await,
        Command::Db(command) => db::run(config, json, command).await,
        Command::Audit(command) => with_session(config, json, async |session| audit::run(session, command).await).await,
    }
}

/// Opens the API, does the work, and gives the database back whatever came of it.
async fn with_session(
    config: &Path,
    json: bool,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let session = Session { client: Client::open(config).await?, json };
    let result = work(&session).await;
    let closed = session.client.close().await;
    let code = result?;
    closed.map(|()| code)
}
