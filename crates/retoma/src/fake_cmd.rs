//! `retoma fake`: a fake provider on a local port, to try a setup against without a phone. Run by people and tests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use http::{HeaderMap, HeaderName, HeaderValue};
use retoma_engine::{Clock, SystemClock};
use retoma_providers::evolution::fake::{Fake, Fault, Faults};
use retoma_server::fake::{Delivery, FakeServer, FakeSetup, Webhook};
use serde_json::json;

use crate::{fail, output};

/// Options of `retoma fake`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(crate) struct FakeArgs {
    /// Which provider
    #[arg(value_enum)]
    provider: FakeProvider,
    /// Port on 127.0.0.1
    #[arg(long, value_name = "N", default_value_t = 8081)]
    port: u16,
    /// Name of the only instance
    #[arg(long, value_name = "NAME", default_value = "loja-a")]
    instance: String,
    /// What callers must send as `apikey`. A fake secret: do not use a real one
    #[arg(long, value_name = "KEY", default_value = "chave-de-teste")]
    api_key: String,
    /// Post echoes and receipts of what is sent to this address, for example http://127.0.0.1:8080/in/zap
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// A header of every webhook post, for example x-hook-secret:abc. May be given several times
    #[arg(long, value_name = "NAME:VALUE")]
    secret_header: Vec<String>,
    /// What goes wrong: none, few, lying, hanging, by-number, or JSON (see below)
    #[arg(long, value_name = "PRESET|JSON", default_value = "none")]
    faults: String,
    /// Append every delivered message to this file, as a line of JSON, before its request is answered
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Equal seeds draw equal faults and ids
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FakeProvider {
    /// Evolution API v2
    Evolution,
    /// Z-API (not available in this version)
    Zapi,
    /// WhatsApp Cloud API (not available in this version)
    #[value(name = "whatsapp_cloud")]
    WhatsappCloud,
}

const HELP: &str = "\
A fake WhatsApp on this machine: try a setup, and what it does when the provider lies, without a phone and without a bill.

Try it, with a setup made by `retoma init` that listens on port 8080:
  retoma fake evolution --webhook http://127.0.0.1:8080/in/zap --secret-header x-hook-secret:SECRET --faults lying
  curl -X POST http://127.0.0.1:8081/say -d '{\"number\": \"5541999990001\", \"text\": \"oi\"}'
Then look at what reached the phone (printed here, and GET /log), and at what Retoma knows: retoma task list.

Presets of --faults:
  none       every message is delivered and answered 201; echo and receipts follow
  few        a few percent go wrong in every way there is, webhooks repeat now and then
  lying      a third of the messages is delivered and answered with an error, or not delivered and reset
  hanging    a fifth of the requests is never answered, delivered or not
  by-number  the last digits of the number decide, 9901 to 9916, in the order of the words below

JSON says it exactly, for example
  --faults '{\"chances\": {\"sent400\": 0.1, \"hang_sent\": 0.05}, \"duplicates\": 0.2, \"latency_ms\": 30}'
Words for chances (each 0 to 1, together at most 1), in the order of by-number:
  slow            delivered, answered slow_ms late
  sent400         delivered, answered 400 (its database failed): no echo, no receipt, not to be found
  sent500         delivered, answered 500 \"Timed Out\": no echo, no receipt, not to be found
  hang_sent       delivered with echo and receipts, never answered
  hang_unsent     not delivered, never answered
  reset_sent      delivered with echo and receipts, connection reset
  reset_unsent    not delivered, connection reset
  no_id           delivered, answered 201 without an id
  closed400       not delivered, answered 400 \"Connection Closed\" from within the send
  closed500       not delivered, answered 500 \"Connection Closed\" before the send: safe to try again
  too_many        not delivered, 429 with Retry-After
  unauthorized    not delivered, 401
  not_on_whatsapp not delivered, 400: the number does not exist
  proxy502        delivered with echo and receipts, answered 502 by a proxy
  stored400       delivered, answered 400 after it was stored: receipts and a row to be found, no echo
  never_arrives   answered 201 with an id, and then nothing for ever

Other keys:
  numbers              {\"0007\": \"slow\"}: what numbers that end so always meet
  latency_ms, slow_ms  how long each answer takes, and how much longer a slow one
  rate_per_s           more sends in a second are answered 429; retry_after_s is what it asks for
  echoes, receipts     false: never. webhook_pace_ms is the time between them
  echo_first           true: echo and every receipt come before the answer
  receipts_backwards   true: READ, DELIVERY_ACK, SERVER_ACK
  out_of_order         true: webhooks in any order. duplicates: how often one comes twice, 0 to 1
  both_webhooks        true: each comes twice, as with a global and an instance webhook
  find_ignores_filters true (the default, as several versions do): searches show everybody's messages
  find_nothing         true: searches find nothing. find_fails: searches are answered 500
  lid                  none, only, sender_pn, alt, overwritten: how chats behind a LID are named
  only_spelling        short or long: Brazilian mobiles exist without, or with, the ninth digit only
  state                what connectionState says; the real one says open over a dead socket, too

Beside the provider's routes:
  GET  /log            every message that reached a phone, in order: the proof of \"once\"
  GET  /stats          counts
  GET, PUT /faults     what goes wrong from now on
  POST /say            {number, text}: the customer writes
  POST /type           {number, text}: somebody types on the connected phone
  POST /connection     {state}: the instance connects (open) or is thrown out (close)";

/// Serves until the process is told to end.
pub(crate) async fn run(args: FakeArgs, json: bool) -> anyhow::Result<u8> {
    if args.provider != FakeProvider::Evolution {
        return Err(fail::usage("this fake is not available in this version; evolution is"));
    }
    let faults = faults(&args.faults)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let setup = FakeSetup {
        fake: Fake::new(&args.instance, &args.api_key, faults, args.seed),
        clock,
        webhook: webhook(args.webhook.as_deref(), &args.secret_header)?,
        log: args.log.clone(),
        tell: if json { tell_programs } else { tell_people },
    };
    let address = SocketAddr::from(([127, 0, 0, 1], args.port));
    let server = FakeServer::bind(address, setup)
        .await
        .with_context(|| format!("cannot serve on {address}, or the log cannot be written; try another --port"))?;
    announce(&args, server.address()?, json);
    server.serve(told_to_end()).await;
    Ok(fail::DONE)
}

fn announce(args: &FakeArgs, address: SocketAddr, json: bool) {
    let FakeArgs { instance, api_key, webhook, .. } = args;
    if json {
        output::json(&json!({ "url": format!("http://{address}"), "instance": instance, "api_key": api_key }));
        return;
    }
    output::line(&format!("fake Evolution API on http://{address}, instance {instance}, apikey {api_key}"));
    output::line(&match webhook {
        Some(url) => format!("webhooks go to {url}"),
        None => "no --webhook: nobody hears of echoes and receipts".to_owned(),
    });
    output::line(&format!("what reaches a phone is printed here; all of it: http://{address}/log    Ctrl-C ends it"));
}

/// The phone's screen.
fn tell_people(delivery: &Delivery) {
    let at = jiff::tz::TimeZone::UTC.to_datetime(delivery.at).strftime("%H:%M:%SZ").to_string();
    let text = delivery.text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" / ");
    output::line(&format!("{at}  to {}: {text}", delivery.number));
}

fn tell_programs(delivery: &Delivery) {
    output::json(&json!(delivery));
}

/// The faults of a preset or of JSON.
fn faults(text: &str) -> anyhow::Result<Faults> {
    let some = |chances: &[(Fault, f64)]| Faults { chances: chances.iter().copied().collect(), ..Faults::default() };
    let faults = match text {
        "none" => Faults::default(),
        "few" => few(),
        "lying" => some(&[
            (Fault::Sent400, 0.10),
            (Fault::Sent500, 0.05),
            (Fault::ResetSent, 0.08),
            (Fault::Closed400, 0.04),
            (Fault::ResetUnsent, 0.06),
        ]),
        "hanging" => some(&[(Fault::HangSent, 0.1), (Fault::HangUnsent, 0.1)]),
        "by-number" => Faults::by_number(),
        json if json.trim_start().starts_with('{') => {
            let wrong =
                |error| fail::usage(format!("--faults is no valid set of faults, see retoma fake --help: {error}"));
            serde_json::from_str(json).map_err(wrong)?
        }
        other => {
            let known = "use none, few, lying, hanging, by-number, or JSON";
            return Err(fail::usage(format!("--faults {other:?}: there is no such preset; {known}")));
        }
    };
    faults.check().map_err(|why| fail::usage(format!("--faults: {why}")))?;
    Ok(faults)
}

/// A provider on an ordinary bad day: what `retoma demo` is played against.
pub(crate) fn few() -> Faults {
    let chances = [
        (Fault::Slow, 0.03),
        (Fault::Closed500, 0.03),
        (Fault::Sent400, 0.01),
        (Fault::Sent500, 0.005),
        (Fault::HangSent, 0.005),
        (Fault::HangUnsent, 0.003),
        (Fault::ResetSent, 0.005),
        (Fault::ResetUnsent, 0.005),
        (Fault::NoId, 0.005),
        (Fault::Proxy502, 0.005),
    ];
    Faults {
        chances: chances.into(),
        latency_ms: 3,
        slow_ms: 400,
        webhook_pace_ms: 40,
        duplicates: 0.1,
        out_of_order: true,
        ..Faults::default()
    }
}

fn webhook(url: Option<&str>, headers: &[String]) -> anyhow::Result<Option<Webhook>> {
    let Some(url) = url else {
        if headers.is_empty() {
            return Ok(None);
        }
        return Err(fail::usage("--secret-header needs --webhook URL"));
    };
    let uri: Option<http::Uri> = url.parse().ok();
    if uri.is_none_or(|uri| !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none()) {
        return Err(fail::usage("--webhook: an address starts with http:// or https://"));
    }
    // Neither part of a header is repeated in an error: the value may be a real secret after all.
    let wrong = || fail::usage("--secret-header is NAME:VALUE, for example x-hook-secret:abc");
    let mut map = HeaderMap::new();
    for header in headers {
        let (name, value) = header.split_once(':').ok_or_else(wrong)?;
        let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
        map.append(name, HeaderValue::from_str(value.trim()).map_err(|_| wrong())?);
    }
    Ok(Some(Webhook { url: url.to_owned(), headers: map }))
}

/// Resolves at Ctrl-C or SIGTERM.
pub(crate) async fn told_to_end() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => if interrupted.is_err() { std::future::pending().await },
        () = terminated => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_and_json_say_what_goes_wrong() {
        for preset in ["none", "few", "lying", "hanging", "by-number"] {
            faults(preset).unwrap();
        }
        assert_eq!(faults(r#"{"chances": {"sent400": 0.5}}"#).unwrap().chances[&Fault::Sent400], 0.5);
        for (wrong, expected) in [
            ("sometimes", "no such preset"),
            (r#"{"chances": {"sent400": 2}}"#, "between 0 and 1"),
            (r#"{"chance": 1}"#, "no valid set of faults"),
        ] {
            let said = format!("{:#}", faults(wrong).unwrap_err());
            assert!(said.contains(expected), "{wrong}: {said}");
        }
    }

    #[test]
    fn webhooks_carry_their_secret_and_errors_do_not_repeat_it() {
        let headers = vec!["x-hook-secret: abc".to_owned()];
        let webhook = webhook(Some("http://127.0.0.1:8080/in/zap"), &headers).unwrap().unwrap();
        assert_eq!(webhook.headers["x-hook-secret"], "abc");
        for (url, headers) in [
            (None, vec!["x-hook-secret:geheim".to_owned()]),
            (Some("http://127.0.0.1/"), vec!["geheim".to_owned()]),
            (Some("http://127.0.0.1/"), vec!["x y:geheim".to_owned()]),
            (Some("127.0.0.1:8080"), vec![]),
        ] {
            let said = format!("{:#}", super::webhook(url, &headers).unwrap_err());
            assert!(!said.contains("geheim"), "{said}");
        }
    }

    #[test]
    fn every_fault_has_its_word_in_the_help() {
        for fault in Fault::ALL.into_iter().filter(|fault| *fault != Fault::None) {
            let word = serde_json::to_string(&fault).unwrap();
            assert!(HELP.contains(word.trim_matches('"')), "{word}");
        }
    }
}
