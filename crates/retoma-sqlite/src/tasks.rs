//! Promises: due, started, settled, finished, and what people do with them.

mod due;
mod evidence;
mod finish;
mod late_echo;
mod operate;
mod row;
mod start;

pub(crate) use row::{COLUMNS, WIDTH, task};
