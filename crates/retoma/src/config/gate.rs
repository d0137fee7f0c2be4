//! `[gate.scopes.NAME]`: how the idempotency gate treats one class of effects. A scope that is not written exists from its
//! first use, with the defaults.

use retoma_server::gate::{GatePolicy, GateScopes, is_scope_name};

use super::document::{Section, Value};
use super::values;

/// Reads `[gate]`.
pub(super) fn read(root: &Section<'_>) -> GateScopes {
    let Some(gate) = root.section("gate") else { return GateScopes::new() };
    let table = gate.section("scopes").map(|section| section.entries()).unwrap_or_default();
    gate.finish();
    table.iter().filter_map(|(name, value)| Some((name.clone(), scope(name, value)?))).collect()
}

fn scope(name: &str, value: &Value<'_>) -> Option<GatePolicy> {
    let section = value.section()?;
    if !is_scope_name(name) {
        value.error(
            "bad_name",
            format!("{name:?} cannot be the name of a scope"),
            "use letters, digits, '.', '-' and '_': the name is part of the address /v1/gate/NAME/claim",
        );
    }
    let mut policy = GatePolicy::default();
    let duration =
        |key, example| section.value(key).and_then(|value| value.parse("bad_duration", example, values::duration));
    if let Some(lease) = duration("lease", "lease = \"2m\"") {
        policy.lease = lease;
        if !(GatePolicy::LEASE_MIN..=GatePolicy::LEASE_MAX).contains(&lease) {
            let written = section.value("lease").expect("just read");
            written.error("bad_value", format!("{} must be from 1s to 24h", written.name), "lease = \"2m\"");
        }
    }
    let short = section.value("allow_short_keep").and_then(|value| value.boolean()) == Some(true);
    if let Some(keep) = duration("keep", "keep = \"30d\"") {
        policy.keep = keep;
        if keep < GatePolicy::KEEP_MIN && !short {
            let written = section.value("keep").expect("just read");
            written.error(
                "short_keep",
                format!(
                    "{}: senders repeat for up to three days; what is forgotten earlier happens twice",
                    written.name
                ),
                "keep = \"3d\" or more; if less is meant, add allow_short_keep = true",
            );
        }
    }
    if let Some(value) = section.value("on_expired_lease") {
        policy.proceed_when_expired = value.word(&[("hold", false), ("proceed", true)]).unwrap_or(false);
    }
    section.finish();
    Some(policy)
}
