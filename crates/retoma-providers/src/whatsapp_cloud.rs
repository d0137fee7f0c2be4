//! WhatsApp Cloud API (Meta Graph): signed, batched webhooks, and the GET handshake that registers them.
//!
//! Facts: reference of the Graph API, webhooks of the field `messages`, `smb_message_echoes` and their neighbours.

mod handshake;
pub mod inbound;
mod message;
