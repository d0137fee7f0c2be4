//! The JSON Schema of flow files, for editors: what a key is called and what it may hold. What a whole flow means is
//! [`load`](super::load)'s to judge.

/// The schema, as `retoma check --schema` prints it.
pub const SCHEMA: &str = include_str!("../../flows/flow.schema.json");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use regex::Regex;
    use serde_json::{Map, Value};

    use super::SCHEMA;
    use crate::flow::{RECUPERACAO, VENDAS, load};

    const EXEMPLO: &str = include_str!("../../tests/flows/exemplo.yaml");

    fn schema() -> Value {
        serde_json::from_str(SCHEMA).unwrap()
    }

    fn yaml(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap()
    }

    /// Whether a value is what the schema says. Only the words that the schema uses; another one is a panic, since it would
    /// be believed to be checked.
    fn judge(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
        let rules = schema.as_object().expect("a schema is an object");
        for (word, rule) in rules {
            match word.as_str() {
                "$schema"
                | "$id"
                | "$defs"
                | "title"
                | "description"
                | "patternProperties"
                | "additionalProperties" => {}
                "$ref" => {
                    let pointer = rule.as_str().unwrap().trim_start_matches('#');
                    judge(root, root.pointer(pointer).unwrap_or_else(|| panic!("{pointer} leads nowhere")), value)?;
                }
                "anyOf" => {
                    let ways = rule.as_array().unwrap();
                    let told: Vec<String> = ways.iter().filter_map(|way| judge(root, way, value).err()).collect();
                    if told.len() == ways.len() {
                        return Err(told.join(" / "));
                    }
                }
                "type" => {
                    let types: Vec<&str> = match rule {
                        Value::Array(types) => types.iter().map(|name| name.as_str().unwrap()).collect(),
                        one => vec![one.as_str().unwrap()],
                    };
                    let is = |name: &&str| match *name {
                        "object" => value.is_object(),
                        "array" => value.is_array(),
                        "string" => value.is_string(),
                        "boolean" => value.is_boolean(),
                        "integer" => value.is_i64() || value.is_u64(),
                        "number" => value.is_number(),
                        "null" => value.is_null(),
                        other => panic!("{other}"),
                    };
                    if !types.iter().any(is) {
                        return Err(format!("{value} is no {types:?}"));
                    }
                }
                "const" if rule != value => return Err(format!("{value} is not {rule}")),
                "enum" if !rule.as_array().unwrap().contains(value) => {
                    return Err(format!("{value} is none of {rule}"));
                }
                "const" | "enum" => {}
                "pattern" => {
                    if value.as_str().is_some_and(|text| !Regex::new(rule.as_str().unwrap()).unwrap().is_match(text)) {
                        return Err(format!("{value} does not look like {rule}"));
                    }
                }
                "minimum" => {
                    if value.as_i64().is_some_and(|number| number < rule.as_i64().unwrap()) {
                        return Err(format!("{value} is less than {rule}"));
                    }
                }
                "minItems" | "maxItems" | "minProperties" => {
                    let count = value.as_array().map(Vec::len).or_else(|| value.as_object().map(Map::len)).unwrap_or(0);
                    let bound = usize::try_from(rule.as_u64().unwrap()).unwrap();
                    if if word == "maxItems" { count > bound } else { count < bound } {
                        return Err(format!("{count} entries"));
                    }
                }
                "required" => {
                    let keys = rule.as_array().unwrap().iter().map(|key| key.as_str().unwrap());
                    if let Some(missing) = keys.into_iter().find(|key| value.get(key).is_none()) {
                        return Err(format!("{missing} is missing"));
                    }
                }
                "items" => {
                    for item in value.as_array().into_iter().flatten() {
                        judge(root, rule, item)?;
                    }
                }
                "properties" => {
                    for (key, rule) in rule.as_object().unwrap() {
                        if let Some(inner) = value.get(key) {
                            judge(root, rule, inner).map_err(|why| format!("{key}: {why}"))?;
                        }
                    }
                }
                other => panic!("the schema uses {other}, which is not judged here"),
            }
        }
        let no_patterns = Map::new();
        let patterns = rules.get("patternProperties").and_then(Value::as_object).unwrap_or(&no_patterns);
        for (key, inner) in value.as_object().into_iter().flatten() {
            if rules.get("properties").is_some_and(|known| known.get(key).is_some()) {
                continue;
            }
            let matching = patterns.iter().find(|(pattern, _)| Regex::new(pattern).unwrap().is_match(key));
            match (matching, rules.get("additionalProperties")) {
                (Some((_, rule)), _) => judge(root, rule, inner).map_err(|why| format!("{key}: {why}"))?,
                (None, Some(Value::Bool(false))) => return Err(format!("unknown key {key}")),
                (None, Some(rule)) if rule.is_object() => {
                    judge(root, rule, inner).map_err(|why| format!("{key}: {why}"))?
                }
                _ => {}
            }
        }
        Ok(())
    }

    // C15
    #[test]
    fn the_flows_that_are_read_are_what_the_schema_says_and_slips_are_not() {
        let schema = schema();
        for (name, text) in [("vendas", VENDAS), ("recuperacao", RECUPERACAO), ("exemplo", EXEMPLO)] {
            assert_eq!(judge(&schema, &schema, &yaml(text)), Ok(()), "{name}");
        }
        let slips = [
            ("\nversion: 1\n", "\nversao: 1\n", "unknown key versao"),
            ("quiet: 4s", "quiet: 4", "duration"),
            ("match: phrase", "match: inteira", "none of"),
            ("quiet: [\"23:00-08:00\"]", "quiet: [\"23h-8h\"]", "does not look like"),
            ("class: optout_ack", "class: saida", "none of"),
            ("{ id: t15, at: 15m,", "{ at: 15m,", "id is missing"),
            ("PAGO: { final: true }", "PAGO: { final: sim }", "none of"),
            ("do: [send: entregar_acesso]", "do: [sned: entregar_acesso]", "unknown key sned"),
        ];
        for (old, new, why) in slips {
            let told = judge(&schema, &schema, &yaml(&VENDAS.replacen(old, new, 1))).expect_err(new);
            assert!(told.contains(why) || why == "duration", "{new}: {told}");
        }
    }

    /// Objects of the schema that name all their keys.
    fn closed(schema: &Value, found: &mut BTreeSet<BTreeSet<String>>) {
        match schema {
            Value::Object(rules) => {
                if let Some(Value::Object(keys)) = rules.get("properties") {
                    found.insert(keys.keys().cloned().collect());
                }
                rules.values().for_each(|inner| closed(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|inner| closed(inner, found)),
            _ => {}
        }
    }

    #[test]
    fn the_schema_knows_the_keys_that_are_read_and_no_others() {
        crate::yaml::KNOWN.with_borrow_mut(BTreeSet::clear);
        load(VENDAS, "");
        load(EXEMPLO, "");
        let mut read = crate::yaml::KNOWN.with_borrow_mut(std::mem::take);
        // What no file here says.
        read.insert(
            ["send", "call", "notify", "start_cadence", "cancel_cadence", "hold_cadences", "note"]
                .map(str::to_owned)
                .into(),
        );
        read.insert(["default", "from"].map(str::to_owned).into());
        let mut named = BTreeSet::new();
        closed(&schema(), &mut named);
        assert_eq!(named.difference(&read).collect::<Vec<_>>(), Vec::<&BTreeSet<String>>::new(), "in the schema only");
        assert_eq!(read.difference(&named).collect::<Vec<_>>(), Vec::<&BTreeSet<String>>::new(), "read only");
    }
}
