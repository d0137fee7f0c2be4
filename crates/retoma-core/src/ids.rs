//! Ids are types: a [`TaskId`] cannot be passed where a [`ContactId`] is wanted.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::keys;

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a name as it stands.
            pub fn new(name: impl AsRef<str>) -> Self {
                Self(Arc::from(name.as_ref()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self::new(name)
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(Arc::from(name))
            }
        }
    };
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// The sixteen bytes of the id.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

name_id!(
    /// Who owns the data. Every key and query carries one; installations with one seller use `default`.
    Tenant
);
name_id!(
    /// A configured door for webhooks (`[sources.NAME]`).
    SourceName
);
name_id!(
    /// Where tasks are delivered to (`[channels.NAME]`).
    ChannelName
);
name_id!(
    /// The name of a flow file's `flow:` key.
    FlowName
);
name_id!(
    /// A task's id, derived from what it is for (see [`crate::task`]), never random.
    TaskId
);
uuid_id!(
    /// One recognised happening. Version 7, so that ids of one process sort by time.
    EventId
);
uuid_id!(
    /// A person.
    ContactId
);
uuid_id!(
    /// A contact's sale cycle. Derived from the contact and the cycle's number, so that replay gives the same id.
    ConversationId
);
uuid_id!(
    /// One HTTP request whose bytes are kept.
    RequestId
);

impl Default for Tenant {
    fn default() -> Self {
        Self::new("default")
    }
}

impl ConversationId {
    /// The id of a contact's `ordinal`-th cycle.
    pub fn derive(contact: ContactId, ordinal: u32) -> Self {
        let key = keys::digest16("conversation", &[contact.as_bytes(), &ordinal.to_be_bytes()]);
        Self(Uuid::from_bytes(key.0))
    }
}

/// How many buckets there are. Fixed for the life of an installation.
pub const BUCKETS: u16 = 1024;

/// A fixed share of all subjects; whoever leases it decides for them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BucketNo(pub u16);

impl BucketNo {
    /// The bucket of a subject (a contact's id, an order, an event's own id).
    pub fn of(tenant: &Tenant, subject: &[u8]) -> Self {
        let hash = keys::digest16("bucket", &[tenant.as_str().as_bytes(), subject]).0;
        Self(u16::from_be_bytes([hash[0], hash[1]]) % BUCKETS)
    }

    /// The bucket of a contact.
    pub fn of_contact(tenant: &Tenant, contact: ContactId) -> Self {
        Self::of(tenant, contact.as_bytes())
    }
}

/// Counts handovers of a bucket; a writer with an older epoch is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);
