//! What parses but cannot be meant.

use super::Flow;
use super::parse::Lines;
use crate::finding::Finding;

pub(super) fn check(_flow: &Flow, _lines: &Lines, _file: &str) -> Vec<Finding> {
    Vec::new()
}
