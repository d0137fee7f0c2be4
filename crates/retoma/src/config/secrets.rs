//! Secrets: named in the configuration, kept elsewhere. `{ env = NAME }` or `{ file = PATH }`; a literal one is refused,
//! because configuration files end up in repositories and chats.

use std::path::{Path, PathBuf};

use retoma_providers::inbound::Secret;

use super::document::{Section, Value};

/// Where secrets come from.
pub(crate) struct Secrets<'a> {
    /// Reads an environment variable.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// The folder that relative paths start from: the configuration's.
    pub(crate) folder: PathBuf,
}

const EXAMPLE: &str = "{ file = \"secrets/name\" } or { env = \"NAME\" }";

impl Secrets<'_> {
    /// `secret = ..` and `secrets = [..]` of a table, in that order. Several of them rotate.
    pub(super) fn of(&self, section: &Section<'_>) -> Option<Vec<Secret>> {
        let mut wanted: Vec<Value<'_>> = section.value("secret").into_iter().collect();
        if let Some(list) = section.value("secrets") {
            wanted.extend(list.list()?);
        }
        if wanted.is_empty() {
            section.missing("secret", EXAMPLE);
            return None;
        }
        wanted.iter().map(|value| self.read(value)).collect()
    }

    /// One secret.
    pub(super) fn read(&self, value: &Value<'_>) -> Option<Secret> {
        if value.is_text() {
            value.error(
                "literal_secret",
                format!("{} is written into the file", value.name),
                format!("put it into a file or the environment and write {EXAMPLE}"),
            );
            return None;
        }
        let section = value.section()?;
        let secret = match (section.value("env"), section.value("file")) {
            (Some(name), None) => self.in_env(&name),
            (None, Some(path)) => self.in_file(&path),
            _ => {
                value.error(
                    "bad_value",
                    format!("{} needs either env or file", value.name),
                    format!("write {EXAMPLE}"),
                );
                None
            }
        };
        section.finish();
        secret
    }

    fn in_env(&self, name: &Value<'_>) -> Option<Secret> {
        let variable = name.text()?;
        match (self.env)(&variable).map(|text| text.trim().to_owned()) {
            Some(text) if !text.is_empty() => Some(Secret(text.into_bytes())),
            Some(_) => {
                name.error(
                    "missing_secret",
                    format!("the environment variable {variable} is empty"),
                    "give it a value",
                );
                None
            }
            None => {
                name.error(
                    "missing_secret",
                    format!("the environment variable {variable} is not set"),
                    format!("export {variable}=.. before starting, or use {{ file = .. }}"),
                );
                None
            }
        }
    }

    fn in_file(&self, path: &Value<'_>) -> Option<Secret> {
        let written = path.text()?;
        let full = self.folder.join(&written);
        let bytes = match std::fs::read(&full) {
            Ok(bytes) => bytes,
            Err(error) => {
                path.error(
                    "missing_secret",
                    format!("the secret file {written} cannot be read: {}", error.kind()),
                    format!("create {} with the secret as its only line", full.display()),
                );
                return None;
            }
        };
        let text = bytes.trim_ascii();
        if text.is_empty() {
            path.error("missing_secret", format!("the secret file {written} is empty"), "put the secret into it");
            return None;
        }
        if readable_by_others(&full) {
            path.warning(
                "secret_readable",
                format!("the secret file {written} can be read by every user of this machine"),
                format!("chmod 600 {}", full.display()),
            );
        }
        Some(Secret(text.to_vec()))
    }
}

fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0)
}
