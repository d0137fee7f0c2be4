//! `retoma init`: a commented, runnable setup in a folder of its own. Overwrites nothing.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use retoma_core::flow::{RECUPERACAO, VENDAS};
use serde_json::json;

use crate::cli::{Init, Template};
use crate::fail::DONE;
use crate::{output, random};

const CONFIG: &str = include_str!("../../templates/vendas/retoma.toml");
const GITIGNORE: &str = include_str!("../../templates/vendas/gitignore");
const GATEWAY: &str = include_str!("../../templates/gateway/retoma.toml");
const GATEWAY_GITIGNORE: &str = include_str!("../../templates/gateway/gitignore");

/// Bodies to try it with. They carry no date, so that they count as happening when they are sent.
const EXAMPLES: [(&str, &str); 3] = [
    ("exemplos/pix.json", include_str!("../../templates/vendas/exemplos/pix.json")),
    ("exemplos/mensagem.json", include_str!("../../templates/vendas/exemplos/mensagem.json")),
    ("exemplos/pagamento.json", include_str!("../../templates/vendas/exemplos/pagamento.json")),
];

/// What a caller of the gate sends.
const CALLS: [(&str, &str); 2] = [
    ("exemplos/claim.json", include_str!("../../templates/gateway/exemplos/claim.json")),
    ("exemplos/complete.json", include_str!("../../templates/gateway/exemplos/complete.json")),
];

/// Secrets that the configuration names. Random at first: the provider's own replace those marked so.
const SECRETS: [(&str, &str); 3] = [
    ("secrets/hottok", "replace by Hotmart's HOTTOK"),
    ("secrets/evolution-hook", "give it to Evolution as the webhook's header x-hook-secret"),
    ("secrets/evolution-key", "replace by the instance's apikey"),
];

/// A file of a setup: where, what, and who may read it.
type File = (&'static str, String, u32);

/// The files of a template.
fn files_of(template: Template) -> Vec<File> {
    let open = |(file, content): (&'static str, &str)| (file, content.to_owned(), 0o644);
    let of_flow = |config: String, flow: (&'static str, &str)| {
        let mut files = vec![("retoma.toml", config, 0o644), open(flow), (".gitignore", GITIGNORE.to_owned(), 0o644)];
        files.extend(EXAMPLES.map(open));
        files.extend(SECRETS.map(|(file, _)| (file, format!("{}\n", random::text()), 0o600)));
        files
    };
    match template {
        Template::Vendas => of_flow(CONFIG.to_owned(), ("flows/vendas.yaml", VENDAS)),
        // The same doors and the same way out; only the flow is another.
        Template::Recuperacao => of_flow(
            CONFIG.replace("flow = \"vendas\"", "flow = \"recuperacao\""),
            ("flows/recuperacao.yaml", RECUPERACAO),
        ),
        Template::Gateway => {
            let mut files = vec![open(("retoma.toml", GATEWAY)), open((".gitignore", GATEWAY_GITIGNORE))];
            files.extend(CALLS.map(open));
            files
        }
    }
}

pub(crate) fn run(args: &Init, json: bool) -> anyhow::Result<u8> {
    let dir = &args.dir;
    let files = files_of(args.template);
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
        match args.template {
            Template::Gateway => tell_of_gateway(dir),
            Template::Vendas => tell(dir, "vendas"),
            Template::Recuperacao => tell(dir, "recuperacao"),
        }
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

fn tell(dir: &Path, flow: &str) {
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
    output::line(&format!("{dir} is ready: retoma.toml, flows/{flow}.yaml, secrets/, exemplos/"));
    output::line("");
    output::line("Next:");
    output::line(&format!("  cd {dir}"));
    next.iter().for_each(|line| output::line(line));
    for (file, what) in SECRETS {
        output::line(&format!("  {file:22}  {what}"));
    }
    output::line("  retoma.toml             the instance's name and the address of your Evolution API");
}

fn tell_of_gateway(dir: &Path) {
    let next = [
        "  retoma check            # the configuration",
        "  retoma serve            # answer; the status page is http://127.0.0.1:8080",
        "  retoma key create n8n --scope write     # in another terminal; the key is shown once",
        "",
        "Before the effect, ask; after it, tell. 201 means go on, anything else says why not:",
        "  curl -i http://127.0.0.1:8080/v1/gate/cobranca/claim -H \"Authorization: Bearer KEY\" -d @exemplos/claim.json",
        "  curl -i http://127.0.0.1:8080/v1/gate/cobranca/complete -H \"Authorization: Bearer KEY\" -d @exemplos/complete.json",
        "",
        "Name the kinds of effects of your own under [gate.scopes] in retoma.toml.",
    ];
    let dir = dir.display();
    output::line(&format!("{dir} is ready: retoma.toml, exemplos/"));
    output::line("");
    output::line("Next:");
    output::line(&format!("  cd {dir}"));
    next.iter().for_each(|line| output::line(line));
}
