//! `[retry.recovery]`: how often and when a message is tried again (E2).

use retoma_core::finding::Level;
use retoma_core::retry::RetryPolicy;

use super::document::Section;
use super::values;

/// The policy of messages.
pub(super) struct Recovery(pub(super) RetryPolicy);

/// Reads `[retry]`; what is not written keeps the preset's value.
pub(super) fn read(root: &Section<'_>) -> Option<Recovery> {
    let mut policy = RetryPolicy::recovery();
    let Some(retry) = root.section("retry") else { return Some(Recovery(policy)) };
    for later in ["webhook", "processing"] {
        retry.not_available(Level::Warning, later, "only [retry.recovery] has an effect yet");
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
    Some(Recovery(policy))
}

fn within(value: &super::document::Value<'_>, least: f64, most: f64) -> Option<f64> {
    let number = value.number()?;
    if (least..=most).contains(&number) {
        return Some(number);
    }
    value.error("bad_value", format!("{} must be between {least} and {most}", value.name), "choose another number");
    None
}
