//! Anything that speaks JSON or forms: read by configured paths (A9), written to by a signed POST.

mod api;
pub mod inbound;
pub(crate) mod outbound;

pub use api::event_from_api;
