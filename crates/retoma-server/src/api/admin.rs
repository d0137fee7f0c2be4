//! `/v1/stats`, `/v1/heartbeats`, `/v1/audit` for anybody who may look; the database for admins.

use axum::extract::State;
use retoma_store::{Error, Store};
use serde_json::{Value, json};

use crate::auth::{Admin, Reader};
use crate::fields::Fields;
use crate::problem::{Code, Problem};
use crate::query::Query;
use crate::state::AppState;
use crate::views;

use super::gate::trail as gate;
use super::{Answer, JsonBody, command, ok};

/// `GET /v1/stats`.
pub(crate) async fn stats<S: Store>(State(state): State<AppState<S>>, _: Reader) -> Answer {
    let now = state.engine.clock().now();
    let stats = state.engine.store().stats(now).await?;
    let mut shown = serde_json::to_value(&stats).expect("counts are plain data");
    shown["now"] = json!(now.to_string());
    shown["doors"] = doors(&state);
    shown["gate"] = json!({});
    for scope in gate::all_scopes(&state).await? {
        shown["gate"][&scope.scope] = json!({ "duplicates": scope.duplicates(), "counts": scope.counts });
    }
    ok(shown)
}

/// What the doors did since the start: `{source: {word: count}}`.
pub(crate) fn doors<S: Store>(state: &AppState<S>) -> Value {
    let mut doors = json!({});
    for ((source, word), count) in state.counters.all() {
        doors[source][word] = json!(count);
    }
    doors
}

/// `GET /v1/heartbeats`.
pub(crate) async fn heartbeats<S: Store>(State(state): State<AppState<S>>, _: Reader) -> Answer {
    let stats = state.engine.store().stats(state.engine.clock().now()).await?;
    ok(views::list(stats.heartbeats.iter().map(|beat| json!({ "flow": beat.flow, "seen_at": beat.seen_at })).collect()))
}

/// `GET /v1/audit`.
pub(crate) async fn audit<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
    query.only(&["limit", "cursor"])?;
    let rows = state.engine.store().list_audit(state.tenant.clone(), query.page()?).await?;
    ok(views::page(&rows, |row| serde_json::to_value(row).expect("an audit row is plain data")))
}

/// `POST /v1/db/sql {sql}`: one read-only statement.
pub(crate) async fn sql<S: Store>(
    State(state): State<AppState<S>>,
    Admin(caller): Admin,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    let sql = fields.required_text("sql")?.to_owned();
    fields.finish()?;
    let rows = state.engine.store().query_sql(sql.clone()).await.map_err(|error| match error {
        // SQLite repeats the statement, which may name a person; the asker knows it.
        Error::Invalid(why) => Problem::invalid(why.replace(&sql, "the statement")),
        other => other.into(),
    })?;
    command::audit(&state, &caller, "db.sql", "database", json!({ "rows": rows.rows.len() })).await?;
    ok(serde_json::to_value(&rows).expect("rows are plain data"))
}

/// `POST /v1/db/backup {path}`: a consistent copy, written by the server on its own machine.
pub(crate) async fn backup<S: Store>(
    State(state): State<AppState<S>>,
    Admin(caller): Admin,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    let path = std::path::PathBuf::from(fields.required_text("path")?);
    fields.finish()?;
    if !path.is_absolute() {
        return Err(Problem::invalid(
            "path must be absolute: the server has another working directory than its callers",
        ));
    }
    if path.exists() {
        return Err(Problem::new(Code::Conflict, "there is a file of that name already"));
    }
    state.engine.store().backup(path.clone()).await?;
    let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    command::audit(&state, &caller, "db.backup", "database", json!({ "bytes": bytes })).await?;
    ok(json!({ "path": path.display().to_string(), "bytes": bytes }))
}
