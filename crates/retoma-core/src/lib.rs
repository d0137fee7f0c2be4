//! The pure domain of Retoma: plain data in, plain data out.
//!
//! **Execution model.** There is none: no thread, no clock, no random source, no I/O, no async, no logging. Whoever needs
//! the time passes it in. Jitter is derived from ids, so that replaying history gives the stored state.
//!
//! **Start reading** at [`decide`](decide::decide) (an event and a contact become a [`Decision`](decision::Decision)), then
//! [`check`](send_check::check) (whether a promised message may leave now). The words are in [`event`], [`state`] and
//! [`task`]; what sellers write is a [`flow`].
//!
//! **Not here:** SQL, HTTP, provider names beyond test data, and anything that waits.

pub mod breaker;
pub mod burst;
pub mod cadence;
pub mod calendar;
pub mod classify;
pub mod compose;
pub mod decide;
pub mod decision;
pub mod duration;
pub mod event;
pub mod evidence;
pub mod finding;
pub mod flow;
pub mod identity;
pub mod ids;
pub mod keys;
pub mod local_time;
pub mod origin_time;
pub mod outcome;
pub mod pace;
pub mod play;
pub mod receipt;
pub mod retry;
pub mod scenario;
pub mod send_check;
pub mod state;
pub mod task;
pub mod template;
mod yaml;
