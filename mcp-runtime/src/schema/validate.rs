//! A compiled schema, and the one entry point for validating values and texts.
//!
//! `dispatch` keeps one for the arguments and one for the results of every tool that needs it.

use serde_json::Value;

use super::check::Run;
use super::node::Node;
use super::violation::{Path, Violation};
use super::{compile, stream};

pub(crate) use super::compile::UnsupportedKeyword;

/// A schema that was compiled once and is applied to many values.
#[derive(Debug)]
pub(crate) struct Validator {
    nodes: Vec<Node>,
    /// Whether every keyword can be checked while a text is read.
    streams: bool,
    null_is_absent: bool,
}

impl Validator {
    /// Compiles a root schema.
    ///
    /// # Errors
    /// If the schema has a keyword that would not be enforced, or one whose value is malformed.
    pub(crate) fn compile(root: &Value) -> Result<Self, UnsupportedKeyword> {
        let nodes = compile::compile(root)?;
        let streams = stream::can_stream(&nodes);
        Ok(Self { nodes, streams, null_is_absent: false })
    }

    /// Takes `null` in a property that is not required for absence, as arguments do.
    pub(crate) fn null_is_absent(mut self) -> Self {
        self.null_is_absent = true;
        self
    }

    /// Every violation of the schema, up to a hundred; none if the value conforms.
    ///
    /// Unknown names near to known ones are reported too, but only beside another violation.
    pub(crate) fn validate(&self, value: &Value) -> Vec<Violation> {
        // Most values conform, and finding that out is cheaper than reporting.
        let mut run = Run::new(&self.nodes, self.null_is_absent);
        if run.conforms(value) {
            return Vec::new();
        }
        run.report(value)
    }

    /// Validates JSON text, without building a value where the schema allows.
    ///
    /// # Errors
    /// Every violation, as [`validate`](Self::validate) reports them.
    pub(crate) fn validate_str(&self, json: &str) -> Result<(), Vec<Violation>> {
        if self.streams && stream::conforms(&self.nodes, json, self.null_is_absent) {
            return Ok(());
        }
        let value: Value = serde_json::from_str(json).map_err(|error| {
            let message = format!("is not readable JSON: {error}");
            vec![Violation::new(&Path::Root, "JSON".to_owned(), "other text".to_owned(), message)]
        })?;
        let violations = self.validate(&value);
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(schema: &Value, value: &Value) -> Vec<String> {
        let validator = Validator::compile(schema).unwrap_or_else(|error| panic!("{error}"));
        let by_value: Vec<String> = validator.validate(value).iter().map(ToString::to_string).collect();
        let by_text = validator.validate_str(&value.to_string()).err().unwrap_or_default();
        assert_eq!(by_value, by_text.iter().map(ToString::to_string).collect::<Vec<_>>());
        by_value
    }

    #[test]
    fn t15_every_violation_is_reported_by_path() {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
                "tone": {"type": "string", "enum": ["formal", "casual"]},
                "items": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"price": {"type": "number", "exclusiveMinimum": 0}},
                    "required": ["price"]
                }}
            },
            "required": ["query"],
            "additionalProperties": false
        });
        let value = json!({
            "querry": "x", "limit": 500, "tone": "fromal", "items": [{"price": 1}, {}, {"price": "9"}]
        });
        assert_eq!(
            said(&schema, &value),
            [
                "items[1].price: is missing (a number)",
                "items[2].price: \"9\" is not a number",
                "limit: 500 is greater than the maximum of 100",
                "query: is missing (a string)",
                "tone: \"fromal\" is not one of \"formal\", \"casual\"; did you mean \"formal\"?",
                "unknown argument `querry`; did you mean `query`?",
            ]
        );
    }

    #[test]
    fn t15_near_names_are_named_even_where_unknown_ones_are_ignored() {
        let schema = json!({
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["query"]
        });
        assert_eq!(
            said(&schema, &json!({"querry": "x", "limt": 3, "colour": 1})),
            [
                "query: is missing (a string)",
                "unknown argument `limt`; did you mean `limit`?",
                "unknown argument `querry`; did you mean `query`?",
            ]
        );
        assert!(said(&schema, &json!({"query": "x", "limt": 3})).is_empty());
    }

    #[test]
    fn t12_bounds_of_every_kind_are_enforced_and_explained() {
        let cases = [
            (json!({"minimum": 1}), json!(0), "0 is less than the minimum of 1"),
            (json!({"exclusiveMaximum": 1.5}), json!(1.5), "1.5 is not less than 1.5"),
            (json!({"exclusiveMinimum": 0}), json!(0), "0 is not greater than 0"),
            (json!({"multipleOf": 5}), json!(12), "12 is not a multiple of 5"),
            (json!({"minLength": 3}), json!("é"), "\"é\" has 1 character, fewer than the minimum of 3"),
            (json!({"maxLength": 1}), json!("ab"), "\"ab\" has 2 characters, more than the maximum of 1"),
            (json!({"pattern": "^[a-z]+$"}), json!("A"), "\"A\" does not match the pattern `^[a-z]+$`"),
            (json!({"minItems": 1}), json!([]), "has 0 items, fewer than the minimum of 1"),
            (json!({"maxItems": 1}), json!([1, 2]), "has 2 items, more than the maximum of 1"),
            (json!({"uniqueItems": true}), json!([1, 2, 1.0]), "items 0 and 2 are equal"),
            (json!({"const": "a"}), json!("b"), "\"b\" is not \"a\""),
            (json!({"type": ["integer", "null"]}), json!("b"), "\"b\" is not an integer or null"),
            (json!({"minProperties": 1}), json!({}), "has 0 properties, fewer than the minimum of 1"),
            (
                json!({"contains": {"const": 1}}),
                json!([2]),
                "has 0 items that are 1, fewer than the minimum of 1",
            ),
            (json!({"not": {"const": 0}}), json!(0), "0 is not allowed"),
            (json!(false), json!(1), "1 is not allowed"),
        ];
        for (schema, value, expected) in cases {
            assert_eq!(said(&schema, &value), [expected]);
        }
    }

    #[test]
    fn t13_tagged_variants_are_explained_by_their_tag() {
        let schema = json!({"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
            {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}
        ]});
        assert_eq!(said(&schema, &json!({"kind": "square", "side": "2"})), ["side: \"2\" is not a number"]);
        assert_eq!(
            said(&schema, &json!({"kind": "squre"})),
            ["kind: \"squre\" is not one of \"circle\", \"square\"; did you mean \"square\"?"]
        );
        assert_eq!(said(&schema, &json!({"r": 2})), ["kind: is missing (one of \"circle\", \"square\")"]);
        assert_eq!(said(&schema, &json!(3)), ["3 is not an object"]);
        let external = json!({"oneOf": [
            {"type": "string", "enum": ["none", "all"]},
            {"type": "object", "properties": {"first": {"type": "integer"}}, "required": ["first"], "additionalProperties": false}
        ]});
        assert_eq!(said(&external, &json!({"first": "x"})), ["first: \"x\" is not an integer"]);
        assert_eq!(
            said(&external, &json!("al")),
            ["\"al\" is not one of \"none\", \"all\"; did you mean \"all\"?"]
        );
        assert_eq!(
            said(&external, &json!(3)),
            ["3 fits none of: one of \"none\", \"all\"; an object with `first`"]
        );
    }

    #[test]
    fn t10_null_can_count_as_absence() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["b"]
        });
        let compile = || Validator::compile(&schema).unwrap_or_else(|error| panic!("{error}"));
        let value = json!({"a": null, "b": 1});
        assert_eq!(compile().validate(&value).len(), 1);
        assert!(compile().null_is_absent().validate(&value).is_empty());
        assert_eq!(compile().null_is_absent().validate_str(&value.to_string()), Ok(()));
        let null = json!({"b": null});
        assert_eq!(compile().null_is_absent().validate(&null).len(), 1);
        assert!(compile().null_is_absent().validate_str(&null.to_string()).is_err());
    }

    #[test]
    fn unenforceable_schemas_are_refused_by_keyword_and_place() {
        let refused = |schema: &Value| match Validator::compile(schema) {
            Ok(_) => panic!("{schema} compiled"),
            Err(error) => (error.keyword.clone(), error.pointer.clone(), error.to_string()),
        };
        let (keyword, pointer, message) = refused(&json!({"properties": {"a": {"minLenght": 3}}}));
        assert_eq!((keyword.as_str(), pointer.as_str()), ("minLenght", "/properties/a"));
        assert_eq!(
            message,
            "`minLenght` at `#/properties/a` cannot be enforced: it is no keyword that this crate knows"
        );
        for (schema, keyword) in [
            (json!({"$dynamicRef": "#x"}), "$dynamicRef"),
            (json!({"items": {"unevaluatedItems": false}}), "unevaluatedItems"),
            (json!({"pattern": "(?=a)"}), "pattern"),
            (json!({"$ref": "#/$defs/none"}), "$ref"),
            (json!({"$ref": "https://example.com/s.json"}), "$ref"),
            (json!({"$ref": "#"}), "$ref"),
            (json!({"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"allOf": [{"$ref": "#"}]}}}), "$ref"),
            (json!({"minimum": "1"}), "minimum"),
            (json!({"type": "int"}), "type"),
            (json!({"items": [true]}), ""),
        ] {
            assert_eq!(refused(&schema).0, keyword);
        }
        let annotated =
            json!({"x-mcp-header": "A", "format": "uuid", "deprecated": true, "$comment": "", "title": ""});
        assert!(Validator::compile(&annotated).is_ok());
    }

    #[test]
    fn depth_and_repetition_cost_no_stack_and_no_time() {
        let schema = json!({
            "anyOf": [
                {"type": "object", "properties": {"a": {"$ref": "#"}, "x": {"type": "string"}}, "required": ["x"]},
                {"type": "object", "properties": {"a": {"$ref": "#"}, "y": {"type": "string"}}, "required": ["y"]},
                {"type": "null"}
            ]
        });
        let validator = Validator::compile(&schema).unwrap_or_else(|error| panic!("{error}"));
        let nest = |depth: usize| {
            (0..depth).fold(json!({"x": 1, "y": 1}), |inner, _| {
                let mut outer = json!({"x": "", "y": ""});
                outer["a"] = inner;
                outer
            })
        };
        // Without memory of what was already tried, 2^100 branches would be walked here.
        assert_eq!(validator.validate(&nest(100)).len(), 1);
        let mut deep = nest(100_000);
        let violations = validator.validate(&deep);
        assert!(!violations.is_empty());
        // Dropping a value this deep would itself overflow the stack.
        while let Some(inner) = deep.get_mut("a").map(Value::take) {
            deep = inner;
        }
        let text = "[".repeat(100_000);
        assert!(validator.validate_str(&text).is_err());
    }

    #[test]
    fn a_million_mistakes_are_not_a_million_lines() {
        let schema =
            json!({"properties": {"list": {"items": {"type": "string"}}, "name": {}}, "required": ["name"]});
        let mut value = json!({"list": vec![1; 100_000]});
        for index in 0..100_000 {
            value[format!("nam{index}")] = Value::Null;
        }
        let lines = said(&schema, &value);
        assert_eq!(lines.first().map(String::as_str), Some("list[0]: 1 is not a string"));
        assert_eq!(lines.last().map(String::as_str), Some("only the first 100 violations are listed"));
        assert!(lines.len() <= 201, "{}", lines.len());
    }

    #[test]
    fn unevaluated_properties_see_what_alternatives_evaluated() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {}},
            "oneOf": [
                {"properties": {"t": {"const": 1}, "b": {}}, "required": ["t"]},
                {"properties": {"t": {"const": 2}, "c": {}}, "required": ["t"]}
            ],
            "unevaluatedProperties": {"type": "integer"}
        });
        assert!(said(&schema, &json!({"a": "", "t": 1, "b": "", "z": 3})).is_empty());
        assert_eq!(said(&schema, &json!({"a": "", "t": 1, "c": ""})), ["c: \"\" is not an integer"]);
    }
}
