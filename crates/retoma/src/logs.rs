//! Logs on stderr: `RETOMA_LOG` filters, `RETOMA_LOG_FORMAT=json|text` shapes.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging. A service says what it does; other commands only what goes wrong.
pub(crate) fn start(is_service: bool) {
    let default = if is_service { "info" } else { "warn" };
    let filter = EnvFilter::try_from_env("RETOMA_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let is_json = std::env::var("RETOMA_LOG_FORMAT").is_ok_and(|format| format == "json");
    // Fails only if a logger is there already, and then that one serves.
    let _ = if is_json { logs.json().try_init() } else { logs.with_ansi(std::io::stderr().is_terminal()).try_init() };
}
