//! Published schemas of Rust types: minimal, valid 2020-12, and accepting what the types deserialize.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Direction, Validator, check_schema, generator, generator_for_output, hoist_defs, minimize, walk,
};

/// The published schema of a type. It must be valid by the meta-schema, its references must resolve, and the validator
/// must support its keywords.
fn published<T: JsonSchema>(direction: Direction) -> Value {
    let generator = match direction {
        Direction::Input => generator(),
        Direction::Output => generator_for_output(),
    };
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    // schemars sets the name of the type as the title of a root
    if let Some(map) = schema.as_object_mut()
        && map.get("title").and_then(Value::as_str) == Some(&T::schema_name())
    {
        map.remove("title");
    }
    minimize(&mut schema, direction);
    assert_publishable(&schema);
    schema
}

fn assert_publishable(schema: &Value) {
    if let Err(error) = check_schema(schema) {
        panic!("{schema}: {error}");
    }
    assert_references_resolve(schema, schema);
    if let Err(error) = Validator::compile(schema) {
        panic!("{schema}: {error}");
    }
    let text = schema.to_string();
    for redundant in
        ["$schema", "int32", "uint", "double", "\"float\"", "\"default\":null", "\"required\":[]"]
    {
        assert!(!text.contains(redundant), "{redundant} in {text}");
    }
}

fn assert_references_resolve(root: &Value, schema: &Value) {
    let Value::Object(map) = schema else { return };
    if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
        assert!(walk::resolve(root, reference).is_some(), "{reference} in {root}");
    }
    walk::subschemas(map, |_, child| assert_references_resolve(root, child));
}

fn input<T: JsonSchema>() -> Value {
    published::<T>(Direction::Input)
}

/// Checks that `good` values are valid and deserialize, and that `bad` values are invalid.
fn assert_validates<T: JsonSchema + for<'de> Deserialize<'de>>(good: &[Value], bad: &[Value]) {
    let schema = input::<T>();
    let validator =
        Validator::compile(&schema).map(Validator::null_is_absent).unwrap_or_else(|error| panic!("{error}"));
    for value in good {
        assert_eq!(validator.validate(value), [], "{value} against {schema}");
        assert!(serde_json::from_value::<T>(value.clone()).is_ok(), "{value}");
    }
    for value in bad {
        assert!(!validator.validate(value).is_empty(), "{value} against {schema}");
    }
}

type Maybe<T> = Option<T>;

#[derive(JsonSchema, Deserialize)]
#[allow(dead_code)]
struct Optional {
    plain: Option<i32>,
    alias: Maybe<Nested>,
    tone: Option<Tone>,
    /// Which figure
    shape: Option<Figure>,
    list: Vec<Option<u8>>,
}

#[derive(JsonSchema, Deserialize)]
#[allow(dead_code)]
struct Nested {
    inner: Option<String>,
    #[serde(default)]
    count: u64,
}

#[derive(JsonSchema, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum Tone {
    Formal,
    Casual,
}

#[derive(JsonSchema, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(dead_code)]
enum Figure {
    Circle { radius: f64 },
    Square { side: f32 },
    Point,
}

#[test]
fn optional_properties_have_the_schema_of_their_inner_type() {
    let nested = json!({
        "type": "object",
        "properties": {"inner": {"type": "string"}, "count": {"type": "integer", "minimum": 0, "default": 0}}
    });
    let tagged = |kind: &str, field: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"type": "string", "const": kind}, field: {"type": "number"}},
            "required": ["kind", field]
        })
    };
    let point = json!({
        "type": "object", "properties": {"kind": {"type": "string", "const": "point"}}, "required": ["kind"]
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "plain": {"type": "integer"},
            "alias": nested,
            "tone": {"type": "string", "enum": ["formal", "casual"]},
            "shape": {"description": "Which figure", "oneOf": [tagged("circle", "radius"), tagged("square", "side"), point]},
            "list": {"type": "array", "items": {"type": ["integer", "null"], "minimum": 0, "maximum": 255}}
        },
        "required": ["list"]
    });
    assert_eq!(input::<Optional>(), expected);
    assert_validates::<Optional>(
        &[
            json!({"list": []}),
            json!({"list": [1, null], "plain": null, "alias": {"inner": null}, "tone": null}),
            json!({"list": [], "shape": {"kind": "circle", "radius": 1}}),
        ],
        &[
            json!({}),
            json!({"list": [256]}),
            json!({"list": [], "tone": "x"}),
            json!({"list": [], "alias": {"count": -1}}),
        ],
    );
}

#[test]
fn output_schemas_allow_the_null_that_is_sent() {
    #[derive(JsonSchema, Serialize)]
    #[allow(dead_code)]
    struct SearchHit {
        id: u32,
        note: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        extra: Option<i64>,
    }
    let expected = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 0},
            "note": {"type": ["string", "null"]},
            "extra": {"type": ["integer", "null"]}
        },
        "required": ["id", "note"]
    });
    assert_eq!(published::<SearchHit>(Direction::Output), expected);
    assert_eq!(published::<Option<i32>>(Direction::Output), json!({"type": ["integer", "null"]}));
    assert_eq!(
        published::<Vec<bool>>(Direction::Output),
        json!({"type": "array", "items": {"type": "boolean"}})
    );
}

#[test]
fn every_enum_representation_is_published_and_enforced() {
    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    enum External {
        Unit,
        /// A description
        Described,
        One(i32),
        Two(u8, String),
        Named {
            x: Option<f32>,
        },
    }
    #[derive(JsonSchema, Deserialize)]
    #[serde(tag = "t", content = "c")]
    #[allow(dead_code)]
    enum Adjacent {
        A(Vec<i32>),
        B,
    }
    #[derive(JsonSchema, Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Untagged {
        Number(i64),
        Text(String),
        Pair { a: i32, b: i32 },
    }
    assert_validates::<External>(
        &[
            json!("Unit"),
            json!("Described"),
            json!({"One": 1}),
            json!({"Two": [1, "x"]}),
            json!({"Named": {"x": null}}),
        ],
        &[
            json!("One"),
            json!({"One": "1"}),
            json!({"Two": [1]}),
            json!({"Two": [1, "x", 2]}),
            json!({"One": 1, "Two": [1, ""]}),
        ],
    );
    assert_validates::<Adjacent>(
        &[json!({"t": "A", "c": [1]}), json!({"t": "B"})],
        &[json!({"t": "A"}), json!({"t": "C"})],
    );
    assert_validates::<Untagged>(
        &[json!(1), json!("x"), json!({"a": 1, "b": 2})],
        &[json!(true), json!({"a": 1})],
    );
    assert_validates::<Figure>(
        &[json!({"kind": "point"})],
        &[json!({"kind": "circle"}), json!({"kind": "line"}), json!("point")],
    );
    assert_validates::<Tone>(&[json!("formal")], &[json!("Formal"), json!(0)]);
}

#[derive(JsonSchema, Deserialize)]
#[allow(dead_code)]
struct Tree {
    value: i32,
    children: Vec<Tree>,
    parent: Option<Box<Tree>>,
}

#[derive(JsonSchema, Deserialize)]
#[allow(dead_code)]
struct Chicken {
    egg: Option<Box<Egg>>,
}

#[derive(JsonSchema, Deserialize)]
#[allow(dead_code)]
struct Egg {
    chicken: Option<Box<Chicken>>,
    size: u8,
}

#[test]
fn recursive_input_types_are_defined_once() {
    let tree = |here: &str| {
        json!({
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": here}},
                "parent": {"$ref": here}
            },
            "required": ["value", "children"]
        })
    };
    assert_eq!(input::<Tree>(), tree("#"));
    let leaf = json!({"value": 1, "children": []});
    assert_validates::<Tree>(
        &[leaf.clone(), json!({"value": 1, "children": [leaf], "parent": null})],
        &[json!({"value": 1, "children": [{}]}), json!({"value": 1, "children": [], "parent": 3})],
    );
    assert_validates::<Chicken>(
        &[json!({"egg": {"size": 1, "chicken": {"egg": null}}})],
        &[json!({"egg": {"size": 1, "chicken": {"egg": {"size": 256}}}})],
    );

    // parameters, as a tool publishes them: one generator, and definitions at the root
    let mut generator = generator();
    let mut root = json!({"type": "object", "properties": {}, "required": ["tree", "hen"]});
    root["properties"]["tree"] = generator.subschema_for::<Tree>().to_value();
    root["properties"]["hen"] = generator.subschema_for::<Chicken>().to_value();
    root["properties"]["n"] = generator.subschema_for::<Option<u16>>().to_value();
    root["properties"]["hen"]["description"] = json!("who was first");
    hoist_defs(&mut root, generator.take_definitions(true));
    minimize(&mut root, Direction::Input);
    assert_publishable(&root);
    assert_eq!(root["properties"]["tree"], json!({"$ref": "#/$defs/Tree"}));
    assert_eq!(root["properties"]["n"], json!({"type": "integer", "minimum": 0, "maximum": 65535}));
    assert_eq!(root["$defs"]["Tree"], tree("#/$defs/Tree"));
    let hen = &root["properties"]["hen"];
    assert_eq!(hen["description"], "who was first");
    assert_eq!(root.to_string().matches("\"size\":{").count(), 1, "{root}");
}

#[test]
fn recursive_output_types_are_defined_once() {
    #[derive(JsonSchema, Serialize)]
    #[allow(dead_code)]
    struct Holder {
        first: Option<Box<Link>>,
    }
    #[derive(JsonSchema, Serialize)]
    #[allow(dead_code)]
    struct Link {
        next: Option<Box<Link>>,
    }
    let link = json!([{"$ref": "#/$defs/Link"}, {"type": "null"}]);
    let expected = json!({
        "type": "object",
        "properties": {"first": {"anyOf": link}},
        "required": ["first"],
        "$defs": {"Link": {"type": "object", "properties": {"next": {"anyOf": link}}, "required": ["next"]}}
    });
    assert_eq!(published::<Holder>(Direction::Output), expected);
}

#[test]
fn constraints_of_nested_types_are_published_and_enforced() {
    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct Outer {
        items: Vec<LineItem>,
    }
    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct LineItem {
        #[schemars(range(min = 1, max = 100))]
        price: i32,
        #[schemars(length(min = 1, max = 3))]
        name: String,
        #[schemars(regex(pattern = r"^[A-Z]{2}$"))]
        code: String,
        #[schemars(length(max = 2), inner(range(max = 5)))]
        marks: Vec<u8>,
    }
    let item = |price: i32, name: &str, code: &str, marks: Value| json!({"items": [{"price": price, "name": name, "code": code, "marks": marks}]});
    assert_validates::<Outer>(
        &[item(1, "a", "AB", json!([])), item(100, "abc", "ZZ", json!([5, 5]))],
        &[
            item(0, "a", "AB", json!([])),
            item(101, "a", "AB", json!([])),
            item(1, "", "AB", json!([])),
            item(1, "abcd", "AB", json!([])),
            item(1, "a", "ABC", json!([])),
            item(1, "a", "AB", json!([6])),
            item(1, "a", "AB", json!([1, 2, 3])),
        ],
    );
}

#[test]
fn containers_and_serde_attributes_are_published_and_enforced() {
    #[derive(JsonSchema, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Everything {
        #[serde(rename = "the-map")]
        map: BTreeMap<String, f64>,
        #[serde(default)]
        by_tone: BTreeMap<u8, Level>,
        pair: (i32, String),
        set: HashSet<String>,
        fixed: [u8; 3],
        boxed: Box<Nested>,
        any: Value,
        letter: char,
        unit: (),
        wide: u64,
        signed: i64,
        single: f32,
    }
    #[derive(JsonSchema, Deserialize, Serialize)]
    #[allow(dead_code)]
    enum Level {
        Low,
    }
    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct Flattened {
        own: i32,
        #[serde(flatten)]
        nested: Nested,
        #[serde(flatten)]
        shape: Figure,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    let good = json!({
        "the-map": {"x": 1.5}, "by_tone": {"1": "Low"}, "pair": [1, "x"], "set": ["a"], "fixed": [1, 2, 3],
        "boxed": {}, "any": [1], "letter": "é", "unit": null, "wide": u64::MAX, "signed": i64::MIN, "single": 0.5
    });
    let with = |key: &str, value: Value| {
        let mut changed = good.clone();
        changed[key] = value;
        changed
    };
    assert_validates::<Everything>(
        std::slice::from_ref(&good),
        &[
            with("other", json!(1)),
            with("pair", json!([1])),
            with("set", json!(["a", "a"])),
            with("fixed", json!([1, 2])),
            with("letter", json!("ab")),
            with("wide", json!(-1)),
            with("by_tone", json!({"x": "Low"})),
            with("the-map", json!({"x": "1"})),
        ],
    );
    let any = &input::<Everything>()["properties"]["any"];
    assert_eq!(*any, json!({}));
    assert_validates::<Flattened>(
        &[json!({"own": 1, "kind": "circle", "radius": 2, "else": [], "inner": "x"})],
        &[
            json!({"own": 1}),
            json!({"own": 1, "kind": "circle"}),
            json!({"own": 1, "kind": "point", "inner": 3}),
        ],
    );
}

#[test]
fn only_titles_that_a_user_set_are_kept() {
    #[derive(JsonSchema)]
    #[schemars(title = "A place on earth")]
    #[allow(dead_code)]
    struct Address {
        #[schemars(title = "Post code")]
        post_code: String,
        #[schemars(title = "Where it is")]
        town: String,
    }
    let address = input::<Address>();
    assert_eq!(address["title"], "A place on earth");
    assert_eq!(address["properties"]["post_code"], json!({"type": "string"}));
    assert_eq!(address["properties"]["town"]["title"], "Where it is");
    assert_eq!(input::<Nested>().get("title"), None);
}
