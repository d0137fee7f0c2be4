//! What HTTP answers, over a real SQLite store and real loops, in-process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod answers;
mod api;
mod auth;
mod gate;
mod house;
mod operators;
mod reconcile;
mod serving;
mod wire;
