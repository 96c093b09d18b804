//! Any schema and any value to the target `schema`, and to another validator.
#![cfg_attr(fuzzing, no_main)]

use mcp_runtime::fuzzing;

mcp_fuzz::target!(|data| {
    fuzzing::run("schema", data);
    let Some((schema, value, is_valid)) = fuzzing::validated(data) else { return };
    let Ok(other) = jsonschema::draft202012::new(&schema) else { return };
    assert_eq!(other.is_valid(&value), is_valid, "{value} against {schema}");
});
