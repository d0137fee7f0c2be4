//! Evolution API v2 (WhatsApp, self-hosted). Facts: reference/whatsapp-providers.md, section 2; read in version 2.3.7.
//!
//! What shapes the code here:
//! - The instance's token stands in every webhook body (`apikey`). It is read by nobody and copied nowhere (FC-80).
//! - There is no way to give a send an id of ours, and a 400 may follow a message that went out: see `outbound.rs`.
//! - One person comes as a phone, as a LID, or as both; the same message id may come with either.

pub mod fake;
pub mod inbound;
mod message;
pub(crate) mod outbound;
pub(crate) mod search;
