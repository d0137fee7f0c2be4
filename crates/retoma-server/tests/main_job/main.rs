//! The main job, end to end in one process: real webhooks in, real SQLite, the real loops, virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

mod arrival;
mod duplicates;
mod fairness;
mod gated;
mod interleavings;
mod people;
mod recovery;
mod replay;
mod rows;
mod tools;
mod world;
mod worst_moment;
