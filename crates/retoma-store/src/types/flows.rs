//! Flows as they were published, so that whoever reads the history can read what decided it (C15).

use jiff::Timestamp;
use retoma_core::ids::{FlowName, Tenant};

/// One version of a flow, as it took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedFlow {
    /// Whose.
    pub tenant: Tenant,
    /// The flow.
    pub flow: FlowName,
    /// The number that its file gives itself; conversations record it.
    pub version: u32,
    /// The file, byte for byte.
    pub text: String,
    /// When it took effect.
    pub published_at: Timestamp,
    /// Who made it take effect.
    pub published_by: String,
}
