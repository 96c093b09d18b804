//! Forms of real types as each revision sees them, and the results that they accept.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    answer::{Answer, decode_result},
    form::{Elicitable, ElicitationForm},
    url::url_params,
};
use crate::core::{context::ClientRequestError, protocol::Revision};

const NOW: Revision = Revision::V2026_07_28;

fn form<T: Elicitable>() -> ElicitationForm {
    ElicitationForm::of::<T>("key").unwrap_or_else(|error| panic!("{error:?}"))
}

fn params<T: Elicitable>(revision: Revision) -> Value {
    let params = form::<T>().params("why", revision);
    serde_json::from_slice(&params.unwrap_or_else(|error| panic!("{error:?}"))).expect("json")
}

fn schema<T: Elicitable>(revision: Revision) -> Value {
    params::<T>(revision)["requestedSchema"].take()
}

fn unfit<T: Elicitable>() -> String {
    match ElicitationForm::of::<T>("key") {
        Err(ClientRequestError::Unfit { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn answer<T: Elicitable>(result: &Value) -> Result<Answer<T>, String> {
    decode_result(&result.to_string(), |content| form::<T>().decode(content))
}

fn accept<T: Elicitable>(content: &Value) -> Result<T, String> {
    answer::<T>(&json!({ "action": "accept", "content": content }))
        .map(|answer| answer.accepted().unwrap_or_else(|| panic!("no value")))
}

#[test]
fn an_answer_of_very_many_values_is_not_read() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Note {
        note: Option<String>,
    }
    let many = |count: usize| json!({ "note": "kept", "other": vec![json!([]); count] });
    assert_eq!(accept::<Note>(&many(1000)).map(|note| note.note), Ok(Some("kept".to_owned())));
    assert_eq!(accept::<Note>(&many(5000)).unwrap_err(), "the result has more than 4000 values");
    // a text is one value
    let text = ",".repeat(10_000);
    assert_eq!(accept::<Note>(&json!({ "note": text })).map(|note| note.note), Ok(Some(text)));
}

/// The two fixtures of the conformance suite, as a user would write them.
mod fixture {
    use super::*;

    #[derive(Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Status {
        Active,
        Inactive,
        Pending,
    }

    #[derive(Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(default)]
    pub(super) struct Defaults {
        pub(super) name: String,
        pub(super) age: i64,
        pub(super) score: f64,
        pub(super) status: Status,
        pub(super) verified: bool,
    }

    impl Default for Defaults {
        fn default() -> Self {
            Self { name: "John Doe".into(), age: 30, score: 95.5, status: Status::Active, verified: true }
        }
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Plain {
        Option1,
        Option2,
        Option3,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Titled {
        #[schemars(title = "First Option")]
        Value1,
        #[schemars(title = "Second Option")]
        Value2,
        /// Third Option
        Value3,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[allow(dead_code)]
    pub(super) struct Enums {
        pub(super) untitled_single: Plain,
        pub(super) titled_single: Titled,
        #[schemars(extend("enumNames" = ["Option One", "Option Two", "Option Three"]))]
        pub(super) legacy_enum: Plain,
        pub(super) untitled_multi: Vec<Plain>,
        pub(super) titled_multi: Vec<Titled>,
    }
}

#[test]
fn defaults_are_published_as_written() {
    assert_eq!(
        schema::<fixture::Defaults>(NOW),
        json!({ "type": "object", "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
        }})
    );
    let accepted: fixture::Defaults = accept(&json!({ "age": 31.0 })).expect("value");
    assert_eq!((accepted.age, &*accepted.name, accepted.verified), (31, "John Doe", true));
}

#[test]
fn every_form_of_enum_is_published() {
    let titles = json!([
        { "const": "value1", "title": "First Option" },
        { "const": "value2", "title": "Second Option" },
        { "const": "value3", "title": "Third Option" },
    ]);
    let options = json!(["option1", "option2", "option3"]);
    assert_eq!(
        schema::<fixture::Enums>(NOW),
        json!({
            "type": "object",
            "properties": {
                "untitledSingle": { "type": "string", "enum": options },
                "titledSingle": { "type": "string", "oneOf": titles },
                "legacyEnum": {
                    "type": "string", "enum": options, "enumNames": ["Option One", "Option Two", "Option Three"]
                },
                "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
                "titledMulti": { "type": "array", "items": { "anyOf": titles } },
            },
            "required": ["untitledSingle", "titledSingle", "legacyEnum", "untitledMulti", "titledMulti"],
        })
    );
    assert_eq!(params::<fixture::Enums>(Revision::V2025_11_25), params::<fixture::Enums>(NOW));
    let accepted: fixture::Enums = accept(&json!({
        "untitledSingle": "option2", "titledSingle": "value3", "legacyEnum": "option1",
        "untitledMulti": ["option1", "option3"], "titledMulti": [],
    }))
    .expect("value");
    assert!(matches!(accepted.titled_single, fixture::Titled::Value3));
    assert_eq!(accepted.untitled_multi.len(), 2);
}

/// What a user may say of a field.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[allow(dead_code)]
struct Contact {
    /// Where to write to
    #[schemars(title = "E-mail address", email)]
    zmail: String,
    #[schemars(length(min = 3, max = 50), regex(pattern = "^[a-z]+$"))]
    nick: String,
    #[schemars(range(min = 1, max = 9))]
    #[serde(default = "four")]
    rating: u8,
    #[schemars(extend("exclusiveMinimum" = 0))]
    weight: Option<i32>,
    #[schemars(extend("exclusiveMinimum" = 0))]
    ratio: Option<f64>,
    #[schemars(extend("format" = "date"))]
    born: Option<String>,
    #[schemars(extend("format" = "uuid"))]
    id: Option<String>,
    agree: bool,
    #[schemars(length(min = 1, max = 2))]
    tags: Option<HashSet<fixture::Status>>,
}

fn four() -> u8 {
    4
}

impl std::hash::Hash for fixture::Status {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
    }
}
impl PartialEq for fixture::Status {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
impl Eq for fixture::Status {}

#[test]
fn fields_keep_what_forms_can_show_in_the_order_of_the_struct() {
    let text = form::<Contact>().params("why", NOW).expect("params");
    let expected = concat!(
        r#"{"mode":"form","message":"why","requestedSchema":{"type":"object","properties":{"#,
        r#""zmail":{"type":"string","title":"E-mail address","description":"Where to write to","format":"email"},"#,
        r#""nick":{"type":"string","minLength":3,"maxLength":50},"#,
        r#""rating":{"type":"integer","minimum":1,"maximum":9,"default":4},"#,
        r#""weight":{"type":"integer","minimum":1},"#,
        r#""ratio":{"type":"number"},"#,
        r#""born":{"type":"string","format":"date"},"#,
        r#""id":{"type":"string"},"#,
        r#""agree":{"type":"boolean"},"#,
        r#""tags":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","#,
        r#""enum":["active","inactive","pending"]}}},"#,
        r#""required":["zmail","nick","agree"]}}"#
    );
    assert_eq!(String::from_utf8(text).expect("text"), expected);
}

#[test]
fn content_is_checked_against_everything_that_the_type_says() {
    let good = json!({ "zmail": "a@b.example", "nick": "abc", "agree": true });
    let fits = |name: &str, value: Value| {
        let mut content = good.clone();
        content[name] = value;
        accept::<Contact>(&content).map(drop)
    };
    assert_eq!(fits("rating", json!(9.0)), Ok(()));
    assert_eq!(fits("rating", Value::Null), Ok(()), "absent, so the default counts");
    assert_eq!(fits("weight", Value::Null), Ok(()));
    assert_eq!(fits("tags", json!(["active", "active"])), Ok(()));
    assert_eq!(fits("unknown", json!({ "for": ["this"] })), Ok(()));
    for (name, value) in [
        ("rating", json!(10)),
        ("rating", json!("4")),
        ("weight", json!(0)),
        ("ratio", json!(0)),
        ("nick", json!("Secret")),
        ("nick", json!("ab")),
        ("agree", json!("true")),
        ("agree", Value::Null),
        ("tags", json!([])),
        ("tags", json!(["gone"])),
        ("zmail", json!(3)),
    ] {
        let wrong = fits(name, value.clone()).expect_err("does not fit");
        assert!(wrong.contains(&format!("`{name}")), "{wrong}");
        assert!(!wrong.contains("Secret"), "{wrong}");
    }
    let missing = accept::<Contact>(&json!({ "nick": "abc" })).expect_err("misses two");
    assert!(missing.contains("`zmail`") && missing.contains("`agree`"), "{missing}");
}

#[test]
fn formats_of_a_form_are_checked() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Event {
        #[schemars(extend("format" = "email"))]
        host: String,
        #[schemars(extend("format" = "uri"))]
        page: String,
        #[schemars(extend("format" = "date"))]
        day: String,
        #[schemars(extend("format" = "date-time"))]
        start: Option<String>,
        #[schemars(extend("format" = "hostname"))]
        other: String,
    }
    let good = json!({
        "host": "a@b.example", "page": "https://b.example/", "day": "2024-02-29", "start": "2024-02-29T12:00:00Z",
        "other": "not checked"
    });
    assert!(accept::<Event>(&good).is_ok());
    for (name, value, expected) in [
        ("host", "Secret", "an email address"),
        ("page", "Secret", "a URI"),
        ("day", "2024-02-30", "a date"),
        ("start", "2024-02-29", "a date and time"),
    ] {
        let mut content = good.clone();
        content[name] = value.into();
        let wrong = accept::<Event>(&content).expect_err("malformed");
        assert!(
            wrong.starts_with(&format!("`{name}`: expected {expected}")) && !wrong.contains(value),
            "{wrong}"
        );
    }
}

#[test]
fn malformed_results_are_described() {
    let cases = [
        (json!(12345), "not an object with an `action`"),
        (Value::Null, "not an object with an `action`"),
        (json!({}), "not an object with an `action`"),
        (json!({ "action": "agree" }), "`action` is not"),
        (json!({ "action": "accept" }), "`content` is missing"),
        (json!({ "action": "accept", "content": null }), "`content` is missing"),
        (json!({ "action": "accept", "content": "yes" }), "`content` is not an object"),
    ];
    for (result, expected) in cases {
        let wrong = answer::<Contact>(&result).expect_err("malformed");
        assert!(wrong.contains(expected), "{result}: {wrong}");
    }
    assert!(matches!(answer::<Contact>(&json!({ "action": "decline" })), Ok(Answer::Decline)));
    // some clients send content with every action
    let cancelled = json!({ "action": "cancel", "content": { "nick": 3 } });
    assert!(matches!(answer::<Contact>(&cancelled), Ok(Answer::Cancel)));
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "u8")]
#[schemars(with = "u8")]
struct Even(u8);

impl TryFrom<u8> for Even {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        if number.is_multiple_of(2) { Ok(Self(number)) } else { Err(format!("{number} is odd")) }
    }
}

#[test]
fn content_that_fits_the_form_but_not_the_type_is_malformed_and_not_quoted() {
    assert_eq!(accept::<Even>(&json!({ "value": 4 })), Ok(Even(4)));
    let wrong = accept::<Even>(&json!({ "value": 77 })).expect_err("odd");
    assert!(wrong.contains("Even") && !wrong.contains("77"), "{wrong}");
}

#[test]
fn a_single_value_is_the_field_value() {
    let one =
        |schema: Value| json!({ "type": "object", "properties": { "value": schema }, "required": ["value"] });
    assert_eq!(schema::<bool>(NOW), one(json!({ "type": "boolean" })));
    assert_eq!(schema::<String>(NOW), one(json!({ "type": "string" })));
    assert_eq!(schema::<f64>(NOW), one(json!({ "type": "number" })));
    assert_eq!(schema::<u8>(NOW), one(json!({ "type": "integer", "minimum": 0, "maximum": 255 })));
    let plain = json!({ "type": "string", "enum": ["option1", "option2", "option3"] });
    assert_eq!(schema::<fixture::Plain>(NOW), one(plain.clone()));
    assert_eq!(schema::<Vec<fixture::Plain>>(NOW), one(json!({ "type": "array", "items": plain })));

    assert_eq!(accept::<bool>(&json!({ "value": true })), Ok(true));
    assert_eq!(accept::<i64>(&json!({ "value": -3.0 })), Ok(-3));
    assert!(accept::<u8>(&json!({ "value": 256 })).is_err());
    assert!(accept::<u8>(&json!({})).is_err());

    for schema in [schema::<Option<u8>>(NOW), schema::<Option<fixture::Plain>>(NOW)] {
        assert!(
            schema.get("required").is_none() && schema["properties"]["value"]["type"].is_string(),
            "{schema}"
        );
    }
    assert_eq!(accept::<Option<u8>>(&json!({})), Ok(None));
    assert_eq!(accept::<Option<u8>>(&json!({ "value": null })), Ok(None));
    assert_eq!(accept::<Option<u8>>(&json!({ "value": 2 })), Ok(Some(2)));
}

#[test]
fn agreement_alone_can_be_requested() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Nothing {}

    let empty = json!({ "type": "object", "properties": {} });
    assert_eq!((schema::<()>(NOW), schema::<Nothing>(NOW)), (empty.clone(), empty));
    for result in [json!({ "action": "accept" }), json!({ "action": "accept", "content": { "x": 1 } })] {
        assert_eq!(answer::<()>(&result), Ok(Answer::Accept(())));
        assert!(matches!(answer::<Nothing>(&result), Ok(Answer::Accept(Nothing {}))));
    }
    let optional = answer::<fixture::Defaults>(&json!({ "action": "accept" }));
    assert!(matches!(optional, Ok(Answer::Accept(_))));
}

/// Types that do not fit into a form.
mod misfit {
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    pub(super) struct With<T> {
        name: String,
        part: T,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    pub(super) struct Inner {
        street: String,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    pub(super) enum Data {
        Nothing,
        Something(u8),
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    pub(super) struct Flat {
        name: String,
        #[serde(flatten)]
        inner: Inner,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    pub(super) struct Open {
        name: String,
        #[serde(flatten)]
        rest: HashMap<String, String>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    pub(super) struct Tree {
        child: Option<Box<Tree>>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    pub(super) struct Names {
        #[schemars(extend("enumNames" = ["One"]))]
        choice: fixture::Plain,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    pub(super) struct Strict {
        pub(super) name: String,
    }

    pub(super) type Map = BTreeMap<String, u8>;
}

#[test]
fn types_that_do_not_fit_into_a_form_are_refused_by_name() {
    use misfit::*;

    let cases = [
        (unfit::<With<Inner>>(), "its field `part` is a struct"),
        (unfit::<With<Option<Inner>>>(), "its field `part` is a struct"),
        (unfit::<With<Map>>(), "its field `part` is a map"),
        (unfit::<With<Vec<String>>>(), "its field `part` is a list whose items are not an enum"),
        (unfit::<With<Vec<Inner>>>(), "its field `part` is a list whose items are not an enum"),
        (unfit::<With<Data>>(), "its field `part` is an enum with data"),
        (unfit::<With<(u8, u8)>>(), "its field `part` is a tuple"),
        (unfit::<With<Value>>(), "its field `part` is any value"),
        (unfit::<With<()>>(), "its field `part` is nothing"),
        (unfit::<Data>(), "it is an enum with data"),
        (unfit::<Vec<String>>(), "it is a list whose items are not an enum"),
        (unfit::<Option<Inner>>(), "it is a struct"),
        (unfit::<Value>(), "any value"),
        (unfit::<Map>(), "members of any name"),
        (unfit::<Open>(), "members of any name"),
        (unfit::<Tree>(), "its field `child` is"),
        (unfit::<Names>(), "its field `choice` is an enum whose `enumNames` are not 3 strings"),
    ];
    for (text, expected) in cases {
        assert!(text.contains(expected), "{expected}: {text}");
        assert!(text.contains("forms have strings"), "{text}");
    }
    let flat = schema::<Flat>(NOW);
    assert_eq!(flat["required"], json!(["name", "street"]));
    assert_eq!(accept::<Strict>(&json!({ "name": "a", "extra": 1 })).expect("value").name, "a");
}

#[test]
fn forms_are_downgraded_to_2025_06_18() {
    let old = Revision::V2025_06_18;
    assert_eq!(
        params::<fixture::Defaults>(old),
        json!({ "message": "why", "requestedSchema": { "type": "object", "properties": {
            "name": { "type": "string" },
            "age": { "type": "integer" },
            "score": { "type": "number" },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"] },
            "verified": { "type": "boolean", "default": true },
        }}})
    );
    assert_eq!(
        schema::<fixture::Titled>(old)["properties"]["value"],
        json!({ "type": "string", "enum": ["value1", "value2", "value3"],
            "enumNames": ["First Option", "Second Option", "Third Option"] })
    );
    let several = form::<Vec<fixture::Plain>>().params("why", old);
    assert_eq!(several, Err(ClientRequestError::Revision("fields for several values of a list")));
    // content is checked against the whole schema, not what this client was sent
    assert!(accept::<fixture::Defaults>(&json!({ "status": "gone" })).is_err());
}

#[test]
fn revisions_before_elicitation_are_refused() {
    for &revision in Revision::ALL {
        let form = form::<bool>().params("why", revision);
        assert_eq!(form.is_ok(), revision >= Revision::V2025_06_18, "{revision}");
        let url = url_params("key", "why", "https://example.com", "id", revision);
        assert_eq!(url.is_ok(), revision >= Revision::V2025_11_25, "{revision}");
    }
}

#[test]
fn only_2025_11_25_has_elicitation_ids() {
    let url = |revision| -> Value {
        let params = url_params("key", "why", "https://example.com/a", "id-1", revision).expect("params");
        serde_json::from_slice(&params).expect("json")
    };
    let mut expected = json!({ "mode": "url", "message": "why", "url": "https://example.com/a" });
    assert_eq!(url(NOW), expected);
    expected["elicitationId"] = "id-1".into();
    assert_eq!(url(Revision::V2025_11_25), expected);
}

#[test]
fn answers_name_their_action() {
    assert_eq!(Answer::Accept(1).action(), "accept");
    assert_eq!(Answer::<u8>::Decline.action(), "decline");
    assert_eq!(Answer::<u8>::Cancel.action(), "cancel");
    assert_eq!((Answer::Accept(1).accepted(), Answer::<u8>::Cancel.accepted()), (Some(1), None));
}
