//! API keys: `Authorization: Bearer KEY` on /v1, with scopes read < write < admin. Only hashes are stored; a lookup is by
//! the SHA-256 of what was presented, so that comparing takes the same time whatever is wrong.
//!
//! The keys of the store are cached for seconds, and dropped at once when one is made or revoked through this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use retoma_core::ids::Tenant;
use retoma_store::Store;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::problem::{Code, Problem};
use crate::state::AppState;

/// How far a key reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Looking.
    Read,
    /// Changing.
    Write,
    /// Keys, raw bodies, the database.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Admin];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        }
    }

    /// The scope of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Name of the key, for the audit log.
    pub actor: String,
    /// Whose data.
    pub tenant: Tenant,
    /// How far the key reaches.
    pub scope: Scope,
}

/// The key of the local command line: random for every start, known to whoever may read the file it stands in.
#[derive(Clone)]
pub struct LocalKey(pub String);

/// What is kept of a key.
pub fn hash_of(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// A new key: 32 random bytes in words that scanners for leaked secrets can look for.
pub fn new_key(random: [u8; 32]) -> String {
    format!("rtm_{}", hex::encode(random))
}

/// Revocations by another process are seen within this time.
const CACHE_FOR: Duration = Duration::from_secs(5);

struct Cached {
    at: Duration,
    keys: HashMap<[u8; 32], Caller>,
}

/// The keys of the store, remembered for a moment.
#[derive(Default)]
pub(crate) struct Keys {
    cached: ArcSwapOption<Cached>,
}

impl Keys {
    /// Forgets what is cached, after a key was made or revoked.
    pub(crate) fn forget(&self) {
        self.cached.store(None);
    }

    async fn find<S: Store>(&self, state: &AppState<S>, hash: &[u8; 32]) -> Result<Option<Caller>, Problem> {
        let now = state.engine.clock().monotonic();
        if let Some(cached) = self.cached.load().as_ref().filter(|cached| now < cached.at + CACHE_FOR) {
            return Ok(cached.keys.get(hash).cloned());
        }
        let stored = state.engine.store().list_api_keys(state.tenant.clone()).await?;
        let known = stored.into_iter().filter_map(|key| {
            // A scope that this version does not know reaches nowhere.
            let scope = Scope::parse(&key.scope)?;
            Some((key.hash, Caller { actor: format!("key:{}", key.name), tenant: key.tenant, scope }))
        });
        let cached = Arc::new(Cached { at: now, keys: known.collect() });
        self.cached.store(Some(Arc::clone(&cached)));
        Ok(cached.keys.get(hash).cloned())
    }
}

async fn caller<S: Store>(parts: &Parts, state: &AppState<S>, needed: Scope) -> Result<Caller, Problem> {
    let presented = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key =
        presented.and_then(|text| text.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let Some((_, key)) = key else {
        return Err(Problem::new(Code::Unauthorized, "no Authorization: Bearer header"));
    };
    let hash = hash_of(key.trim());
    let is_local = state.local_key.as_ref().is_some_and(|local| bool::from(hash_of(&local.0).ct_eq(&hash)));
    let caller = if is_local {
        Some(Caller { actor: "cli".to_owned(), tenant: state.tenant.clone(), scope: Scope::Admin })
    } else {
        state.keys.find(state, &hash).await?
    };
    let Some(caller) = caller else {
        state.counters.add("api", "refused_unauthorized");
        return Err(Problem::new(Code::Unauthorized, "the key is unknown or revoked"));
    };
    if caller.scope < needed {
        state.counters.add("api", "refused_forbidden");
        let (has, needs) = (caller.scope.as_str(), needed.as_str());
        return Err(Problem::new(Code::Forbidden, format!("this key has scope {has}; scope {needs} is needed")));
    }
    Ok(caller)
}

/// Somebody who may look.
pub(crate) struct Reader(pub(crate) Caller);
/// Somebody who may change things.
pub(crate) struct Writer(pub(crate) Caller);
/// Somebody who may see keys, raw bodies and the database.
pub(crate) struct Admin(pub(crate) Caller);

impl<S: Store> FromRequestParts<AppState<S>> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState<S>) -> Result<Self, Problem> {
        caller(parts, state, Scope::Read).await.map(Self)
    }
}

impl<S: Store> FromRequestParts<AppState<S>> for Writer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState<S>) -> Result<Self, Problem> {
        caller(parts, state, Scope::Write).await.map(Self)
    }
}

impl<S: Store> FromRequestParts<AppState<S>> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState<S>) -> Result<Self, Problem> {
        caller(parts, state, Scope::Admin).await.map(Self)
    }
}
