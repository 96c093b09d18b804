//! Durations as people write them, `5s` or `1h 30m`, instead of the object that serde has for them.

use serde_json::{Map, Value, json};

use crate::core::arguments::{DURATION_PATTERN, Problem, duration_text, read_duration};

/// Whether the values of a schema are durations, or absent.
pub(super) fn are_durations(schema: &Value) -> bool {
    is_duration(schema) || without_null(schema).get("pattern").is_some_and(|text| text == DURATION_PATTERN)
}

/// Whether a schema is that of a `Duration` in the form of serde, which may be absent.
pub(super) fn is_duration(schema: &Value) -> bool {
    let schema = without_null(schema);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return false };
    properties.len() == 2 && properties.contains_key("secs") && properties.contains_key("nanos")
}

/// The one alternative beside `null`.
pub(super) fn without_null(schema: &Value) -> &Value {
    let Some([one, other]) = schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) else {
        return schema;
    };
    let is_null = |schema: &Value| schema.get("type").is_some_and(|name| name == "null");
    match (is_null(one), is_null(other)) {
        (true, false) => other,
        (false, true) => one,
        _ => schema,
    }
}

/// Converts durations in a value; returns what is wrong with each that is not one.
pub(super) fn read_durations(schema: &Value, value: &mut Value, path: &str) -> Vec<Problem> {
    if is_duration(schema) {
        let text = match &*value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Vec::new(),
        };
        let parsed = read_duration(&text);
        *value = to_object(parsed.as_ref().copied().unwrap_or_default());
        return parsed.err().map(|message| Problem::from(message).at(path)).into_iter().collect();
    }
    let schema = without_null(schema);
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let others = schema.get("additionalProperties");
            let mut wrong = Vec::new();
            for (name, member) in members {
                let dot = if path.is_empty() { "" } else { "." };
                if let Some(schema) = properties.and_then(|properties| properties.get(name)).or(others) {
                    wrong.extend(read_durations(schema, member, &format!("{path}{dot}{name}")));
                }
            }
            wrong
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return Vec::new() };
            let items = items.iter_mut().enumerate();
            items
                .flat_map(|(index, item)| read_durations(schema, item, &format!("{path}[{index}]")))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn to_object(duration: std::time::Duration) -> Value {
    json!({ "secs": duration.as_secs(), "nanos": duration.subsec_nanos() })
}

/// A duration in the form of serde, as people write it.
fn from_object(value: &Value) -> Option<Value> {
    let nanos = value.get("nanos")?.as_u64().and_then(|nanos| u32::try_from(nanos).ok())?;
    let duration = std::time::Duration::new(value.get("secs")?.as_u64()?, nanos);
    Some(duration_text(duration).into())
}

/// Writes durations in a value as people do.
pub(super) fn show_durations(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let is_one = members.len() == 2;
            members.values_mut().for_each(show_durations);
            if let Some(text) = from_object(value).filter(|_| is_one) {
                *value = text;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(show_durations),
        _ => {}
    }
}

/// The schema as people who set the values see it: durations are text.
pub(super) fn show_schema(schema: &mut Value) {
    if is_duration(schema) {
        let mut text = Map::new();
        text.insert("type".to_owned(), "string".into());
        for key in ["title", "description", "default", "examples", "writeOnly", "x-flag", "x-env"] {
            if let Some(value) = schema.get(key) {
                let mut value = value.clone();
                show_durations(&mut value);
                text.insert(key.to_owned(), value);
            }
        }
        text.entry("examples").or_insert_with(|| json!(["5s"]));
        *schema = Value::Object(text);
        return;
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(show_schema),
        Value::Array(items) => items.iter_mut().for_each(show_schema),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::schema::generator;

    #[test]
    fn durations_are_read_and_written_as_people_write_them_wherever_they_are() {
        let mut generator = generator();
        let durations = generator.subschema_for::<Vec<Option<Duration>>>().to_value();
        let mut value = json!(["5s", "1h 30m", "250ms"]);
        assert!(read_durations(&durations, &mut value, "waits").is_empty());
        assert_eq!(value[1], json!({ "secs": 5400, "nanos": 0 }));
        show_durations(&mut value);
        assert_eq!(value, json!(["5s", "1h 30m", "250ms"]));
        // a number has no unit
        for (wrong, quoted) in [(json!(["5s", 30]), "\"30\""), (json!(["5s", "soon"]), "\"soon\"")] {
            let found = read_durations(&durations, &mut wrong.clone(), "waits");
            let [problem] = &found[..] else { panic!("{found:?}") };
            assert!(problem.to_string().starts_with(&format!("waits[1]: {quoted}")), "{problem}");
        }
    }
}
