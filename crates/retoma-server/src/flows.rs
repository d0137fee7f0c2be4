//! Flows that change under way (C15): read, checked against the conversations that live, recorded, switched. A reload that
//! is refused changes nothing: what ran runs on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use retoma_core::finding::{Finding, Level};
use retoma_core::flow::Standing;
use retoma_core::ids::{FlowName, Tenant};
use retoma_engine::Flows;
use retoma_store::{AuditRow, PublishedFlow, Store};
use serde_json::{Value, json};

use crate::problem::{Code, Problem};
use crate::state::AppState;

/// Flows as they lie in their files.
#[derive(Clone, Default)]
pub struct FlowFiles {
    /// Checked flows by name.
    pub flows: Flows,
    /// The text of each.
    pub texts: BTreeMap<FlowName, String>,
    /// The file of each, as findings name it.
    pub files: BTreeMap<FlowName, String>,
}

/// Reads the files anew; answers what is wrong with them otherwise.
pub type FlowSource = Arc<dyn Fn() -> Result<FlowFiles, Vec<Finding>> + Send + Sync>;

/// Why flows do not take effect.
#[derive(Debug)]
pub enum Refused {
    /// What must be mended first.
    Findings(Vec<Finding>),
    /// The storage did not answer.
    Storage(retoma_store::Error),
}

/// How the last reload ended.
#[derive(Debug, Default)]
pub(crate) struct LastReload(Mutex<Option<Value>>);

impl LastReload {
    fn note(&self, at: Timestamp, actor: &str, errors: &[Finding]) {
        let errors: Vec<Value> = errors.iter().map(shown).collect();
        let said = json!({ "at": at.to_string(), "by": actor, "ok": errors.is_empty(), "errors": errors });
        *self.0.lock().expect("no code panics while it holds this") = Some(said);
    }

    pub(crate) fn get(&self) -> Value {
        self.0.lock().expect("no code panics while it holds this").clone().unwrap_or_default()
    }
}

fn shown(finding: &Finding) -> Value {
    json!({
        "code": finding.code, "file": finding.file, "line": finding.line, "message": finding.message, "fix": finding.fix,
    })
}

/// What flows would do to the conversations that live (M1): errors where somebody would be stranded, a warning where a whole
/// flow is gone, whose conversations and messages then wait until it is back.
pub fn strandings(files: &FlowFiles, standing: &[Standing]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, flow) in &files.flows {
        found.extend(flow.stranded(standing, files.files.get(name).map_or("", String::as_str)));
    }
    let mut gone: BTreeMap<&FlowName, u64> = BTreeMap::new();
    for one in standing.iter().filter(|one| !files.flows.contains_key(&one.flow)) {
        *gone.entry(&one.flow).or_default() += one.live;
    }
    found.extend(gone.into_iter().map(|(flow, live)| {
        Finding {
            code: "M1",
            level: Level::Warning,
            file: format!("flows/{flow}.yaml"),
            line: 1,
            message: format!("{live} live conversation(s) follow the flow {flow}, which is not there any more"),
            fix:
                "keep its file until they have ended; meanwhile nothing of them is decided and their messages are held"
                    .into(),
        }
    }));
    found
}

/// Makes flows take effect in the store's record, if they strand nobody. Answers what was new, and the warnings.
pub async fn publish<S: Store>(
    store: &S,
    tenant: &Tenant,
    files: &FlowFiles,
    actor: &str,
    now: Timestamp,
) -> Result<(Vec<FlowName>, Vec<Finding>), Refused> {
    let standing = store.count_standing(tenant.clone()).await.map_err(Refused::Storage)?;
    let findings = strandings(files, &standing);
    if findings.iter().any(Finding::is_error) {
        return Err(Refused::Findings(findings));
    }
    let published = files.flows.iter().map(|(name, flow)| PublishedFlow {
        tenant: tenant.clone(),
        flow: name.clone(),
        version: flow.version,
        text: files.texts.get(name).cloned().unwrap_or_default(),
        published_at: now,
        published_by: actor.to_owned(),
    });
    let recorded = store.publish_flows(published.collect()).await.map_err(Refused::Storage)?;
    let new = files.flows.keys().zip(recorded).filter(|(_, new)| *new).map(|(name, _)| name.clone()).collect();
    Ok((new, findings))
}

/// Reads the files again and switches to them. Refused, it leaves everything as it is.
pub async fn reload<S: Store>(state: &AppState<S>, actor: &str) -> Result<Value, Problem> {
    let Some(source) = state.flow_source.clone() else {
        return Err(Problem::new(Code::Conflict, "this server's flows come from no files"));
    };
    // Checking plays the flows' own scenarios, which takes longer than a handler may hold its thread.
    let read = tokio::task::spawn_blocking(move || source()).await;
    let read = read.map_err(|_| Problem::new(Code::Internal, "reading the flows broke off"))?;
    let now = state.engine.clock().now();
    let store = state.engine.store();
    let (files, (new, warnings)) = match read {
        Err(findings) => return Err(refuse(state, actor, now, findings)),
        Ok(files) => match publish(store, &state.tenant, &files, actor, now).await {
            Err(Refused::Findings(findings)) => return Err(refuse(state, actor, now, findings)),
            Err(Refused::Storage(error)) => return Err(error.into()),
            Ok(published) => (files, published),
        },
    };
    let running: Vec<Value> =
        files.flows.values().map(|flow| json!({ "name": flow.name, "version": flow.version })).collect();
    let new: Vec<String> = new.iter().map(ToString::to_string).collect();
    state.engine.switch_flows(files.flows);
    state.last_reload.note(now, actor, &[]);
    let row = AuditRow {
        tenant: state.tenant.clone(),
        at: now,
        actor: actor.to_owned(),
        action: "flow.reload".to_owned(),
        target: "flows".to_owned(),
        detail: json!({ "changed": new }),
    };
    store.append_audit(vec![row]).await?;
    for warning in &warnings {
        tracing::warn!(event = "flow_finding", finding = %warning, "the flows run, but look at this");
    }
    tracing::info!(event = "flows_reloaded", changed = ?new, "what is decided and sent from now on follows these flows");
    Ok(json!({ "flows": running, "changed": new, "warnings": warnings.iter().map(shown).collect::<Vec<_>>() }))
}

fn refuse<S: Store>(state: &AppState<S>, actor: &str, now: Timestamp, findings: Vec<Finding>) -> Problem {
    let errors: Vec<Finding> = findings.into_iter().filter(Finding::is_error).collect();
    for error in &errors {
        tracing::error!(event = "flow_refused", finding = %error, "the flows that ran run on");
    }
    state.last_reload.note(now, actor, &errors);
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Problem::new(Code::FlowRefused, lines.join("\n"))
}

/// `/v1/flows`.
pub(crate) mod routes {
    use axum::extract::State;

    use super::{Store, Value, json, reload};
    use crate::api::{Answer, JsonBody, ok};
    use crate::auth::{Admin, Reader};
    use crate::fields::Fields;
    use crate::query::Query;
    use crate::state::AppState;

    /// The most records that one answer shows.
    const HISTORY_MAX: usize = 50;

    /// `GET /v1/flows`: what runs, since when, and how many conversations stand where; how the last reload ended.
    pub(crate) async fn list<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
        query.only(&[])?;
        let store = state.engine.store();
        let standing = store.count_standing(state.tenant.clone()).await?;
        let mut items = Vec::new();
        for flow in state.engine.flows().values() {
            let published = store.list_flows(state.tenant.clone(), Some(flow.name.clone()), 1).await?;
            let stands = standing.iter().filter(|one| one.flow == flow.name);
            let live: serde_json::Map<String, Value> = stands.map(|one| (one.state.clone(), json!(one.live))).collect();
            items.push(json!({
                "name": flow.name,
                "version": flow.version,
                "published_at": published.first().map(|one| one.published_at.to_string()),
                "published_by": published.first().map(|one| one.published_by.clone()),
                "live": live,
            }));
        }
        let gone = standing.iter().filter(|one| !state.engine.flows().contains_key(&one.flow));
        let gone: Vec<Value> =
            gone.map(|one| json!({ "flow": one.flow, "state": one.state, "live": one.live })).collect();
        ok(json!({ "items": items, "next_cursor": null, "gone": gone, "last_reload": state.last_reload.get() }))
    }

    /// `GET /v1/flows/history`: what took effect, newest first, with its text.
    pub(crate) async fn history<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
        query.only(&["flow"])?;
        let flow = query.text("flow").map(Into::into);
        let found = state.engine.store().list_flows(state.tenant.clone(), flow, HISTORY_MAX).await?;
        let items = found.iter().map(|one| {
            json!({
                "flow": one.flow,
                "version": one.version,
                "published_at": one.published_at.to_string(),
                "published_by": one.published_by,
                "text": one.text,
            })
        });
        ok(json!({ "items": items.collect::<Vec<_>>(), "next_cursor": null }))
    }

    /// `POST /v1/flows/reload`: 422 with what is wrong where the files cannot take effect.
    pub(crate) async fn post<S: Store>(
        State(state): State<AppState<S>>,
        Admin(caller): Admin,
        JsonBody(body): JsonBody,
    ) -> Answer {
        Fields::of(&body)?.finish()?;
        ok(reload(&state, &caller.actor).await?)
    }
}
