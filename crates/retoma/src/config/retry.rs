//! `[retry]`: how often and when a message is tried again (E2), and how long an unknown outcome is looked into (E4).

use std::time::Duration;

use retoma_core::finding::Level;
use retoma_core::retry::RetryPolicy;

use super::document::Section;
use super::values;

/// What becomes of messages that did not surely leave.
pub(super) struct Retry {
    /// Tries of what surely did not leave.
    pub(super) recovery: RetryPolicy,
    /// Time for evidence of what may have left.
    pub(super) reconcile_for: Duration,
}

/// An echo or a status webhook comes within seconds, if it comes at all; ten minutes cover a provider's bad spell.
const RECONCILE_FOR: Duration = Duration::from_secs(600);

/// Reads `[retry]`; what is not written keeps the preset's value.
pub(super) fn read(root: &Section<'_>) -> Option<Retry> {
    let (mut policy, mut reconcile_for) = (RetryPolicy::recovery(), RECONCILE_FOR);
    let Some(retry) = root.section("retry") else { return Some(Retry { recovery: policy, reconcile_for }) };
    for later in ["webhook", "processing"] {
        retry.not_available(Level::Warning, later, "only [retry.recovery] has an effect yet");
    }
    let written = retry.value("reconcile_for");
    if let Some(wish) =
        written.and_then(|value| value.parse("bad_duration", "reconcile_for = \"10m\"", values::duration))
    {
        reconcile_for = wish;
    }
    if let Some(section) = retry.section("recovery") {
        let duration =
            |key, example| section.value(key).and_then(|value| value.parse("bad_duration", example, values::duration));
        if let Some(base) = duration("base", "base = \"60s\"") {
            policy.base = base;
        }
        if let Some(cap) = duration("cap", "cap = \"1h\"") {
            policy.cap = cap;
        }
        if let Some(value) = section.value("factor") {
            policy.factor = within(&value, 1.0, 10.0)?;
        }
        if let Some(value) = section.value("jitter") {
            policy.jitter = within(&value, 0.0, 1.0)?;
        }
        if let Some(attempts) = section.value("attempts") {
            policy.attempts = attempts.count(1)?;
        }
        if policy.base.is_zero() || policy.cap < policy.base {
            section.error(
                "bad_value",
                format!("{}: base must be more than nothing and at most cap", section.name),
                "base = \"60s\"  cap = \"1h\"",
            );
        }
        section.finish();
    }
    retry.finish();
    Some(Retry { recovery: policy, reconcile_for })
}

fn within(value: &super::document::Value<'_>, least: f64, most: f64) -> Option<f64> {
    let number = value.number()?;
    if (least..=most).contains(&number) {
        return Some(number);
    }
    value.error("bad_value", format!("{} must be between {least} and {most}", value.name), "choose another number");
    None
}
