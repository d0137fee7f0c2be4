//! The house rules that a machine can check: arrows between crates, what core must not know, and that ARCHITECTURE.md
//! names files and functions that exist.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every crate of ours with the crates of ours it may depend on (DESIGN.md, "The house").
fn allowed_arrows() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let rows: [(&str, &[&str]); 7] = [
        ("retoma-core", &[]),
        ("retoma-store", &["retoma-core"]),
        ("retoma-sqlite", &["retoma-core", "retoma-store"]),
        ("retoma-providers", &["retoma-core"]),
        ("retoma-engine", &["retoma-core", "retoma-store", "retoma-providers"]),
        ("retoma-server", &["retoma-core", "retoma-store", "retoma-providers", "retoma-engine"]),
        (
            "retoma",
            &["retoma-core", "retoma-store", "retoma-sqlite", "retoma-providers", "retoma-engine", "retoma-server"],
        ),
    ];
    rows.into_iter().map(|(name, to)| (name, to.iter().copied().collect())).collect()
}

fn metadata() -> cargo_metadata::Metadata {
    cargo_metadata::MetadataCommand::new().current_dir(root()).no_deps().exec().unwrap()
}

#[test]
fn arrows_between_crates_point_to_core() {
    let allowed = allowed_arrows();
    let mut wrong = Vec::new();
    for package in metadata().workspace_packages() {
        let Some(may) = allowed.get(package.name.as_str()) else {
            wrong.push(format!(
                "{} is not in the house plan; add it to DESIGN's picture and to this test",
                package.name
            ));
            continue;
        };
        // Tests may use a real store; the arrows are about what ships.
        let ours = package.dependencies.iter().filter(|dependency| {
            dependency.kind == cargo_metadata::DependencyKind::Normal && dependency.name.starts_with("retoma")
        });
        for dependency in ours {
            if !may.contains(dependency.name.as_str()) {
                wrong.push(format!("{} -> {}", package.name, dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "wrong arrows: {wrong:#?}");
}

#[test]
fn core_has_no_runtime_no_sql_no_http_and_no_logging() {
    let metadata = metadata();
    let core =
        metadata.workspace_packages().into_iter().find(|package| package.name.as_str() == "retoma-core").unwrap();
    let banned = ["tokio", "rusqlite", "hyper", "axum", "http", "tracing", "log", "rand", "getrandom", "futures"];
    let found: Vec<_> = core
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == cargo_metadata::DependencyKind::Normal)
        .filter(|dependency| banned.contains(&dependency.name.as_str()))
        .map(|dependency| dependency.name.clone())
        .collect();
    assert!(found.is_empty(), "retoma-core must stay pure, but depends on {found:?}");
}

/// Source files of a crate, tests left out.
fn sources(of: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates").join(of).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn sql_lives_in_the_stores_and_axum_in_the_server() {
    let mut wrong = Vec::new();
    // The suite asks a store about its own refusals, in SQL.
    let is_suite = |path: &Path| path.components().any(|part| part.as_os_str() == "conformance");
    for (of, words) in [
        ("retoma-core", ["SELECT ", "INSERT INTO", "axum::"]),
        ("retoma-store", ["INSERT INTO", "UPDATE ", "axum::"]),
        ("retoma-providers", ["SELECT ", "INSERT INTO", "axum::"]),
        ("retoma-engine", ["SELECT ", "INSERT INTO", "axum::"]),
        ("retoma-sqlite", ["axum::", "hyper::", "reqwest::"]),
    ] {
        for path in sources(of).into_iter().filter(|path| !is_suite(path)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for word in words {
                let hit = code.lines().find(|line| line.contains(word) && !line.trim_start().starts_with("//"));
                if let Some(line) = hit {
                    wrong.push(format!("{}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn time_enters_through_the_clock_only() {
    let wrong: Vec<_> = allowed_arrows()
        .keys()
        .flat_map(|of| sources(of))
        .filter(|path| !path.ends_with("retoma-engine/src/clock.rs"))
        .filter(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            code.contains("disallowed_methods")
        })
        .collect();
    // Each place that asks the system for the time is named here, with its reason.
    let known = [
        // How long a slice of a sweep, or a read, has been running: a budget, never a fact.
        "retoma-sqlite/src/sweep.rs",
        "retoma-sqlite/src/readers.rs",
        // Leases go by the store's own clock; a simulator passes another one.
        "retoma-sqlite/src/options.rs",
        // What "until 18:00" means to the person who types it.
        "retoma/src/commands/contact.rs",
    ];
    let wrong: Vec<_> = wrong.iter().filter(|path| !known.iter().any(|end| path.ends_with(end))).collect();
    assert!(wrong.is_empty(), "these files ask the system for the time: {wrong:#?}");
}

/// Names in backquotes of the section "The life of one event" of ARCHITECTURE.md: `path.rs` and `path.rs: function`.
fn named_places(text: &str) -> Vec<(String, Option<String>)> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.starts_with("crates/"))
        .map(|name| match name.split_once(": ") {
            Some((file, function)) => (file.to_owned(), Some(function.to_owned())),
            None => (name.to_owned(), None),
        })
        .collect()
}

#[test]
fn architecture_names_files_and_functions_that_exist() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let places = named_places(&text);
    assert!(places.len() >= 20, "ARCHITECTURE.md tells the life of one event with file and function names");
    let mut wrong = Vec::new();
    for (file, function) in places {
        let path = root().join(&file);
        if path.is_dir() && function.is_none() {
            continue;
        }
        let Ok(code) = std::fs::read_to_string(&path) else {
            wrong.push(format!("{file} does not exist"));
            continue;
        };
        if let Some(function) = function {
            let name = function.trim_end_matches("()");
            let there = ["fn ", "struct ", "enum ", "trait ", "const "].iter().any(|word| {
                code.match_indices(&format!("{word}{name}")).any(|(at, hit)| {
                    !code[at + hit.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
                })
            });
            if !there {
                wrong.push(format!("{file} has no {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
