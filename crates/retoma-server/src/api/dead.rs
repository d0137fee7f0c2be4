//! `/v1/dead`: what was given up, with everything a person needs to decide (E7).

use std::collections::HashSet;

use axum::extract::{Path, State};
use retoma_store::{DeadLetter, DeadMoves, Page, Store};
use serde_json::{Value, json};

use crate::auth::{Caller, Reader, Scope, Writer};
use crate::fields::Fields;
use crate::problem::Problem;
use crate::query::Query;
use crate::state::AppState;

use super::{Answer, JsonBody, ok};

/// A dead letter. Its payload holds what the message said and whom it named: for admins only.
fn shown(letter: &DeadLetter, caller: &Caller) -> Value {
    let mut shown = serde_json::to_value(letter).expect("a dead letter is plain data");
    if caller.scope < Scope::Admin
        && let Some(payload) = shown["payload"].as_object_mut()
    {
        for (_, value) in payload.iter_mut().filter(|(key, value)| PERSONAL.contains(&key.as_str()) && !value.is_null())
        {
            *value = json!("(masked)");
        }
    }
    shown
}

/// Fields of payloads that may hold texts, names and codes.
const PERSONAL: [&str; 4] = ["text", "vars", "operator", "identities"];

/// `GET /v1/dead?kind=&source=&flow=&reason=`.
pub(crate) async fn list<S: Store>(State(state): State<AppState<S>>, Reader(caller): Reader, query: Query) -> Answer {
    query.only(&["kind", "source", "flow", "reason", "limit", "cursor"])?;
    let own = |key| query.text(key).map(str::to_owned);
    let chosen = Chosen { kind: own("kind"), source: own("source"), flow: own("flow"), reason: own("reason") };
    let mut page = query.page()?;
    let wanted = page.limit;
    let mut found = Vec::new();
    // A filter is applied to pages as they come; what it leaves out makes no page shorter.
    loop {
        page.limit = wanted - found.len();
        let letters = state.engine.store().list_dead(state.tenant.clone(), page.clone()).await?;
        found.extend(letters.items.iter().filter(|letter| chosen.takes(letter)).map(|letter| shown(letter, &caller)));
        page.cursor = letters.next_cursor;
        if page.cursor.is_none() || found.len() >= wanted {
            return ok(json!({ "items": found, "next_cursor": page.cursor }));
        }
    }
}

/// `GET /v1/dead/{id}`.
pub(crate) async fn show<S: Store>(
    State(state): State<AppState<S>>,
    Reader(caller): Reader,
    Path(id): Path<String>,
) -> Answer {
    let mut page = Page { cursor: None, limit: 500 };
    loop {
        let letters = state.engine.store().list_dead(state.tenant.clone(), page.clone()).await?;
        if let Some(letter) = letters.items.iter().find(|letter| letter.id == id) {
            return ok(shown(letter, &caller));
        }
        match letters.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Err(Problem::not_found("dead letter")),
        }
    }
}

/// `POST /v1/dead/retry {ids|filter, reason}`.
pub(crate) async fn retry<S: Store>(state: State<AppState<S>>, writer: Writer, body: JsonBody) -> Answer {
    move_letters(state, writer, body, true).await
}

/// `POST /v1/dead/discard {ids|filter, reason}`.
pub(crate) async fn discard<S: Store>(state: State<AppState<S>>, writer: Writer, body: JsonBody) -> Answer {
    move_letters(state, writer, body, false).await
}

async fn move_letters<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    JsonBody(body): JsonBody,
    retry: bool,
) -> Answer {
    let fields = Fields::of(&body)?;
    let mut ids = fields.texts("ids")?;
    let filter = fields.object("filter")?;
    let reason = fields.text("reason")?.map(str::to_owned);
    let dry_run = fields.boolean("dry_run")? == Some(true);
    fields.finish()?;
    let mut all = false;
    match (ids.is_empty(), filter) {
        (false, None) => {}
        (true, Some(filter)) => {
            let chosen = Chosen::of(&filter)?;
            filter.finish()?;
            all = chosen.is_everything() && !dry_run;
            if !all {
                ids = chosen.find(&state).await?;
            }
        }
        _ => return Err(Problem::invalid("say which: ids, or a filter ({\"all\": true} takes every one)")),
    }
    if dry_run {
        let found = existing(&state, ids).await?;
        return ok(json!({ "dry_run": true, "count": found.len(), "ids": found }));
    }
    if !retry && reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
        return Err(Problem::invalid("discarding needs a reason"));
    }
    let moved = if ids.is_empty() && !all {
        Vec::new()
    } else {
        let now = state.engine.clock().now();
        let moves = DeadMoves { tenant: state.tenant.clone(), ids, all, retry, reason, actor: caller.actor, now };
        state.engine.store().move_dead(moves).await?
    };
    state.engine.wake();
    let word = if retry { "retried" } else { "discarded" };
    ok(json!({ word: moved.len(), "ids": moved }))
}

/// Those of the ids that are dead letters.
async fn existing<S: Store>(state: &AppState<S>, ids: Vec<String>) -> Result<Vec<String>, Problem> {
    let ids: HashSet<String> = ids.into_iter().collect();
    let everything = Chosen { kind: None, source: None, flow: None, reason: None };
    Ok(everything.find(state).await?.into_iter().filter(|id| ids.contains(id)).collect())
}

/// A filter over dead letters.
struct Chosen {
    kind: Option<String>,
    source: Option<String>,
    flow: Option<String>,
    reason: Option<String>,
}

impl Chosen {
    fn of(filter: &Fields<'_>) -> Result<Self, Problem> {
        let own = |key| filter.text(key).map(|text| text.map(str::to_owned));
        let chosen = Self { kind: own("kind")?, source: own("source")?, flow: own("flow")?, reason: own("reason")? };
        let all = filter.boolean("all")? == Some(true);
        if all == chosen.is_everything() {
            return Ok(chosen);
        }
        Err(Problem::invalid("filter takes kind, source, flow, reason, or all: true alone"))
    }

    fn is_everything(&self) -> bool {
        self.kind.is_none() && self.source.is_none() && self.flow.is_none() && self.reason.is_none()
    }

    fn takes(&self, letter: &DeadLetter) -> bool {
        let fits =
            |wanted: &Option<String>, has: Option<&str>| wanted.as_deref().is_none_or(|wanted| has == Some(wanted));
        fits(&self.kind, Some(&letter.kind))
            && fits(&self.source, letter.source.as_deref())
            && fits(&self.flow, letter.flow.as_deref())
            && fits(&self.reason, Some(&letter.reason))
    }

    async fn find<S: Store>(&self, state: &AppState<S>) -> Result<Vec<String>, Problem> {
        let mut page = Page { cursor: None, limit: 500 };
        let mut ids = Vec::new();
        loop {
            let letters = state.engine.store().list_dead(state.tenant.clone(), page.clone()).await?;
            ids.extend(letters.items.iter().filter(|letter| self.takes(letter)).map(|letter| letter.id.clone()));
            match letters.next_cursor {
                Some(cursor) => page.cursor = Some(cursor),
                None => return Ok(ids),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use retoma_core::ids::Tenant;

    use super::*;

    #[test]
    fn what_a_dead_message_said_is_for_admins_only() {
        let at = "2026-12-02T13:00:00Z".parse().unwrap();
        let letter = DeadLetter {
            id: "api:k".into(),
            kind: "task".into(),
            source: None,
            flow: Some("vendas".into()),
            key: "api:k".into(),
            attempts: 6,
            last_error: None,
            errors: vec![],
            reason: "recipient".into(),
            payload: json!({ "text": "canario-texto", "vars": { "contact.first_name": "canario" }, "message": "text", "operator": null }),
            consumer_version: "0".into(),
            created_at: at,
            died_at: at,
        };
        for (scope, sees) in [(Scope::Read, false), (Scope::Write, false), (Scope::Admin, true)] {
            let caller = Caller { actor: "key:x".into(), tenant: Tenant::default(), scope };
            let shown = shown(&letter, &caller);
            assert_eq!(shown.to_string().contains("canario"), sees, "{scope:?}");
            assert_eq!(shown["payload"]["message"], "text", "{scope:?}");
            assert!(shown["payload"]["operator"].is_null());
        }
    }
}
