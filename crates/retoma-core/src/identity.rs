//! Identities: how one person is recognised under many spellings (C11).

use serde::{Deserialize, Serialize};

use crate::task::words;

words!(
    /// The kind of an identity, strongest first.
    IdentityKind {
        /// A phone number.
        Phone = "phone",
        /// A WhatsApp LID (`123@lid`): not a phone.
        Lid = "lid",
        /// A WhatsApp business-scoped id (`BR.123`).
        Bsuid = "bsuid",
        /// A CPF or CNPJ.
        Document = "document",
        /// An e-mail address.
        Email = "email",
        /// An order of a platform: links what is said of one transaction.
        Order = "order",
        /// An id of the source's own, where it has nothing better.
        External = "external",
    }
);

/// One identity of a contact.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// What it is.
    pub kind: IdentityKind,
    /// As written to and shown: E.164 digits without `+` for phones, the jid for LIDs.
    pub value: String,
    /// What is unique: both spellings of a Brazilian mobile share one.
    pub match_key: String,
    /// Whether a provider itself reported this spelling; such a value is written to as it stands.
    pub confirmed: bool,
}
