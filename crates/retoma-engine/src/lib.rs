//! The loops around the pure core: load a batch, run pure code, commit a batch.
//!
//! **Execution model.** Six loops, each one task, owned by the [`Supervisor`]; none is detached:
//! - `committer`: stores what intake queued, many requests per commit, then answers them;
//! - `owner`: looks at the inbox, decides, commits decisions; its `deadlines` turn passed deadlines into events;
//! - `deliverer`: takes due tasks, checks them again, commits starts, sends (one task per request under way);
//! - `completer`: stores how attempts ended;
//! - `reconciler`: finds out what became of sends whose outcome nobody knows;
//! - `keeper`: finds stuck sends, removes old history.
//!
//! They meet only in the store. What one holds in memory, and the `Signals` between them, are hints: each loop also
//! looks by itself at least once a second.
//!
//! **Not here:** SQL, HTTP serving, provider knowledge, any rule of the domain. Time comes from a [`Clock`], requests leave
//! through a [`Transport`].
//!
//! **Start reading** at `owner.rs` and `deliverer.rs`.

pub mod address_guard;
pub mod clock;
pub mod committer;
mod completer;
mod deliverer;
pub mod engine;
mod exit;
mod heartbeat;
mod keeper;
mod local_times;
mod new_id;
mod owner;
mod reconciler;
mod shared;
mod signal;
pub mod transport;
mod unsure;

pub use clock::{Clock, FastClock, SystemClock};
pub use committer::Refused;
pub use deliverer::traffic::ChannelTraffic;
pub use engine::{Engine, Supervisor};
pub use new_id::NewId;
pub use shared::{EngineSetup, Flows};
pub use transport::{HttpTransport, Transport};
