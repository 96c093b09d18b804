//! Any schema and any value to the target `schema`, and to another validator.
#![cfg_attr(fuzzing, no_main)]

use mcp_runtime::fuzzing;
use mcp_runtime_schema::Validator;
use serde_json::Value;

/// A schema and a value, of the bytes that the target `schema` takes.
fn read(data: &[u8]) -> Option<(Value, Value)> {
    let (schema, value) = fuzzing::halves(data)?;
    Some((serde_json::from_str(schema).ok()?, serde_json::from_str(value).ok()?))
}

mcp_fuzz::target!(|data| {
    fuzzing::run("schema", data);
    let Some((schema, value)) = read(data) else { return };
    let Ok(ours) = Validator::compile(&schema) else { return };
    let Ok(other) = jsonschema::draft202012::new(&schema) else { return };
    assert_eq!(other.is_valid(&value), ours.is_valid(&value), "{value} against {schema}");
});
