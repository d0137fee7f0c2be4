//! Facts: events come in ([`append`](self)), are moved by people, or are given up.

mod append;
mod known;
mod moves;
mod people;
pub(crate) mod recognised;
mod spread;
mod stub;

pub(crate) use append::PAID_RANK;
pub(crate) use people::number as kind_number;
