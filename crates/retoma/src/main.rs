//! The binary: reads the command line, wires the crates together, prints. No logic worth testing lives here.
//!
//! **Execution model.** One tokio runtime; every command is one future on it. `serve` runs until it is told to stop;
//! everything else ends by itself. Results go to stdout, logs to stderr. Exit codes: 0 done, 1 failed or findings, 2 wrong
//! usage or configuration.
//!
//! **Start reading** at `cli.rs` for what there is, `wiring.rs` for how it hangs together.

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

mod bench;
mod cli;
mod client;
mod commands;
mod config;
mod demo;
mod fail;
mod fake_cmd;
mod local;
mod logs;
mod output;
mod random;
mod wiring;

/// A request's blocks are made by one thread and freed by the writer's: docs/decisions/0011 has the figures.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    logs::start(cli.command.is_service());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::complain(&format!("the system gives no threads: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(commands::run(cli)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::from(fail::code_of(&error))
        }
    }
}
