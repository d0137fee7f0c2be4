//! `/v1/keys`: API keys. A key is shown once, when it is made; only its hash is stored.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use retoma_store::{ApiKey, Store};
use serde_json::json;

use crate::auth::{Admin, Scope, hash_of, new_key};
use crate::fields::Fields;
use crate::problem::Problem;
use crate::state::AppState;
use crate::views;

use super::{Answer, JsonBody, command, ok, with};

/// `GET /v1/keys`.
pub(crate) async fn list<S: Store>(State(state): State<AppState<S>>, _: Admin) -> Answer {
    let keys = state.engine.store().list_api_keys(state.tenant.clone()).await?;
    ok(views::list(keys.iter().map(views::api_key).collect()))
}

/// `POST /v1/keys {name, scope?}`: answers the key, this once.
pub(crate) async fn create<S: Store>(
    State(state): State<AppState<S>>,
    Admin(caller): Admin,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    let name = fields.required_text("name")?.trim().to_owned();
    let scope = match fields.text("scope")? {
        None => Scope::Read,
        Some(word) => Scope::parse(word).ok_or_else(|| fields.wrong("scope", "read, write or admin"))?,
    };
    fields.finish()?;
    let key = new_key((state.random)());
    let id = state.engine.new_id().to_string();
    let stored = ApiKey {
        id: id.clone(),
        tenant: caller.tenant.clone(),
        name: name.clone(),
        scope: scope.as_str().to_owned(),
        hash: hash_of(&key),
        created_at: state.engine.clock().now(),
        revoked_at: None,
    };
    state.engine.store().put_api_key(stored).await?;
    state.keys.forget();
    command::audit(&state, &caller, "key.create", &id, json!({ "name": name, "scope": scope.as_str() })).await?;
    with(StatusCode::CREATED, json!({ "id": id, "name": name, "scope": scope.as_str(), "key": key }))
}

/// `DELETE /v1/keys/{id}`.
pub(crate) async fn revoke<S: Store>(
    State(state): State<AppState<S>>,
    Admin(caller): Admin,
    Path(id): Path<String>,
) -> Answer {
    let now = state.engine.clock().now();
    let revoked = state.engine.store().revoke_api_key(state.tenant.clone(), id.clone(), now).await?;
    state.keys.forget();
    if !revoked {
        return Err(Problem::not_found("key"));
    }
    command::audit(&state, &caller, "key.revoke", &id, json!({})).await?;
    ok(json!({ "id": id, "revoked_at": now.to_string() }))
}
