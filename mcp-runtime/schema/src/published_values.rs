//! Values that a schema publishes, `default` and `examples`, conform to it: a model repeats what it sees.

use std::fmt;

use serde_json::Value;

use super::{Validator, check::Validation, compile::compile_by_pointer, validate::MAX_STEPS, walk};

/// A published value that does not conform.
#[derive(Debug, PartialEq, Eq)]
pub struct NonconformingValue {
    /// The JSON pointer of its schema.
    pub(super) pointer: String,
    /// `default` or `examples`; empty if the schema itself is not supported.
    pub(super) keyword: &'static str,
    message: String,
}

impl NonconformingValue {
    /// Whether the schema itself is not supported.
    pub fn is_of_schema(&self) -> bool {
        self.keyword.is_empty()
    }
}

impl fmt::Display for NonconformingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Makes the published values of a schema conform. A member that is `null` where its schema has no `null` is left out:
/// optional properties of Rust types are published without it, and absence means the same. Returns the schema compiled, unless
/// it cannot be and publishes no values.
///
/// # Errors
/// The first value that does not conform, and why; or why the schema cannot be compiled.
pub fn compile_conforming(root: &mut Value) -> Result<Option<Validator>, NonconformingValue> {
    let (compiled, errors) = compile_with_errors(root);
    errors.into_iter().next().map_or(Ok(compiled), Err)
}

/// As [`compile_conforming`], with the errors of all values, one for each keyword.
pub(super) fn compile_with_errors(root: &mut Value) -> (Option<Validator>, Vec<NonconformingValue>) {
    let (mut pointers, mut errors) = (Vec::new(), Vec::new());
    list_pointers(root, String::new(), &mut pointers);
    let compiled = match compile_by_pointer(root) {
        Ok(compiled) => compiled,
        Err(_) if pointers.is_empty() => return (None, errors),
        Err(error) => {
            let (pointer, message) = (error.pointer.clone(), error.to_string());
            return (None, vec![NonconformingValue { pointer, keyword: "", message }]);
        }
    };
    let mut has_changed = false;
    // of all values: others may have written them
    let mut steps_left = MAX_STEPS;
    let mut errors_of = |pointer: &str, value: &Value| {
        let id = compiled.ids.get(pointer)?;
        let mut validation = Validation::new(&compiled.nodes, false);
        validation.steps_left = steps_left;
        let (errors, left) = validation.errors_and_steps(*id, value);
        steps_left = left;
        errors.into_iter().next().map(|error| error.to_string())
    };
    for pointer in pointers {
        for keyword in ["default", "examples"] {
            let Some(published) = root.pointer_mut(&pointer).and_then(|schema| schema.get_mut(keyword))
            else {
                continue;
            };
            let values = match published {
                Value::Array(list) if keyword == "examples" => list.as_mut_slice(),
                one => std::slice::from_mut(one),
            };
            for value in values {
                if errors_of(&pointer, value).is_none() {
                    continue;
                }
                let mut without_nulls = value.clone();
                drop_null_members(&mut without_nulls);
                if let Some(error) = errors_of(&pointer, &without_nulls) {
                    let what = keyword.trim_end_matches('s');
                    let message = format!(
                        "the {what} at `#{pointer}` does not conform to its schema: {error}\nchange the {what}, or the schema"
                    );
                    errors.push(NonconformingValue { pointer: pointer.clone(), keyword, message });
                    break;
                }
                *value = without_nulls;
                has_changed = true;
            }
        }
    }
    if !errors.is_empty() {
        return (None, errors);
    }
    // defaults are compiled as well
    let compiled = match has_changed {
        true => Validator::compile_generated(root).ok(),
        false => Some(Validator::of(compiled.nodes)),
    };
    (compiled, errors)
}

/// The JSON pointers of the subschemas that publish values.
fn list_pointers(schema: &Value, pointer: String, found: &mut Vec<String>) {
    let Some(map) = schema.as_object() else { return };
    walk::subschemas(map, |step, child| list_pointers(child, format!("{pointer}{step}"), found));
    if map.contains_key("default") || map.contains_key("examples") {
        found.push(pointer);
    }
}

fn drop_null_members(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_null_members),
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_null_members);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_that_the_schema_does_not_have_are_left_out() {
        let mut schema = json!({
            "properties": {
                "a": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}, "kept": {"type": ["string", "null"]}, "in": {"$ref": "#/$defs/B"}},
                    "default": {"text": null, "kept": "x", "in": {"n": null}},
                    "examples": [{"text": "x"}, {"text": null}]
                },
                "b": {"type": "object", "properties": {"n": {"type": ["string", "null"]}}, "default": {"n": null}}
            },
            "$defs": {"B": {"properties": {"n": {"type": "integer"}}, "default": {"n": null}}}
        });
        assert_eq!(compile_conforming(&mut schema).map(drop), Ok(()));
        assert_eq!(schema["properties"]["a"]["default"], json!({"kept": "x", "in": {}}));
        assert_eq!(schema["properties"]["a"]["examples"], json!([{"text": "x"}, {}]));
        assert_eq!(schema["properties"]["b"]["default"], json!({"n": null}));
        assert_eq!(schema["$defs"]["B"]["default"], json!({}));
    }

    #[test]
    fn a_value_that_cannot_conform_is_an_error_with_its_place() {
        for (schema, place) in [
            (json!({"type": "integer", "default": "x"}), "the default at `#`"),
            (json!({"items": {"minimum": 1, "examples": [1, 0]}}), "the example at `#/items`"),
            (
                json!({"properties": {"a/b": {"type": "string", "default": null}}}),
                "the default at `#/properties/a~1b`",
            ),
        ] {
            let error = compile_conforming(&mut schema.clone()).expect_err("an error").to_string();
            assert!(error.starts_with(place), "{error}");
        }
    }
}
