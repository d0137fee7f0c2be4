//! `retoma contact`: where a person stands, what will be sent to them, and why.

use anyhow::{Context, bail};
use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use retoma_core::duration;
use serde_json::{Value, json};

use crate::cli::Contact;
use crate::client::{contact_id, encoded};
use crate::fail::{DONE, usage};
use crate::output::{self, cell, local};

use super::{Session, shown};

pub(crate) async fn run(session: &Session, command: Contact) -> anyhow::Result<u8> {
    match command {
        Contact::Show(who) => {
            let answer = session.client.get(&path(session, &who.who, "").await?).await?;
            if session.json { output::json(&answer) } else { show(session, &answer) }
        }
        Contact::Plan(who) => {
            let answer = session.client.get(&path(session, &who.who, "/plan").await?).await?;
            if session.json { output::json(&answer) } else { plan(&answer) }
        }
        Contact::Why(who) => {
            let answer = session.client.get(&path(session, &who.who, "/timeline").await?).await?;
            if session.json { output::json(&answer) } else { timeline(session, &answer) }
        }
        Contact::Pause { who, until, r#for, reason } => {
            let until = match until {
                Some(text) => instant(&text, &session.client.zone)?,
                None => now() + duration::parse(&r#for).map_err(|error| usage(format!("--for: {error}")))?,
            };
            let body = json!({ "until": until.to_string(), "reason": reason });
            order(session, &who.who, "/pause", &body).await?;
        }
        Contact::Resume(who) => order(session, &who.who, "/resume", &json!({ "reason": who.reason })).await?,
        Contact::Optout(who) => order(session, &who.who, "/optout", &json!({ "reason": who.reason })).await?,
        Contact::Link { who, with, reason } => {
            let with = contact_id(&session.client, &with).await?;
            order(session, &who.who, "/link", &json!({ "with": { "id": with }, "reason": reason })).await?;
        }
        Contact::Erase { who, yes, reason } => {
            if !yes {
                return Err(usage("this cannot be undone: say --yes (and keep `contact export` if you need it)"));
            }
            order(session, &who.who, "/erase", &json!({ "reason": reason })).await?;
        }
        Contact::Export(who) => export(session, &who.who).await?,
        Contact::Move { who, conversation, to, reason } => {
            let conversation = match conversation {
                Some(id) => id,
                None => only_conversation(session, &who.who).await?,
            };
            let body = json!({ "conversation": conversation, "to": to, "reason": reason });
            order(session, &who.who, "/move", &body).await?;
        }
    }
    Ok(DONE)
}

/// Everything at once: who it is, its story, its messages.
async fn export(session: &Session, who: &str) -> anyhow::Result<()> {
    let id = contact_id(&session.client, who).await?;
    let id = encoded(&id);
    let contact = session.client.get(&format!("/v1/contacts/{id}")).await?;
    let timeline = session.client.get(&format!("/v1/contacts/{id}/timeline")).await?;
    let tasks = session.client.get(&format!("/v1/tasks?contact={id}&limit=500")).await?;
    output::json(&json!({ "contact": contact, "timeline": timeline["items"], "tasks": tasks["items"] }));
    Ok(())
}

/// An instant, or the next time that the operator's clock shows this hour.
fn instant(text: &str, zone: &TimeZone) -> anyhow::Result<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let wrong = || usage("--until is a time like 18:00 or 2026-12-02T18:00:00-03:00");
    let hour: Time = text.parse().map_err(|_| wrong())?;
    let now = now();
    let today = zone.to_datetime(now).date();
    let at = |day: Date| zone.to_timestamp(day.to_datetime(hour)).map_err(|_| wrong());
    let at_today = at(today)?;
    if at_today > now { Ok(at_today) } else { at(today.tomorrow().map_err(|_| wrong())?) }
}

#[expect(clippy::disallowed_methods, reason = "the operator's own clock: --for counts from it")]
fn now() -> Timestamp {
    Timestamp::now()
}

async fn path(session: &Session, who: &str, rest: &str) -> anyhow::Result<String> {
    Ok(format!("/v1/contacts/{}{rest}", encoded(&contact_id(&session.client, who).await?)))
}

async fn order(session: &Session, who: &str, verb: &str, body: &Value) -> anyhow::Result<()> {
    let answer = session.client.post(&path(session, who, verb).await?, body).await?;
    if session.json {
        output::json(&answer);
        return Ok(());
    }
    let event = &answer["event"];
    if event["status"] == "received" {
        output::line(&format!("taken, and not decided yet; see `retoma event show {}`", cell(event, "id")));
    } else {
        output::line(&format!("done: {}", shown::told(event)));
    }
    show(session, &answer);
    Ok(())
}

async fn only_conversation(session: &Session, who: &str) -> anyhow::Result<String> {
    let contact = session.client.get(&path(session, who, "").await?).await?;
    match contact["conversations"].as_array().map(Vec::as_slice) {
        Some([only]) => Ok(only["id"].as_str().context("a conversation has an id")?.to_owned()),
        Some([]) | None => bail!("this contact has no open conversation"),
        Some(_) => {
            Err(usage("this contact has several open conversations: say --conversation ID (see `contact show`)"))
        }
    }
}

fn show(session: &Session, contact: &Value) {
    let zone = &session.client.zone;
    output::line(&format!("contact {}", cell(contact, "id")));
    for identity in contact["identities"].as_array().into_iter().flatten() {
        output::line(&format!("  {:9} {}", cell(identity, "kind"), cell(identity, "value")));
    }
    if contact["opted_out"] == true {
        output::line(&format!("  asked for silence at {}", local(contact, "opted_out_at", zone)));
    }
    if !contact["paused_until"].is_null() {
        output::line(&format!("  automatic messages paused until {}", local(contact, "paused_until", zone)));
    }
    let rows = contact["conversations"].as_array().into_iter().flatten().map(|cycle| {
        vec![
            cell(cycle, "state"),
            cell(cycle, "offer"),
            cell(cycle, "flow"),
            local(cycle, "deadline_at", zone),
            cell(cycle, "id"),
        ]
    });
    let headings = ["state", "offer", "flow", "clock", "conversation"];
    output::table(&headings, &rows.collect::<Vec<_>>(), "no open conversation");
}

fn plan(answer: &Value) {
    let rows: Vec<_> = shown::items(answer)
        .iter()
        .map(|item| {
            vec![
                cell(item, "local"),
                cell(item, "message"),
                cell(item, "status"),
                stop(item),
                cell(item, "task_id"),
                cell(item, "at"),
            ]
        })
        .collect();
    let headings = ["local time", "message", "status", "would stop it", "task", "at"];
    output::table(&headings, &rows, "nothing is planned for this contact");
    let closed: Vec<_> = answer["closed"].as_array().into_iter().flatten().collect();
    if closed.is_empty() {
        return;
    }
    output::line("");
    output::line("what came to its end:");
    let rows = closed
        .iter()
        .map(|task| vec![cell(task, "local"), cell(task, "message"), shown::status(task), cell(task, "task_id")]);
    output::table(&["local time", "message", "status", "task"], &rows.collect::<Vec<_>>(), "nothing");
}

/// What would keep the message from leaving at its time.
fn stop(item: &Value) -> String {
    let reason = cell(item, "would_avoid");
    match (item["would"].as_str(), item["until_local"].as_str()) {
        (Some("defer"), Some(until)) => format!("{reason}, waits until {until}"),
        (Some("hold"), _) => format!("{reason}, a person decides"),
        _ => reason,
    }
}

fn timeline(session: &Session, answer: &Value) {
    let rows = shown::items(answer).iter().map(|line| {
        let rule = line["rule"].as_str().map_or(String::new(), |rule| format!("  [rule {rule}]"));
        vec![local(line, "at", &session.client.zone), cell(line, "kind"), format!("{}{rule}", cell(line, "summary"))]
    });
    output::table(&["when", "what", "story"], &rows.collect::<Vec<_>>(), "nothing is known of this contact");
}
