//! `retoma completions` and `retoma man`: made from the command line's own description, so that they are never out of date.

use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::fail::DONE;
use crate::output;

/// Prints the completion script of a shell.
pub(crate) fn completions(shell: Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "retoma", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    DONE
}

/// Writes one page per command into a folder.
pub(crate) fn pages(dir: &Path, json: bool) -> anyhow::Result<u8> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut root = Cli::command();
    root.build();
    let mut written = Vec::new();
    write(dir, &root, "retoma", &mut written)?;
    if json {
        output::json(&serde_json::json!({ "pages": written }));
    } else {
        let shown = dir.display();
        output::line(&format!("{} pages in {shown}; read one with: man {shown}/retoma.1", written.len()));
    }
    Ok(DONE)
}

fn write(dir: &Path, command: &Command, name: &str, written: &mut Vec<String>) -> anyhow::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name).render(&mut page)?;
    let path = dir.join(format!("{name}.1"));
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    written.push(format!("{name}.1"));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        write(dir, sub, &format!("{name}-{}", sub.get_name()), written)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_every_shell_a_script() {
        let dir = tempfile::tempdir().unwrap();
        pages(dir.path(), true).unwrap();
        for page in ["retoma.1", "retoma-fake.1", "retoma-dead-retry.1", "retoma-channel-pause.1"] {
            let text = std::fs::read_to_string(dir.path().join(page)).unwrap();
            assert!(text.contains(".SH") && text.len() > 200, "{page}: {text}");
        }
        assert!(!dir.path().join("retoma-bench-serve.1").exists(), "hidden commands stay hidden");
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "retoma", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("discard") && script.contains("dry-run"), "{shell}");
        }
    }
}
