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

/// Bodies to try it with. They carry no date, so that they count as happening when they are sent.
const EXAMPLES: [(&str, &str); 3] = [
    ("exemplos/pix.json", include_str!("../../templates/vendas/exemplos/pix.json")),
    ("exemplos/mensagem.json", include_str!("../../templates/vendas/exemplos/mensagem.json")),
    ("exemplos/pagamento.json", include_str!("../../templates/vendas/exemplos/pagamento.json")),
];

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
    files.extend(EXAMPLES.iter().map(|(file, body)| (*file, (*body).to_owned(), 0o644)));
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
    let next = [
        "  retoma check            # the configuration and the flow, with its scenarios",
        "  retoma serve            # receive, decide, send; the status page is http://127.0.0.1:8080",
        "",
        "A provider to try it with, in a terminal of its own, in the same folder; it tells what reached a phone:",
        "  retoma fake evolution --port 8081 --instance loja --api-key \"$(cat secrets/evolution-key)\"",
        "",
        "Try it from another terminal, in the same folder: a PIX that nobody paid yet, a message, the payment.",
        "  curl -i http://127.0.0.1:8080/in/hotmart -H \"X-HOTMART-HOTTOK: $(cat secrets/hottok)\" -d @exemplos/pix.json",
        "  retoma contact plan 5541999990001",
        "  curl -i http://127.0.0.1:8080/in/zap -H \"x-hook-secret: $(cat secrets/evolution-hook)\" -d @exemplos/mensagem.json",
        "  retoma contact why 5541999990001",
        "  curl -i http://127.0.0.1:8080/in/hotmart -H \"X-HOTMART-HOTTOK: $(cat secrets/hottok)\" -d @exemplos/pagamento.json",
        "  retoma contact plan 5541999990001",
        "",
        "Before real use:",
    ];
    let dir = dir.display();
    output::line(&format!("{dir} is ready: retoma.toml, flows/vendas.yaml, secrets/, exemplos/"));
    output::line("");
    output::line("Next:");
    output::line(&format!("  cd {dir}"));
    next.iter().for_each(|line| output::line(line));
    for (file, what) in SECRETS {
        output::line(&format!("  {file:22}  {what}"));
    }
    output::line("  retoma.toml             the instance's name and the address of your Evolution API");
}
