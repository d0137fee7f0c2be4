//! `retoma init`: a commented, runnable setup in a folder of its own. Overwrites nothing.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use retoma_core::flow::VENDAS;
use serde_json::json;

use crate::cli::{Init, Template};
use crate::fail::{DONE, usage};
use crate::{output, random};

const CONFIG: &str = include_str!("../../templates/vendas/retoma.toml");
const GITIGNORE: &str = include_str!("../../templates/vendas/gitignore");

/// Secrets that the configuration names. Random at first: the provider's own replace those marked so.
const SECRETS: [(&str, &str); 3] = [
    ("secrets/hottok", "replace by Hotmart's HOTTOK"),
    ("secrets/evolution-hook", "give it to Evolution as the webhook's header x-hook-secret"),
    ("secrets/evolution-key", "replace by the instance's apikey"),
];

pub(crate) fn run(args: &Init, json: bool) -> anyhow::Result<u8> {
    if args.template != Template::Vendas {
        return Err(usage("this template comes with a later version; use --template vendas"));
    }
    let dir = &args.dir;
    let mut files = vec![
        ("retoma.toml", CONFIG.to_owned(), 0o644),
        ("flows/vendas.yaml", VENDAS.to_owned(), 0o644),
        (".gitignore", GITIGNORE.to_owned(), 0o644),
    ];
    files.extend(SECRETS.iter().map(|(file, _)| (*file, format!("{}\n", random::text()), 0o600)));
    // All or nothing: a folder with half a setup and half of somebody else's is worse than an error.
    if let Some((taken, ..)) = files.iter().find(|(file, ..)| dir.join(file).exists()) {
        bail!("{} is there already; nothing was written. Choose another folder", dir.join(taken).display());
    }
    for (file, content, mode) in &files {
        write(&dir.join(file), content, *mode)?;
    }
    if json {
        let names: Vec<_> = files.iter().map(|(file, ..)| *file).collect();
        output::json(&json!({ "dir": dir.display().to_string(), "files": names }));
    } else {
        tell(dir);
    }
    Ok(DONE)
}

fn write(path: &Path, content: &str, mode: u32) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| file.write_all(content.as_bytes()));
    written.with_context(|| format!("{} cannot be written", path.display()))
}

fn tell(dir: &Path) {
    let dir = dir.display();
    output::line(&format!("{dir} is ready: retoma.toml, flows/vendas.yaml, secrets/"));
    output::line("");
    output::line("Next:");
    output::line(&format!("  cd {dir}"));
    output::line("  retoma check            # the configuration and the flow, with their scenarios");
    output::line("  retoma serve            # receive, decide, send; the status page is http://127.0.0.1:8080");
    output::line("");
    output::line("Try it from another terminal, in the same folder. A PIX that nobody paid yet:");
    output::line("  curl -i http://127.0.0.1:8080/in/hotmart -H \"X-HOTMART-HOTTOK: $(cat secrets/hottok)\" \\");
    output::line(
        "    -d '{\"id\":\"evt-1\",\"event\":\"PURCHASE_BILLET_PRINTED\",\"version\":\"2.0.0\",\"data\":{\"product\":{\"id\":1,\"name\":\"Curso\"},\\",
    );
    output::line(
        "         \"buyer\":{\"name\":\"Ana Teste\",\"email\":\"ana@example.com\",\"checkout_phone\":\"5541999990001\"},\\",
    );
    output::line(
        "         \"purchase\":{\"transaction\":\"HP0000000001\",\"status\":\"PRINTED_BILLET\",\"payment\":{\"type\":\"PIX\"}}}}'",
    );
    output::line("  retoma contact plan 5541999990001");
    output::line("");
    output::line("Before real use:");
    for (file, what) in SECRETS {
        output::line(&format!("  {file:22}  {what}"));
    }
    output::line("  retoma.toml             the instance's name and the address of your Evolution API");
}
