//! Hotmart webhook 2.0. Facts: reference/payment-webhooks.md, sections 1, 12, 13.
//!
//! What shapes the code here: an error deactivates the whole configuration, so nothing is ever refused; there is no "refused"
//! event (a cancelled card is one); the guarantee's end repeats the transaction of the sale; money is decimal reais, as an
//! integer or not; every renewal has a transaction of its own.

pub mod inbound;
mod mapping;
