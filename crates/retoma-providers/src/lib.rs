//! What each provider's requests mean, and how to write to it. One folder and one line in [`Provider`](inbound::Provider) per provider.
//!
//! **Execution model.** Pure functions: bytes in, parts out; a message in, a request out; an answer in, an outcome out.
//! Nothing here opens a socket or looks at a clock. `fake.rs` of a provider is a pure fake: a request in, an answer and
//! effects out; `retoma-server` serves it, tests and the simulator call it.
//!
//! **Start reading** at [`inbound`] and [`outbound`]; invented traffic comes from [`generate`]. Facts and their sources: the comments in each provider's folder.

pub mod evolution;
pub mod generate;
pub mod generic;
pub mod hotmart;
pub mod inbound;
pub mod outbound;
pub mod reconcile;
mod rng;
pub mod whatsapp_cloud;
