//! Findings: what `check` has to say about a flow file or a configuration file, with line and fix.
//!
//! Errors stop a start or a reload; warnings do not. Codes are stable, so that scripts can look for them.

use std::fmt;

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The file is not used.
    Error,
    /// The file is used, and somebody should look at this.
    Warning,
}

/// One thing that is wrong, or doubtful, in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Stable code (`N1`).
    pub code: &'static str,
    /// Error or warning.
    pub level: Level,
    /// The file, as it was named to us.
    pub file: String,
    /// Line from 1; 0 where the whole file is meant.
    pub line: u32,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

impl Finding {
    /// A finding that stops the file from being used.
    pub fn error(
        code: &'static str,
        file: &str,
        line: u32,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(code, Level::Error, file, line, message.into(), fix.into())
    }

    /// A finding that does not.
    pub fn warning(
        code: &'static str,
        file: &str,
        line: u32,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(code, Level::Warning, file, line, message.into(), fix.into())
    }

    fn new(code: &'static str, level: Level, file: &str, line: u32, message: String, fix: String) -> Self {
        Self { code, level, file: file.to_owned(), line, message, fix }
    }

    /// Whether it stops the file from being used.
    pub fn is_error(&self) -> bool {
        self.level == Level::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        write!(f, "{}:{}: {level} {}: {}", self.file, self.line, self.code, self.message)?;
        if !self.fix.is_empty() {
            write!(f, " ({})", self.fix)?;
        }
        Ok(())
    }
}

/// The candidate that `word` most likely was meant to be, if one is near enough to be worth naming.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let limit = word.chars().count().div_ceil(3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "did you mean `x`?", or the list of what is known.
pub fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    match nearest(word, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if candidates.is_empty() => "none is declared".to_owned(),
        None => format!("known here: {}", candidates.join(", ")),
    }
}

/// Edits (insert, delete, replace, swap of neighbours) between two words.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        let states = ["NOVO", "ENGAJADO", "RECUPERANDO", "PERDIDO"];
        let table = [
            ("RECUPERADO", Some("RECUPERANDO")),
            ("ENGAJDAO", Some("ENGAJADO")),
            ("novo", Some("NOVO")),
            ("NOVOS", Some("NOVO")),
            ("CARRINHO", None),
            ("", None),
        ];
        for (word, expected) in table {
            assert_eq!(nearest(word, states), expected, "{word}");
        }
    }

    #[test]
    fn a_suggestion_lists_what_is_known_when_nothing_is_near() {
        assert_eq!(suggest("xyz", ["reminder", "reply"]), "known here: reminder, reply");
        assert_eq!(suggest("remindr", ["reminder", "reply"]), "did you mean `reminder`?");
        assert_eq!(suggest("x", []), "none is declared");
    }

    #[test]
    fn a_finding_reads_as_one_line() {
        let finding = Finding::error("N1", "vendas.yaml", 7, "unknown state `NOVOS`", "did you mean `NOVO`?");
        assert_eq!(finding.to_string(), "vendas.yaml:7: error N1: unknown state `NOVOS` (did you mean `NOVO`?)");
    }
}
