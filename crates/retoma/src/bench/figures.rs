//! From what was measured to what is said: medians, the JSON of INTERFACE.md, a table for people.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

/// One round against one server.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Events acknowledged (intake) or delivered (pipeline) per second.
    pub(super) per_s: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) cpu_us_per_event: f64,
    pub(super) rss_mb: f64,
    /// Acknowledged and not to be found.
    pub(super) lost: u64,
    /// Copies beyond the first.
    pub(super) doubled: u64,
    /// Requests that were not acknowledged.
    pub(super) refused: u64,
}

/// The rounds against one kind of server.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds(pub(super) Vec<Round>);

impl Rounds {
    /// The round whose rate is the median; of an even number, the slower of the two in the middle.
    pub(super) fn median(&self) -> Round {
        let mut rounds = self.0.clone();
        rounds.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
        let middle = rounds.len().saturating_sub(1) / 2;
        rounds.into_iter().nth(middle).unwrap_or_default()
    }

    fn sum(&self, of: fn(&Round) -> u64) -> u64 {
        self.0.iter().map(of).sum()
    }

    fn most_memory(&self) -> f64 {
        self.0.iter().map(|round| round.rss_mb).fold(0.0, f64::max)
    }
}

/// What was run.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) bench: &'static str,
    pub(super) seconds: u64,
    pub(super) connections: usize,
    pub(super) preloaded: u64,
    pub(super) payload_bytes: usize,
    pub(super) sync_time: Duration,
    pub(super) in_memory: bool,
}

/// Everything a run found out.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) setting: Setting,
    pub(super) real: Rounds,
    pub(super) null: Rounds,
    pub(super) bare_per_s: f64,
    /// The longest that a server took until it served, where that is asked for.
    pub(super) start: Option<Duration>,
}

/// INTERFACE.md, "Machine-readable results".
#[derive(Serialize)]
struct Told {
    bench: &'static str,
    store: &'static str,
    sync: &'static str,
    seconds: u64,
    connections: usize,
    preloaded: u64,
    per_s: f64,
    null_per_s: f64,
    bare_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us_per_event: f64,
    lost: u64,
    doubled: u64,
    rss_mb: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_s: Option<f64>,
}

fn rounded(number: f64, digits: i32) -> f64 {
    let by = 10_f64.powi(digits);
    (number * by).round() / by
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

impl Figures {
    /// Whether every acknowledged event was found, once, in every round.
    pub(super) fn are_clean(&self) -> bool {
        [&self.real, &self.null].iter().all(|rounds| rounds.sum(|round| round.lost + round.doubled) == 0)
    }

    /// One JSON object, on one line.
    pub(super) fn json(&self) -> serde_json::Result<String> {
        let real = self.real.median();
        serde_json::to_string(&Told {
            bench: self.setting.bench,
            store: "sqlite",
            // Read back by the store at its opening, which fails on anything else.
            sync: "FULL",
            seconds: self.setting.seconds,
            connections: self.setting.connections,
            preloaded: self.setting.preloaded,
            per_s: rounded(real.per_s, 1),
            null_per_s: rounded(self.null.median().per_s, 1),
            bare_per_s: rounded(self.bare_per_s, 1),
            p50_ms: rounded(ms(real.p50), 2),
            p99_ms: rounded(ms(real.p99), 2),
            cpu_us_per_event: rounded(real.cpu_us_per_event, 1),
            lost: self.real.sum(|round| round.lost),
            doubled: self.real.sum(|round| round.doubled),
            rss_mb: rounded(self.real.most_memory(), 1),
            start_s: self.start.map(|start| rounded(start.as_secs_f64(), 2)),
        })
    }

    /// What people are told of armed messages.
    fn lateness(&self) -> String {
        let real = self.real.median();
        format!(
            "timers: served after {:.2} s; {:.0} messages per second left; late by {:.0} ms (half of them less), {:.0} ms \
             (99 of 100 less)\nRSS {:.1} MB, lost {}, doubled {}\n",
            self.start.unwrap_or_default().as_secs_f64(),
            real.per_s,
            ms(real.p50),
            ms(real.p99),
            self.real.most_memory(),
            self.real.sum(|round| round.lost),
            self.real.sum(|round| round.doubled),
        )
    }

    /// A table for people.
    pub(super) fn table(&self) -> String {
        let Setting { bench, seconds, connections, preloaded, payload_bytes, sync_time, in_memory } = &self.setting;
        let mut out = String::new();
        let disk = if *in_memory {
            "IN MEMORY: a synced commit costs nothing here".to_owned()
        } else {
            format!("one synced write {:.2} ms", ms(*sync_time))
        };
        if *bench == "timers" {
            return self.lateness();
        }
        let repeats = if matches!(*bench, "intake" | "gate") { ", 5 % exact repetitions" } else { "" };
        let what = if *bench == "gate" { "keys" } else { "events" };
        let rounds = self.real.0.len();
        let _ = writeln!(out, "{bench}: sqlite, WAL, synchronous=FULL, {disk}");
        let _ = writeln!(
            out,
            "{connections} connections, bodies of {payload_bytes} bytes{repeats}, {preloaded} {what} stored before, \
             median of {rounds} x {seconds} s\n"
        );
        let _ = writeln!(
            out,
            "{:<8} {:>10} {:>9} {:>9} {:>14} {:>8} {:>6} {:>8} {:>8}",
            "", "per second", "p50 ms", "p99 ms", "CPU us / event", "RSS MB", "lost", "doubled", "refused"
        );
        for (name, rounds) in [("retoma", &self.real), ("null", &self.null)] {
            let median = rounds.median();
            let _ = writeln!(
                out,
                "{name:<8} {:>10.0} {:>9.1} {:>9.1} {:>14.1} {:>8.1} {:>6} {:>8} {:>8}",
                median.per_s,
                ms(median.p50),
                ms(median.p99),
                median.cpu_us_per_event,
                rounds.most_memory(),
                rounds.sum(|round| round.lost),
                rounds.sum(|round| round.doubled),
                rounds.sum(|round| round.refused),
            );
        }
        let _ =
            writeln!(out, "{:<8} {:>10.0}   the database alone, 256 at a time, one caller\n", "bare", self.bare_per_s);
        let null = self.null.median().per_s;
        if null > 0.0 {
            let _ = writeln!(out, "retoma / null: {:.2}", self.real.median().per_s / null);
        }
        out
    }
}

/// The value below or at which so many percent of the sorted values lie.
pub(super) fn percentile(sorted_us: &[u32], percent: usize) -> Duration {
    let rank = (sorted_us.len() * percent).div_ceil(100).max(1);
    let found = sorted_us.get(rank - 1).copied().unwrap_or(0);
    Duration::from_micros(found.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_name_a_value_that_was_measured() {
        let values: Vec<u32> = (1..=200).collect();
        let cases = [(50, 100), (99, 198), (100, 200), (0, 1)];
        for (percent, expected) in cases {
            assert_eq!(percentile(&values, percent), Duration::from_micros(expected), "{percent}");
        }
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }

    fn figures(rates: &[f64]) -> Figures {
        let round = |per_s: &f64| Round { per_s: *per_s, rss_mb: *per_s / 100.0, ..Round::default() };
        let setting = Setting {
            bench: "intake",
            seconds: 10,
            connections: 256,
            preloaded: 1000,
            payload_bytes: 2000,
            sync_time: Duration::from_micros(200),
            in_memory: false,
        };
        let real = Rounds(rates.iter().map(round).collect());
        Figures {
            setting,
            real,
            null: Rounds(vec![Round { per_s: 20_000.0, ..Round::default() }]),
            bare_per_s: 1.0,
            start: None,
        }
    }

    #[test]
    fn the_median_round_speaks_but_memory_is_the_most_of_all() {
        let figures = figures(&[9000.0, 14_000.0, 10_000.0]);
        let told: serde_json::Value = serde_json::from_str(&figures.json().unwrap()).unwrap();
        assert_eq!(told["per_s"], 10_000.0);
        assert_eq!(told["rss_mb"], 140.0);
        assert!(figures.table().contains("retoma / null: 0.50"), "{}", figures.table());
    }

    #[test]
    fn one_lost_event_in_any_round_is_told() {
        let mut figures = figures(&[1.0, 2.0, 3.0]);
        assert!(figures.are_clean());
        figures.real.0[2].lost = 1;
        assert!(!figures.are_clean());
        assert!(figures.json().unwrap().contains("\"lost\":1"));
    }
}
