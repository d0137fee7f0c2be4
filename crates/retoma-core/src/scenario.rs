//! Scenarios: given these events at these times, expect these states and messages (C15).

/// A scenario of a flow file's `tests`, or of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {}
