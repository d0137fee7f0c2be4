//! The rule classifier (C2): text in, the word of a rule out. It only proposes; the table decides.

/// Compiled rules of a flow. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Classifier {}
