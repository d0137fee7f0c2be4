//! The main job, end to end in one process: real webhooks in, real SQLite, the real loops, virtual time.

mod duplicates;
mod interleavings;
mod recovery;
mod rows;
mod world;
