//! What schemars emits for real types: lean, valid 2020-12, resolvable, and meaning what the types decode.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Mode, Validator, generator, generator_for_output, hoist_defs, lean, walk};

/// The lean root schema of a type, without the type-name title that schemars gives to roots.
///
/// The schema as schemars made it is returned too, since `needs_validation` can tell more from it.
fn root_schema<T: JsonSchema + ?Sized>(mode: Mode) -> (Value, Value) {
    let generator = match mode {
        Mode::Input => generator(),
        Mode::Output => generator_for_output(),
    };
    finish(generator.into_root_schema_for::<T>().to_value(), &T::schema_name(), mode)
}

fn finish(mut raw: Value, name: &str, mode: Mode) -> (Value, Value) {
    if let Some(map) = raw.as_object_mut()
        && map.get("title").and_then(Value::as_str) == Some(name)
    {
        map.remove("title");
    }
    let mut published = raw.clone();
    lean(&mut published, mode);
    (published, raw)
}

/// A lean schema that is valid by the meta-schema, whose references resolve and which our validator enforces.
fn published<T: JsonSchema>(mode: Mode) -> Value {
    let (schema, _) = root_schema::<T>(mode);
    sound(&schema);
    schema
}

fn sound(schema: &Value) {
    if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
        panic!("{schema}: {error}");
    }
    references(schema, schema);
    if let Err(error) = Validator::compile(schema) {
        panic!("{schema}: {error}");
    }
    let text = schema.to_string();
    for noise in ["$schema", "int32", "uint", "double", "\"float\"", "\"default\":null", "\"required\":[]"] {
        assert!(!text.contains(noise), "{noise} in {text}");
    }
}

fn references(root: &Value, schema: &Value) {
    let Value::Object(map) = schema else { return };
    if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
        assert!(walk::resolve(root, reference).is_some(), "{reference} in {root}");
    }
    walk::children(map, |_, child| references(root, child));
}

fn input<T: JsonSchema>() -> Value {
    published::<T>(Mode::Input)
}

/// What a value that conforms must do: decode. And one that does not: fail, where types can tell.
fn agrees<T: JsonSchema + for<'de> Deserialize<'de>>(good: &[Value], bad: &[Value]) {
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
    /// Which shape
    shape: Option<Shape>,
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
enum Shape {
    Circle { radius: f64 },
    Square { side: f32 },
    Point,
}

#[test]
fn t10_optional_properties_have_the_schema_of_their_type() {
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
            "shape": {"description": "Which shape", "oneOf": [tagged("circle", "radius"), tagged("square", "side"), point]},
            "list": {"type": "array", "items": {"type": ["integer", "null"], "minimum": 0, "maximum": 255}}
        },
        "required": ["list"]
    });
    assert_eq!(input::<Optional>(), expected);
    agrees::<Optional>(
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
fn t26_results_publish_the_null_they_send() {
    #[derive(JsonSchema, Serialize)]
    #[allow(dead_code)]
    struct Found {
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
    assert_eq!(published::<Found>(Mode::Output), expected);
    assert_eq!(published::<Option<i32>>(Mode::Output), json!({"type": ["integer", "null"]}));
    assert_eq!(published::<Vec<bool>>(Mode::Output), json!({"type": "array", "items": {"type": "boolean"}}));
}

#[test]
fn t13_every_representation_of_an_enum_is_sound() {
    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    enum External {
        Unit,
        /// Said of it
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
    agrees::<External>(
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
    agrees::<Adjacent>(
        &[json!({"t": "A", "c": [1]}), json!({"t": "B"})],
        &[json!({"t": "A"}), json!({"t": "C"})],
    );
    agrees::<Untagged>(&[json!(1), json!("x"), json!({"a": 1, "b": 2})], &[json!(true), json!({"a": 1})]);
    agrees::<Shape>(
        &[json!({"kind": "point"})],
        &[json!({"kind": "circle"}), json!({"kind": "line"}), json!("point")],
    );
    agrees::<Tone>(&[json!("formal")], &[json!("Formal"), json!(0)]);
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
fn t13_recursive_types_refer_to_themselves_once() {
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
    agrees::<Tree>(
        &[leaf.clone(), json!({"value": 1, "children": [leaf], "parent": null})],
        &[json!({"value": 1, "children": [{}]}), json!({"value": 1, "children": [], "parent": 3})],
    );
    agrees::<Chicken>(
        &[json!({"egg": {"size": 1, "chicken": {"egg": null}}})],
        &[json!({"egg": {"size": 1, "chicken": {"egg": {"size": 256}}}})],
    );

    // Parameters, as a tool publishes them: one generator, definitions under the root.
    let mut generator = generator();
    let mut root = json!({"type": "object", "properties": {}, "required": ["tree", "hen"]});
    root["properties"]["tree"] = generator.subschema_for::<Tree>().to_value();
    root["properties"]["hen"] = generator.subschema_for::<Chicken>().to_value();
    root["properties"]["n"] = generator.subschema_for::<Option<u16>>().to_value();
    root["properties"]["hen"]["description"] = json!("who was first");
    hoist_defs(&mut root, generator.take_definitions(true));
    lean(&mut root, Mode::Input);
    sound(&root);
    assert_eq!(root["properties"]["tree"], json!({"$ref": "#/$defs/Tree"}));
    assert_eq!(root["properties"]["n"], json!({"type": "integer", "minimum": 0, "maximum": 65535}));
    assert_eq!(root["$defs"]["Tree"], tree("#/$defs/Tree"));
    let hen = &root["properties"]["hen"];
    assert_eq!(hen["description"], "who was first");
    assert_eq!(root.to_string().matches("\"size\":{").count(), 1, "{root}");
}

#[test]
fn t13_recursive_results_refer_to_themselves_once() {
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
    assert_eq!(published::<Holder>(Mode::Output), expected);
}

#[test]
fn t12_constraints_of_nested_types_are_published_and_enforced() {
    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct Outer {
        items: Vec<Item>,
    }
    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct Item {
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
    agrees::<Outer>(
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
fn t13_containers_and_serde_attributes_are_sound() {
    #[derive(JsonSchema, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Everything {
        #[serde(rename = "the-map")]
        map: BTreeMap<String, f64>,
        #[serde(default)]
        by_tone: BTreeMap<u8, Tone2>,
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
    enum Tone2 {
        Low,
    }
    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct Flattened {
        own: i32,
        #[serde(flatten)]
        nested: Nested,
        #[serde(flatten)]
        shape: Shape,
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
    agrees::<Everything>(
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
    agrees::<Flattened>(
        &[json!({"own": 1, "kind": "circle", "radius": 2, "else": [], "inner": "x"})],
        &[
            json!({"own": 1}),
            json!({"own": 1, "kind": "circle"}),
            json!({"own": 1, "kind": "point", "inner": 3}),
        ],
    );
}

#[test]
fn titles_stay_only_where_a_user_set_them() {
    #[derive(JsonSchema)]
    #[schemars(title = "A place on earth")]
    #[allow(dead_code)]
    struct Place {
        #[schemars(title = "Post code")]
        post_code: String,
        #[schemars(title = "Where it is")]
        town: String,
    }
    let place = input::<Place>();
    assert_eq!(place["title"], "A place on earth");
    assert_eq!(place["properties"]["post_code"], json!({"type": "string"}));
    assert_eq!(place["properties"]["town"]["title"], "Where it is");
    assert_eq!(input::<Nested>().get("title"), None);
}
