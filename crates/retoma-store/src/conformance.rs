//! The conformance suite that every backend passes.
