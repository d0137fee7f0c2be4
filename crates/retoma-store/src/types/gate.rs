//! The idempotency gate (B1-B7).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::ids::Tenant;
use retoma_core::keys::Key16;
use serde_json::Value;

/// A call to the gate.
#[derive(Clone, Debug)]
pub struct GateCall {
    /// Whose.
    pub tenant: Tenant,
    /// Class of effect.
    pub scope: String,
    /// The key; empty for [`GateVerb::Hold`] alone.
    pub key: String,
    /// Who asks: the name of the API key.
    pub actor: String,
    /// What.
    pub verb: GateVerb,
}

/// What is asked of the gate.
#[derive(Clone, Debug)]
pub enum GateVerb {
    /// May I? `token` is fresh and becomes the owner's if it may proceed.
    Claim(GateClaim),
    /// Somebody asked without a usable key: only evidence is kept, nothing is claimed (B5).
    Hold {
        /// What was wrong with the key, in a word: `missing`, `empty`, `placeholder`, ..
        what: String,
        /// The execution that asked, if it is no personal data.
        correlation_id: Option<String>,
    },
    /// I am still at it.
    Renew {
        /// Owner token.
        token: String,
        /// Anew.
        lease: Duration,
    },
    /// Done.
    Complete {
        /// Owner token.
        token: String,
        /// What later callers get.
        result: GateResult,
    },
    /// Failed.
    Fail {
        /// Owner token.
        token: String,
        /// Why.
        error: String,
        /// Whether the next caller may try.
        retryable: bool,
    },
    /// A person decides about an uncertain or failed key.
    Release {
        /// It was done after all; otherwise the next caller may try.
        done: bool,
        /// Why.
        reason: Option<String>,
    },
}

/// A claim.
#[derive(Clone, Debug)]
pub struct GateClaim {
    /// Owner token.
    pub token: String,
    /// Digest of what is to be done.
    pub fingerprint: Option<Key16>,
    /// How long until the owner is taken for dead.
    pub lease: Duration,
    /// How long the key is kept, counted from its last claim that proceeded.
    pub keep: Duration,
    /// The execution that asks.
    pub correlation_id: Option<String>,
    /// Anything the caller wants to find again.
    pub metadata: Value,
    /// Whether the next caller may proceed when a lease ran out.
    pub proceed_when_expired: bool,
}

/// What an execution left for later callers.
#[derive(Clone, Debug, PartialEq)]
pub enum GateResult {
    /// This.
    Kept(Value),
    /// It was too large to be kept; so many bytes.
    TooLarge(u64),
}

/// The gate's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct GateAnswer {
    /// What.
    pub outcome: GateOutcome,
    /// The record after the call, if there is one; without attempts and repeats.
    pub record: Option<GateRecord>,
    /// Where it may proceed, and it is not the first attempt: what is known of the one before.
    pub previous: Option<GatePrevious>,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOutcome {
    /// Go on.
    Proceed,
    /// Already done: the stored result.
    Done,
    /// Somebody is at it.
    InProgress,
    /// Somebody was at it and fell silent; a person decides.
    Uncertain,
    /// Failed for good.
    Failed,
    /// The key stands for something else.
    Mismatch,
    /// There is no usable key.
    Held,
    /// Renewed, completed, failed or released.
    Ok,
    /// The token is not the owner's.
    StaleToken,
    /// No such key.
    NotFound,
}

impl GateOutcome {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            GateOutcome::Proceed => "proceed",
            GateOutcome::Done => "done",
            GateOutcome::InProgress => "in_progress",
            GateOutcome::Uncertain => "uncertain",
            GateOutcome::Failed => "failed",
            GateOutcome::Mismatch => "mismatch",
            GateOutcome::Held => "held",
            GateOutcome::Ok => "ok",
            GateOutcome::StaleToken => "stale_token",
            GateOutcome::NotFound => "not_found",
        }
    }
}

/// What is known of the attempt before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatePrevious {
    /// Its lease ran out: whether its effect happened is not known.
    Unknown,
    /// It failed, and said that it may be tried again.
    Failed,
    /// A person said that it may be tried again.
    Released,
}

impl GatePrevious {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            GatePrevious::Unknown => "unknown",
            GatePrevious::Failed => "failed",
            GatePrevious::Released => "released",
        }
    }
}

/// A gate key.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRecord {
    /// Class of effect.
    pub scope: String,
    /// The key.
    pub key: String,
    /// `LOCKED`, `DONE` or `FAILED`.
    pub status: String,
    /// When it was first seen.
    pub first_seen_at: Timestamp,
    /// The execution that saw it first; the key where it did not say.
    pub correlation_id: String,
    /// Claims that proceeded so far.
    pub attempt: u32,
    /// Repetitions stopped.
    pub duplicates: u64,
    /// The last one.
    pub last_duplicate_at: Option<Timestamp>,
    /// Claims refused because they stood for something else.
    pub mismatches: u64,
    /// The stored result.
    pub result: Option<Value>,
    /// How large a result was that is not kept.
    pub result_omitted: Option<u64>,
    /// The error of `FAILED`.
    pub error: Option<String>,
    /// Whether `FAILED` may be taken again.
    pub retryable: bool,
    /// End of the lease.
    pub lease_until: Option<Timestamp>,
    /// Until when it is remembered.
    pub keep_until: Timestamp,
    /// The first caller's metadata.
    pub metadata: Value,
    /// Every claim that proceeded, oldest first. Only the trail has them.
    pub attempts: Vec<GateAttempt>,
    /// The first ten and the last forty claims that did not proceed, oldest first. Only the trail has them.
    pub repeats: Vec<GateRepeat>,
}

/// A claim that proceeded.
#[derive(Clone, Debug, PartialEq)]
pub struct GateAttempt {
    /// Its number, from 1.
    pub n: u32,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How: `done`, `failed`, `lapsed` (its lease ran out and another claim took over), `released` or `confirmed` (by a person:
    /// it may be tried again, or it was done after all).
    pub outcome: Option<String>,
    /// The error of `failed`.
    pub error: Option<String>,
    /// The execution, if it said.
    pub correlation_id: Option<String>,
    /// Who asked.
    pub actor: Option<String>,
}

/// A claim that did not proceed.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRepeat {
    /// Its number, from 1.
    pub n: u64,
    /// When.
    pub at: Timestamp,
    /// What it was told.
    pub outcome: String,
    /// The execution, if it said.
    pub correlation_id: Option<String>,
    /// Who asked.
    pub actor: String,
}

/// Which keys.
#[derive(Clone, Debug, Default)]
pub struct GateFilter {
    /// Of that scope.
    pub scope: Option<String>,
    /// In that status.
    pub status: Option<GateStatus>,
}

/// Where keys stand, at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateStatus {
    /// Somebody is at it, or was.
    Locked,
    /// Somebody was at it and fell silent before this time.
    Uncertain {
        /// Now.
        now: Timestamp,
    },
    /// Done.
    Done,
    /// Failed.
    Failed,
}

/// Somebody asked without a usable key.
#[derive(Clone, Debug, PartialEq)]
pub struct GateHeld {
    /// Its number.
    pub id: u64,
    /// Class of effect.
    pub scope: String,
    /// When.
    pub at: Timestamp,
    /// What was wrong with the key.
    pub what: String,
    /// The execution, if it said, and it is no personal data.
    pub correlation_id: Option<String>,
    /// Who asked.
    pub actor: String,
}

/// What happened in a scope since it was first used (B7): by the outcome of claims (`proceed`, `done`, `in_progress`,
/// `uncertain`, `failed`, `mismatch`, `held`), and `completed`, `failures`, `released`, `stale_token`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateScope {
    /// Its name.
    pub scope: String,
    /// How often each.
    pub counts: BTreeMap<String, u64>,
}

impl GateScope {
    /// Claims stopped because the key had been claimed before.
    pub fn duplicates(&self) -> u64 {
        let of = |word: &str| self.counts.get(word).copied().unwrap_or(0);
        of("done") + of("in_progress") + of("uncertain") + of("failed")
    }
}
