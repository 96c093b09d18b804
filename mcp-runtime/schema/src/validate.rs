//! Compiles a schema once and validates values and JSON texts against it.

use std::sync::Arc;

use serde_json::Value;

use super::attempts::Attempts;
use super::check::Validation;
use super::compile::UnsupportedKeyword;
use super::error::{Mismatch, ValidationError};
use super::needs_validation::accept_enforced;
use super::node::SchemaNode;
use super::pattern::link_patterns;
use super::repair::{Changes, Repair, leads_to_default};
use super::stream_check::settle_streams;
use super::{compile, stream_check};

/// A compiled schema.
#[derive(Debug)]
pub struct Validator {
    /// Shared with what counts how often values are read.
    pub(super) nodes: Arc<[SchemaNode]>,
    leads_to_default: Vec<bool>,
    pub(super) null_is_absent: bool,
    pub(super) check_formats: bool,
    /// How many steps one check may take.
    max_steps: usize,
    /// Whether a text can be checked while it is parsed.
    streams: bool,
}

/// How many steps the check of one value may take by a schema that the program did not write: half a second. The largest
/// message that is read by default has fewer values, and a text as long as that takes fewer against a usual pattern.
pub(super) const MAX_STEPS: usize = 40_000_000;

impl Validator {
    /// Compiles a root schema.
    ///
    /// # Errors
    /// If the schema has a keyword that would not be enforced, or one whose value is malformed.
    pub fn compile(root: &Value) -> Result<Self, UnsupportedKeyword> {
        link_patterns();
        Self::compile_generated(root)
    }

    /// Compiles what can be enforced of a schema that another program publishes; the keywords that are passed over.
    pub fn compile_foreign(foreign: &Value) -> (Option<Self>, Vec<UnsupportedKeyword>) {
        let (validator, passed_over) = match Self::compile(foreign) {
            Ok(validator) => (Some(validator), Vec::new()),
            Err(_) => {
                let (schema, passed_over) = super::trusted::enforceable_part(foreign);
                (Self::compile(&schema).ok(), passed_over)
            }
        };
        (validator.map(Self::bounded), passed_over)
    }

    /// Compiles a root schema whose origin has called [`link_patterns`] if it can have patterns.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_generated(root: &Value) -> Result<Self, UnsupportedKeyword> {
        compile::compile(root).map(Self::of)
    }

    /// Compiles what decoding into Rust types does not enforce of a schema that is unchanged from schemars; `None` if it enforces
    /// all of it.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_unenforced(generated: &Value) -> Result<Option<Self>, UnsupportedKeyword> {
        let mut nodes = compile::compile(generated)?;
        Ok(accept_enforced(&mut nodes).then(|| Self::of(nodes)))
    }

    /// Of a compiled schema.
    pub(super) fn of(mut nodes: Vec<SchemaNode>) -> Self {
        settle_streams(&mut nodes);
        Self {
            leads_to_default: leads_to_default(&nodes),
            streams: nodes.first().is_some_and(|root| root.streams),
            nodes: nodes.into(),
            null_is_absent: false,
            check_formats: false,
            max_steps: usize::MAX,
        }
    }

    /// The alternatives of the schema; `None` unless one contains others.
    pub fn attempts(&self) -> Option<Attempts> {
        Attempts::of(self.nodes.clone())
    }

    /// Bounds the steps of a check: the schema may come from another program.
    pub fn bounded(mut self) -> Self {
        let has_patterns = |node: &SchemaNode| {
            node.string.as_ref().is_some_and(|rules| rules.pattern.is_some())
                || node.object.as_ref().is_some_and(|rules| !rules.pattern_properties.is_empty())
        };
        // the steps of a stream are not counted: without patterns, they are those of the text
        self.streams &= !self.nodes.iter().any(has_patterns);
        self.max_steps = MAX_STEPS;
        self
    }

    /// Treats `null` in a property that is not required as absence.
    pub fn null_is_absent(mut self) -> Self {
        self.null_is_absent = true;
        self
    }

    /// Treats the `format` of strings as an assertion: `email`, `uri`, `date`, `date-time`, `partial-date-time`, `partial-time`
    /// and `uuid`.
    pub fn check_formats(mut self) -> Self {
        self.check_formats = true;
        self
    }

    /// Whether a value conforms.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.validation().is_valid(value)
    }

    /// The validation errors, at most a hundred; none if the value conforms.
    ///
    /// Unknown names that are similar to known ones are included, but only along with other errors.
    pub fn validate(&self, value: &Value) -> Vec<ValidationError> {
        self.validate_within(usize::MAX, value)
    }

    /// As [`validate`](Self::validate), in at most so many steps.
    pub fn validate_within(&self, steps: usize, value: &Value) -> Vec<ValidationError> {
        let mut validation = self.validation();
        validation.steps_left = validation.steps_left.min(steps);
        // most values conform, and the fail-fast check is cheaper
        if validation.is_valid(value) { Vec::new() } else { validation.errors_at(0, value) }
    }

    /// As [`validate`](Self::validate), for a value that probably does not conform.
    pub(super) fn errors(&self, value: &Value) -> Vec<ValidationError> {
        self.validation().errors_at(0, value)
    }

    pub(super) fn validation(&self) -> Validation<'_> {
        let mut validation = Validation::new(&self.nodes, self.null_is_absent);
        validation.check_formats = self.check_formats;
        validation.steps_left = self.max_steps;
        validation
    }

    /// The errors as for a type that reads the value: a text has its `format`, and a number that of its integer type.
    pub fn errors_of_type(&self, value: &Value, null_is_absent: bool) -> Vec<ValidationError> {
        let mut validation = self.validation();
        (validation.null_is_absent, validation.check_formats) = (null_is_absent, true);
        validation.check_integers = true;
        validation.errors_at(0, value)
    }

    /// Repairs harmless mistakes: text for another type unless `strict`, and `1.0` for an integer. Returns whether anything
    /// changed.
    pub fn repair(&self, value: &mut Value, strict: bool) -> bool {
        let changes = if strict { Changes::WholeNumbers } else { Changes::Texts };
        Repair::new(&self.nodes, changes, self.max_steps).run(value).unwrap_or_default()
    }

    /// Leaves out optional members that are `null` where their schema has no `null`, those with a default only if
    /// `with_default`. Returns whether anything changed.
    pub fn remove_nulls(&self, value: &mut Value, with_default: bool) -> bool {
        Repair::new(&self.nodes, Changes::Nulls { with_default }, self.max_steps)
            .run(value)
            .unwrap_or_default()
    }

    /// Adds the absent members that have a default to a value that conforms.
    ///
    /// # Errors
    /// Too many members are absent.
    pub fn add_defaults(&self, value: &mut Value) -> Result<(), String> {
        let changes = Changes::Defaults(&self.leads_to_default);
        Repair::new(&self.nodes, changes, self.max_steps).run(value)?;
        Ok(())
    }

    /// Whether JSON text conforms, found without building a value where the schema allows. A text that conforms may be
    /// refused; confirm that with [`errors_in`](Self::errors_in).
    pub fn accepts(&self, json: &str) -> bool {
        if self.streams {
            return stream_check::is_valid(self, json);
        }
        serde_json::from_str(json).is_ok_and(|value| self.is_valid(&value))
    }

    /// The errors of JSON text that was refused; none if it conforms nevertheless.
    pub fn errors_in(&self, json: &str) -> Vec<ValidationError> {
        match serde_json::from_str(json) {
            Ok(value) => self.errors(&value),
            Err(error) => {
                let mismatch = Mismatch::new("JSON", format!("is not valid JSON: {error}"));
                vec![ValidationError::new(String::new(), mismatch)]
            }
        }
    }

    /// Validates JSON text, without building a value where the schema allows.
    ///
    /// # Errors
    /// The validation errors, as [`validate`](Self::validate) returns them.
    pub fn validate_str(&self, json: &str) -> Result<(), Vec<ValidationError>> {
        let errors = if self.accepts(json) { Vec::new() } else { self.errors_in(json) };
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::check::MAX_PATTERN_NAME;

    fn messages(schema: &Value, value: &Value) -> Vec<String> {
        let validator = Validator::compile(schema).unwrap_or_else(|error| panic!("{error}"));
        let by_value: Vec<String> = validator.validate(value).iter().map(ToString::to_string).collect();
        let texts = |errors: &[ValidationError]| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        let by_text = validator.validate_str(&value.to_string()).err().unwrap_or_default();
        assert_eq!(by_value, texts(&by_text));
        assert_eq!(validator.accepts(&value.to_string()), by_value.is_empty());
        by_value
    }

    #[test]
    fn a_check_by_a_foreign_schema_ends_after_a_number_of_steps() {
        let properties: Map<String, Value> = (0..30).map(|n| (n.to_string(), json!({}))).collect();
        let schema = json!({ "items": { "properties": properties } });
        let (foreign, passed_over) = Validator::compile_foreign(&schema);
        let foreign = Validator { max_steps: 1000, ..foreign.expect("a schema") };
        assert_eq!(passed_over, []);
        assert_eq!(foreign.validate(&json!(vec![json!({}); 20])), []);
        let (negated, _) = Validator::compile_foreign(&json!({ "not": schema }));
        let negated = Validator { max_steps: 1000, ..negated.expect("a schema") };
        for validator in [foreign, negated] {
            let value = json!(vec![json!({}); 40]);
            let errors = validator.validate(&value);
            assert_eq!(
                errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
                ["takes too many steps to check"]
            );
            assert!(!validator.is_valid(&value));
        }
    }

    #[test]
    fn a_text_of_the_wrong_length_is_not_matched() {
        let schema = json!({ "maxLength": 254, "pattern": "^(a?){32}a{32}$" });
        let left = |length: usize| {
            let validator = Validator::compile(&schema).expect("a schema").bounded();
            let value = json!("a".repeat(length));
            let mut validation = validator.validation();
            validation.is_valid(&value);
            assert_eq!(validator.validate(&value).len(), usize::from(length > 64));
            MAX_STEPS - validation.steps_left
        };
        assert!(left(4 << 20) < 10);
        assert!(left(200) > 200 * 64 / 8, "{}", left(200));
    }

    #[test]
    fn a_match_takes_steps_by_the_text_and_the_size_of_the_pattern() {
        let text = "a".repeat(10_000);
        for (pattern, is_checked) in [("^a+$", true), ("(a{100}){100}b|c$", false)] {
            for schema in [json!({ "pattern": pattern }), json!({ "patternProperties": { pattern: true } })] {
                let (foreign, _) = Validator::compile_foreign(&json!({ "items": schema }));
                let foreign = foreign.expect("a schema");
                let item =
                    if schema.get("pattern").is_some() { json!(text) } else { json!({ text.as_str(): 1 }) };
                let value = json!([item]);
                assert_eq!(foreign.is_valid(&value), is_checked, "{schema}");
                assert_eq!(foreign.validate_str(&value.to_string()).is_ok(), is_checked, "{schema}");
                let mut repaired = value.clone();
                assert!(!foreign.repair(&mut repaired, false));
            }
        }
    }

    #[test]
    fn the_keywords_that_many_references_apply_take_steps() {
        // 2^25 on a value without parts
        let mut schema = json!({ "$defs": { "D0": { "minLength": 1 } }, "$ref": "#/$defs/D25" });
        for level in 1..=25 {
            let next = json!({ "$ref": format!("#/$defs/D{}", level - 1) });
            schema["$defs"][format!("D{level}")] = json!({ "allOf": [next, next] });
        }
        let (foreign, _) = Validator::compile_foreign(&schema);
        let foreign = Validator { max_steps: 10_000, ..foreign.expect("a schema") };
        assert!(!foreign.is_valid(&json!("a")));
        let unique = json!({ "allOf": vec![json!({ "uniqueItems": true }); 1000] });
        let (foreign, _) = Validator::compile_foreign(&unique);
        let foreign = Validator { max_steps: 100_000, ..foreign.expect("a schema") };
        assert!(foreign.is_valid(&json!([1, 2])) && !foreign.is_valid(&json!((0..1000).collect::<Vec<_>>())));
    }

    #[test]
    fn many_choices_are_a_set() {
        let names: Vec<Value> = (0..10_000).map(|n| json!(format!("name {n}"))).collect();
        let consts: Vec<Value> = names.iter().map(|name| json!({ "const": name, "title": "T" })).collect();
        let twice = [consts.clone(), consts.clone()].concat();
        for schema in [json!({ "enum": names }), json!({ "oneOf": consts }), json!({ "anyOf": twice })] {
            let validator = Validator { max_steps: 1000, ..Validator::compile(&schema).expect("a schema") };
            assert!(validator.is_valid(&json!("name 9999")));
            let other = json!("name 10000");
            let mut validation = validator.validation();
            assert!(!validation.is_valid(&other));
            assert!(validation.steps_left > 990, "{}", validation.steps_left);
            let errors = validator.validate(&json!("Name 12"));
            assert!(
                errors.iter().any(|error| error.to_string().contains("did you mean \"name 12\"?")),
                "{errors:?}"
            );
        }
        // one value twice is refused by `oneOf`
        let one = json!({ "oneOf": [{ "const": 1 }, { "enum": [1.0, 2] }] });
        let validator = Validator::compile(&one).expect("a schema");
        assert!(!validator.is_valid(&json!(1)) && validator.is_valid(&json!(2)));
        let mixed: Vec<Value> = (0..20).map(|n| json!({ "n": [n] })).collect();
        let validator = Validator::compile(&json!({ "enum": mixed })).expect("a schema");
        assert!(validator.is_valid(&json!({ "n": [19.0] })) && !validator.is_valid(&json!({ "n": [20] })));
        let typed = json!({ "anyOf": [{ "type": "integer", "enum": [1, "a"] }, { "const": null }] });
        let validator = Validator::compile(&typed).expect("a schema");
        assert!(
            validator.is_valid(&json!(null))
                && validator.is_valid(&json!(1))
                && !validator.is_valid(&json!("a"))
        );
    }

    #[test]
    fn every_error_is_reported_by_path() {
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
            messages(&schema, &value),
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
    fn misspelt_names_are_suggested_even_if_unknown_names_are_allowed() {
        let schema = json!({
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["query"]
        });
        assert_eq!(
            messages(&schema, &json!({"querry": "x", "limt": 3, "colour": 1})),
            [
                "query: is missing (a string)",
                "unknown argument `limt`; did you mean `limit`?",
                "unknown argument `querry`; did you mean `query`?",
            ]
        );
        assert!(messages(&schema, &json!({"query": "x", "limt": 3})).is_empty());
    }

    #[test]
    fn bounds_of_every_kind_are_enforced_and_explained() {
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
            assert_eq!(messages(&schema, &value), [expected]);
        }
    }

    #[test]
    fn errors_of_tagged_variants_are_those_of_the_tagged_variant() {
        let schema = json!({"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
            {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}
        ]});
        assert_eq!(
            messages(&schema, &json!({"kind": "square", "side": "2"})),
            ["side: \"2\" is not a number"]
        );
        assert_eq!(
            messages(&schema, &json!({"kind": "squre"})),
            ["kind: \"squre\" is not one of \"circle\", \"square\"; did you mean \"square\"?"]
        );
        assert_eq!(messages(&schema, &json!({"r": 2})), ["kind: is missing (one of \"circle\", \"square\")"]);
        assert_eq!(messages(&schema, &json!(3)), ["3 is not an object"]);
        let external = json!({"oneOf": [
            {"type": "string", "enum": ["none", "all"]},
            {"type": "object", "properties": {"first": {"type": "integer"}}, "required": ["first"], "additionalProperties": false}
        ]});
        assert_eq!(messages(&external, &json!({"first": "x"})), ["first: \"x\" is not an integer"]);
        assert_eq!(
            messages(&external, &json!("al")),
            ["\"al\" is not one of \"none\", \"all\"; did you mean \"all\"?"]
        );
        assert_eq!(
            messages(&external, &json!(3)),
            ["3 matches none of: one of \"none\", \"all\"; an object with `first`"]
        );
    }

    #[test]
    fn null_can_be_treated_as_absence() {
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
    fn unsupported_keywords_are_rejected_with_their_location() {
        let rejection = |schema: &Value| match Validator::compile(schema) {
            Ok(_) => panic!("{schema} compiled"),
            Err(error) => (error.keyword.clone(), error.pointer.clone(), error.to_string()),
        };
        let (keyword, pointer, message) = rejection(&json!({"properties": {"a": {"minLenght": 3}}}));
        assert_eq!((keyword.as_str(), pointer.as_str()), ("minLenght", "/properties/a"));
        assert_eq!(
            message,
            "`minLenght` at `#/properties/a` cannot be enforced: it is not a supported keyword"
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
            assert_eq!(rejection(&schema).0, keyword);
        }
        let annotated =
            json!({"x-mcp-header": "A", "format": "uuid", "deprecated": true, "$comment": "", "title": ""});
        assert!(Validator::compile(&annotated).is_ok());
    }

    #[test]
    fn deep_values_and_nested_alternatives_are_validated_in_bounded_stack_and_time() {
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
        // without the cache of matches, 2^100 branches would be tried here
        assert_eq!(validator.validate(&nest(100)).len(), 1);
        let mut deep = nest(100_000);
        assert!(!validator.validate(&deep).is_empty());
        // dropping a value of this depth at once would overflow the stack
        while let Some(inner) = deep.get_mut("a").map(Value::take) {
            deep = inner;
        }
        let text = "[".repeat(100_000);
        assert!(validator.validate_str(&text).is_err());
    }

    /// `d0`, which leads to `d1` by that, and so on to a schema.
    fn chain(length: usize, link: impl Fn(Value) -> Value, last: Value) -> Value {
        let name = |n: usize| format!("d{n}");
        let to = |n: usize| json!({ "$ref": format!("#/$defs/{}", name(n)) });
        let mut defs: Map<String, Value> = (0..length).map(|n| (name(n), link(to(n + 1)))).collect();
        defs.insert(name(length), last);
        json!({ "$ref": "#/$defs/d0", "$defs": defs })
    }

    #[test]
    fn long_chains_of_references_are_compiled_in_bounded_stack() {
        let text = || json!({ "type": "string" });
        let member = |next: Value| json!({ "type": "object", "properties": { "a": next } });
        assert!(Validator::compile(&chain(2_000, member, text())).is_ok());
        let applied = |next: Value| json!({ "allOf": [next], "title": "T" });
        let compiled =
            Validator::compile(&chain(30, applied, text())).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(compiled.validate(&json!(1)).len(), 1);
        let links: [fn(Value) -> Value; 2] = [|next| next, |next| json!({ "allOf": [next], "minLength": 1 })];
        for link in links {
            let schema = chain(2_000, link, text());
            let refused = Validator::compile(&schema).unwrap_err();
            assert_eq!((refused.keyword.as_str(), refused.pointer.as_str()), ("$ref", ""));
            assert!(refused.to_string().contains("leads through more than 64 schemas"), "{refused}");
            let (foreign, passed_over) = Validator::compile_foreign(&chain(500, link, text()));
            assert!(foreign.is_some() && !passed_over.is_empty());
        }
    }

    #[test]
    fn a_deep_value_to_which_many_schemas_apply_at_each_level_is_checked_in_bounded_stack() {
        let level = json!({ "type": "object", "properties": { "a": { "$ref": "#" } } });
        let schema = chain(30, |next| json!({ "allOf": [next], "title": "T" }), level);
        let validator = Validator::compile(&schema).unwrap_or_else(|error| panic!("{error}"));
        let nest = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({ "a": inner }));
        assert_eq!(validator.validate(&nest(3)).len(), 1);
        let deep = validator.validate(&nest(120));
        assert!(deep.iter().any(|error| error.to_string().contains("is nested deeper")), "{deep:?}");
    }

    #[test]
    fn a_value_to_which_several_keywords_apply_is_checked_once_by_each() {
        let part = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"type": "integer"}}});
        let schemas = [
            json!({"allOf": [part, part]}),
            json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"type": "integer"}},
                "patternProperties": {"^a": {"$ref": "#"}, "a$": {"$ref": "#"}}}),
        ];
        let nest = |innermost: Value| {
            (0..100).fold(innermost, |inner, _| {
                let mut outer = json!({});
                outer["a"] = inner;
                outer
            })
        };
        for schema in schemas {
            let validator = Validator::compile(&schema).unwrap_or_else(|error| panic!("{error}"));
            let (good, bad) = (nest(json!({"b": 1})), nest(json!({"b": "1"})));
            for (value, is_valid) in [(&good, true), (&bad, false)] {
                // without the results that are kept, these were 2^100
                let mut validation = validator.validation();
                assert_eq!(validation.is_valid(value), is_valid);
                assert!(validation.steps() < 50_000, "{}", validation.steps());
                assert_eq!(validator.errors(value).is_empty(), is_valid);
            }
            let mut repaired = bad;
            validator.repair(&mut repaired, false);
            let depth = |value: &Value| value.to_string().matches("\"a\"").count();
            assert_eq!(depth(&repaired), 100);
            let mut with_default = schema.clone();
            with_default["$defs"] = json!({"D": {"properties": {"c": {"default": 1}}}});
            with_default["properties"]["d"] = json!({"$ref": "#/$defs/D"});
            let validator = Validator::compile(&with_default).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(validator.add_defaults(&mut repaired), Ok(()));
        }
    }

    #[test]
    fn a_name_that_is_too_long_for_patterns_is_refused() {
        let schema = json!({"patternProperties": {"^a": {"type": "integer"}}});
        for (length, errors) in [(MAX_PATTERN_NAME, 0), (MAX_PATTERN_NAME + 1, 1)] {
            let mut value = json!({});
            value["a".repeat(length)] = 1.into();
            assert_eq!(messages(&schema, &value).len(), errors, "{length}");
        }
    }

    #[test]
    fn the_number_of_reported_errors_is_bounded() {
        let schema =
            json!({"properties": {"list": {"items": {"type": "string"}}, "name": {}}, "required": ["name"]});
        let mut value = json!({"list": vec![1; 10_000]});
        for index in 0..10_000 {
            value[format!("nam{index}")] = Value::Null;
        }
        let lines = messages(&schema, &value);
        assert_eq!(lines.first().map(String::as_str), Some("list[0]: 1 is not a string"));
        assert_eq!(lines.last().map(String::as_str), Some("only the first 100 errors are listed"));
        assert!(lines.len() <= 201, "{}", lines.len());
    }

    #[test]
    fn properties_that_alternatives_evaluate_are_not_unevaluated() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {}},
            "oneOf": [
                {"properties": {"t": {"const": 1}, "b": {}}, "required": ["t"]},
                {"properties": {"t": {"const": 2}, "c": {}}, "required": ["t"]}
            ],
            "unevaluatedProperties": {"type": "integer"}
        });
        assert!(messages(&schema, &json!({"a": "", "t": 1, "b": "", "z": 3})).is_empty());
        assert_eq!(messages(&schema, &json!({"a": "", "t": 1, "c": ""})), ["c: \"\" is not an integer"]);
    }
}
