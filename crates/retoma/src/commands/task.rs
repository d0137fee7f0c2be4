//! `retoma task`: promised messages.

use serde_json::{Value, json};

use crate::cli::{PageArgs, Schedule, Task};
use crate::client::{contact_id, encoded, kind_of, query};
use crate::fail::{DONE, usage};
use crate::output::{self, cell, local};

use super::{Session, shown};

pub(crate) async fn run(session: &Session, command: Task) -> anyhow::Result<u8> {
    match command {
        Task::List { contact, status, reason, reference, touch, no_receipt, page } => {
            let contact = match contact {
                Some(who) => Some(contact_id(&session.client, &who).await?),
                None => None,
            };
            let query = query(&[
                ("contact", contact),
                ("status", status),
                ("reason", reason),
                ("reference", reference),
                ("touch", touch.map(|touch| touch.to_string())),
                ("receipt", no_receipt.then(|| "no_receipt".to_owned())),
                ("limit", Some(page.limit.to_string())),
                ("cursor", page.cursor),
            ]);
            list(session, &format!("/v1/tasks{query}")).await?;
        }
        Task::Stuck(PageArgs { limit, cursor }) => {
            let query = query(&[("limit", Some(limit.to_string())), ("cursor", cursor)]);
            list(session, &format!("/v1/tasks/stuck{query}")).await?;
        }
        Task::Orphans { older_than, limit } => {
            let query = query(&[("older_than", Some(older_than)), ("limit", Some(limit.to_string()))]);
            let answer = session.client.get(&format!("/v1/receipts/orphans{query}")).await?;
            if session.json { output::json(&answer) } else { orphans(session, &answer) }
        }
        Task::Show { id } => {
            let answer = session.client.get(&one(&id, "")).await?;
            if session.json { output::json(&answer) } else { show(session, &answer) }
        }
        Task::Schedule(args) => schedule(session, args).await?,
        Task::Cancel { ids, contact, reference, reason } => cancel(session, ids, contact, reference, reason).await?,
        Task::Retry { ids } => {
            let mut moved = Vec::new();
            for id in &ids {
                moved.push(session.client.post(&one(id, "/retry"), &json!({})).await?);
            }
            told(session, &moved);
            later(session);
        }
        Task::Resolve { id, outcome } => {
            told(session, &[session.client.post(&one(&id, "/resolve"), &json!({ "as": outcome })).await?]);
        }
    }
    Ok(DONE)
}

fn one(id: &str, rest: &str) -> String {
    format!("/v1/tasks/{}{rest}", encoded(id))
}

async fn list(session: &Session, path: &str) -> anyhow::Result<()> {
    let answer = session.client.get(path).await?;
    if session.json {
        output::json(&answer)
    } else {
        shown::tasks(&answer, &session.client.zone)
    }
    Ok(())
}

fn orphans(session: &Session, answer: &Value) {
    let rows = shown::items(answer).iter().map(|orphan| {
        let zone = &session.client.zone;
        vec![
            local(orphan, "at", zone),
            cell(orphan, "channel"),
            cell(orphan, "receipt"),
            cell(orphan, "provider_message_id"),
        ]
    });
    let headings = ["said at", "channel", "receipt", "message"];
    output::table(&headings, &rows.collect::<Vec<_>>(), "every receipt belongs to a message of ours");
}

fn told(session: &Session, tasks: &[Value]) {
    match (session.json, tasks) {
        (true, [one]) => output::json(one),
        (true, _) => output::json(&json!({ "items": tasks })),
        (false, _) => shown::tasks(&json!({ "items": tasks }), &session.client.zone),
    }
}

/// Messages leave only while a server runs.
fn later(session: &Session) {
    if !session.client.is_served() && !session.json {
        output::line("no server runs on this database: it leaves when `retoma serve` does");
    }
}

fn show(session: &Session, task: &Value) {
    let zone = &session.client.zone;
    let mut fields = task.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.remove("attempt_log");
        fields.remove("evidence");
    }
    shown::object(&fields, zone);
    let rows = task["attempt_log"].as_array().into_iter().flatten().map(|attempt| {
        vec![
            cell(attempt, "n"),
            local(attempt, "started_at", zone),
            local(attempt, "ended_at", zone),
            cell(attempt, "outcome"),
            cell(attempt, "http_status"),
            cell(attempt, "error"),
        ]
    });
    output::line("");
    let headings = ["n", "started", "ended", "outcome", "http", "error"];
    output::table(&headings, &rows.collect::<Vec<_>>(), "no attempt yet");
    let evidence: Vec<_> = task["evidence"].as_array().into_iter().flatten().collect();
    if !evidence.is_empty() {
        output::line("");
        let rows = evidence.iter().map(|row| vec![local(row, "at", zone), cell(row, "witness"), cell(row, "said")]);
        output::table(&["at", "evidence", "what it says"], &rows.collect::<Vec<_>>(), "");
    }
}

async fn schedule(session: &Session, args: Schedule) -> anyhow::Result<()> {
    let body = json!({
        "key": args.key,
        "contact": { kind_of(&args.contact): args.contact },
        "message": args.message,
        "text": args.text,
        "at": args.at,
        "channel": args.channel,
        "cancel_on": args.cancel_on,
        "class": args.class,
    });
    let answer = session.client.post("/v1/tasks", &body).await?;
    if session.json {
        output::json(&answer);
        return Ok(());
    }
    let word = if answer["created"] == true { "promised" } else { "known already" };
    let at = local(&answer, "scheduled_for", &session.client.zone);
    output::line(&format!("{word}: {} for {at}, {}", cell(&answer, "id"), shown::status(&answer)));
    later(session);
    Ok(())
}

async fn cancel(
    session: &Session,
    ids: Vec<String>,
    contact: Option<String>,
    reference: Option<String>,
    reason: Option<String>,
) -> anyhow::Result<()> {
    if !ids.is_empty() {
        let mut cancelled = Vec::new();
        for id in &ids {
            cancelled.push(session.client.post(&one(id, "/cancel"), &json!({})).await?);
        }
        told(session, &cancelled);
        return Ok(());
    }
    if contact.is_none() && reference.is_none() && reason.is_none() {
        return Err(usage("say which tasks: ids, --contact, --reference or --reason"));
    }
    let contact = contact.map(|who| json!({ kind_of(&who): who }));
    let body = json!({ "contact": contact, "reference": reference, "reason": reason });
    let answer = session.client.post("/v1/tasks/cancel", &body).await?;
    if session.json {
        output::json(&answer)
    } else {
        output::line(&format!("{} cancelled", cell(&answer, "cancelled")))
    }
    Ok(())
}
