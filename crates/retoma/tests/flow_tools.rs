//! The tools that prove a flow (C15), on the real binary: templates, `check`, `classify`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(dead_code, reason = "the harness serves other tests, too")]

#[path = "harness/harness.rs"]
mod harness;

use std::path::Path;
use std::time::Duration;

use harness::free_port;
use harness::process::{Running, run};
use serde_json::Value;

/// A setup of a template, on a port of its own.
fn init(template: &str) -> (tempfile::TempDir, std::path::PathBuf, u16) {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, err) = run(dir.path(), &["init", "loja", "--template", template], &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    let (folder, port) = (dir.path().join("loja"), free_port());
    let path = folder.join("retoma.toml");
    let (here, provider) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{}", free_port()));
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, config.replace("127.0.0.1:8080", &here).replace("127.0.0.1:8081", &provider)).unwrap();
    (dir, folder, port)
}

#[track_caller]
fn json(folder: &Path, args: &[&str], code: i32) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let (ended, out, err) = run(folder, &args, &[]);
    assert_eq!(ended, Some(code), "{args:?}: {out}{err}");
    serde_json::from_str(out.lines().last().unwrap_or_default()).unwrap_or_else(|_| panic!("{args:?}: {out}"))
}

// C15
#[test]
fn every_template_is_checked_tested_and_served_as_it_was_written() {
    for (template, scenarios) in [("vendas", 18), ("recuperacao", 8), ("gateway", 0)] {
        let (_dir, folder, port) = init(template);
        let found = json(&folder, &["check"], 0);
        assert_eq!(found["errors"], Value::Array(Vec::new()), "{template}");
        assert_eq!(found["warnings"], Value::Array(Vec::new()), "{template}");
        let tested = if scenarios == 0 { None } else { Some(json(&folder, &["test"], 0)) };
        if let Some(tested) = tested {
            assert_eq!(tested["failed"], 0, "{tested}");
            assert!(tested["passed"].as_u64().unwrap() >= scenarios, "{tested}");
        }
        let mut server = Running::start("serve", &folder, &["serve"], &[]).ready(port, "/healthz/ready");
        assert!(server.stop(Duration::from_secs(30)).success(), "{template}");
    }
}

#[test]
fn codes_are_explained_and_the_schema_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, _) = run(dir.path(), &["check", "--explain", "w2"], &[]);
    assert!(code == Some(0) && out.starts_with("W2: ") && out.contains("window_closed: skip"), "{out}");
    let (code, _, err) = run(dir.path(), &["check", "--explain", "W9"], &[]);
    assert!(code == Some(2) && err.contains("did you mean `W"), "{err}");
    let schema = json(dir.path(), &["check", "--schema"], 0);
    assert_eq!(schema["properties"]["cadences"]["additionalProperties"]["properties"]["touches"]["type"], "array");
    let (code, out, _) = run(dir.path(), &["check", "--schema"], &[]);
    assert_eq!((code, serde_json::from_str::<Value>(&out).unwrap()), (Some(0), schema));
}

// C2, FC-58
#[test]
fn a_file_of_phrases_shows_what_is_taken_for_something_else() {
    let (_dir, folder, _) = init("vendas");
    let phrases = "# word<TAB>phrase\npediu_preco\tquanto custa?\npediu_parar\tSair.\n-\tbom dia\nquero comprar\n";
    std::fs::write(folder.join("frases.txt"), phrases).unwrap();
    let told = json(&folder, &["classify", "vendas", "--file", "frases.txt"], 0);
    assert_eq!((&told["total"], &told["hits"], &told["disagreements"]), (&4.into(), &3.into(), &0.into()));
    std::fs::write(folder.join("frases.txt"), format!("{phrases}quer_comprar\tnão quero sair do grupo\n")).unwrap();
    let told = json(&folder, &["classify", "flows/vendas.yaml", "--file", "frases.txt"], 1);
    assert_eq!(told["disagreements"], 1);
    let (code, out, _) = run(&folder, &["classify", "vendas", "--file", "frases.txt"], &[]);
    let wrong: Vec<&str> = out.lines().filter(|line| line.starts_with("x ")).collect();
    assert!(code == Some(1) && matches!(wrong[..], [one] if one.contains("(expected quer_comprar)")), "{out}");
    let (code, _, err) = run(&folder, &["classify", "vendas"], &[]);
    assert!(code == Some(2) && err.contains("<TEXT>"), "{err}");
}
