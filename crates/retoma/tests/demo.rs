//! `retoma demo` on the real binary: what it prints, that its page is live, how it ends. Whether its promises can be seen
//! to break is tested beside them (`demo/invariants`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "harness/harness.rs"]
mod harness;

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use harness::process::{Running, run};
use harness::{free_port, http, wait_until};

const FIGURES: [&str; 10] =
    ["received", "duplicates", "decided", "scheduled", "sent", "avoided", "ambiguous", "dead", "held", "violations"];

fn demo(folder: &Path, args: &[&str]) -> Running {
    let args: Vec<&str> = ["demo"].iter().chain(args).copied().collect();
    Running::start("demo", folder, &args, &[("TMPDIR", folder.join("tmp").to_str().unwrap())])
}

#[test]
fn the_demo_needs_nothing_shows_a_live_page_keeps_its_promises_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let port = free_port();
    let mut demo = demo(folder.path(), &["--for", "15s", "--port", &port.to_string(), "--json"]);
    let printed = || std::fs::read_to_string(folder.path().join("demo.out")).unwrap();
    wait_until("the address is printed", Duration::from_secs(30), || !printed().is_empty());
    assert_eq!(printed().lines().next(), Some(format!("http://127.0.0.1:{port}/").as_str()));

    wait_until("the page shows messages that were sent", Duration::from_secs(30), || {
        assert!(demo.is_running(), "{}", demo.tail());
        let status = http::get(port, "/status.json", &[]);
        status.is_ok_and(|answer| answer.json()["tasks"]["sent"].as_u64().is_some_and(|sent| sent > 0))
    });
    let page = http::get(port, "/", &[]).unwrap();
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));

    let status = demo.wait(Duration::from_secs(90));
    let printed = printed();
    assert!(status.success(), "{status}\n{printed}\n{}", demo.tail());
    let lines = printed.lines().filter(|line| line.contains("duplicates stopped") && line.contains("ambiguous"));
    assert!(lines.count() >= 10, "one line per second:\n{printed}");
    let last: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let figure = |name: &str| last[name].as_u64().unwrap_or_else(|| panic!("{name} is no number in {last}"));
    assert_eq!(FIGURES.map(figure).len(), last.as_object().unwrap().len(), "{last}");
    assert_eq!(figure("violations"), 0);
    // The run had in it what it is about.
    for name in ["received", "duplicates", "decided", "sent", "ambiguous"] {
        assert!(figure(name) > 0, "no {name}: {last}");
    }
    let left: Vec<_> = std::fs::read_dir(temporary).unwrap().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn a_port_that_is_taken_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, out, err) = run(folder.path(), &["demo", "--port", &port], &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains(&format!("port {port} cannot be used")) && err.contains("--port"), "{err}");
}

#[test]
fn wrong_usage_is_exit_code_2_and_names_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (&["demo", "--for", "1s"][..], "from 10s to 1h"),
        (&["demo", "--for", "soon"], "--for"),
        (&["fake", "evolution", "--faults", "sometimes"], "no such preset"),
        (&["fake", "zapi"], "not available in this version"),
        (&["fake", "evolution", "--secret-header", "a:b"], "--webhook"),
    ] {
        let (code, _, err) = run(folder.path(), args, &[]);
        assert_eq!(code, Some(2), "{args:?}: {err}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}
