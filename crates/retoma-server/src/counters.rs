//! What the doors did since the process started: in memory, shown by `/v1/stats`, `/status.json` and `/metrics`. Labels are
//! source names of the configuration and code words; never a phone, a text or a key.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// Counts by source and word.
#[derive(Debug, Default)]
pub struct Counters {
    counts: Mutex<BTreeMap<(String, &'static str), u64>>,
}

impl Counters {
    /// Counts one.
    pub fn add(&self, source: &str, word: &'static str) {
        let mut counts = self.counts.lock().expect("no code panics while it counts");
        // The lookup by owned key allocates; a source's words are few, so that a scan of its range is as good.
        if let Some(count) = counts.iter_mut().find(|((name, what), _)| *what == word && name == source) {
            *count.1 += 1;
            return;
        }
        counts.insert((source.to_owned(), word), 1);
    }

    /// Everything counted so far.
    pub fn all(&self) -> BTreeMap<(String, &'static str), u64> {
        self.counts.lock().expect("no code panics while it counts").clone()
    }

    /// The sum over all sources of one word.
    pub fn total(&self, word: &str) -> u64 {
        let counts = self.counts.lock().expect("no code panics while it counts");
        counts.iter().filter(|((_, what), _)| *what == word).map(|(_, count)| count).sum()
    }
}
