//! Every kind of change with its class, in both directions where that differs.

use std::fs;

use super::{
    ChangeClass::{Additive, Breaking, Cosmetic, Routing},
    *,
};

/// A server, as its lists have it.
fn described() -> Value {
    json!({
        "server": { "name": "shop", "version": "1" },
        "instructions": "Search first.",
        "capabilities": { "tools": { "listChanged": true }, "prompts": {}, "resources": { "subscribe": true } },
        "tools": [{
            "name": "search",
            "title": "Search",
            "description": "Finds products.",
            "icons": [{ "src": "data:," }],
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
            "execution": { "taskSupport": "optional" },
            "inputSchema": {
                "type": "object",
                "properties": {
                    "words": { "type": "string", "maxLength": 100, "description": "What to find" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 50, "default": 10 },
                    "sort": { "type": "string", "enum": ["price", "name"] },
                    "region": { "type": "string", "x-mcp-header": "Region" },
                    "tags": { "type": "array", "items": { "type": "string" } },
                    "price": { "$ref": "#/$defs/Range" },
                    "note": { "type": ["string", "null"] },
                    "kind": { "oneOf": [
                        { "type": "object", "properties": { "is": { "const": "book" }, "pages": { "type": "integer" } }, "required": ["is"] },
                        { "type": "object", "properties": { "is": { "const": "tea" } }, "required": ["is"] },
                    ] },
                },
                "required": ["words"],
                "additionalProperties": false,
                "$defs": { "Range": {
                    "type": "object",
                    "properties": { "from": { "type": "number" }, "next": { "$ref": "#/$defs/Range" } },
                } },
            },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "count": { "type": "integer", "minimum": 0 },
                    "state": { "type": "string", "enum": ["full", "part"] },
                    "more": { "type": "string" },
                },
                "required": ["count", "state"],
            },
        }],
        "prompts": [{
            "name": "review", "description": "Reviews.",
            "arguments": [{ "name": "file", "required": true, "description": "Which" }, { "name": "depth" }],
        }],
        "resources": [
            { "uri": "shop://menu", "name": "menu", "mimeType": "text/plain", "size": 5 },
            { "uri": "shop://item/7", "name": "seven" },
        ],
        "resourceTemplates": [{ "uriTemplate": "shop://item/{id}", "name": "item", "mimeType": "text/plain" }],
        "events": [{
            "name": "sold", "delivery": ["poll", "push"],
            "inputSchema": { "type": "object", "properties": { "id": { "type": "string" } } },
            "payloadSchema": { "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] },
        }],
    })
}

const TOOL: &str = "/tools/0";
const INPUT: &str = "/tools/0/inputSchema/properties";
const OUTPUT: &str = "/tools/0/outputSchema";

/// The same server with the value at a pointer set; null removes it.
fn with(changes: &[(&str, Value)]) -> Value {
    let mut all = described();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        match all.pointer_mut(parent).expect("a place") {
            Value::Object(members) if value.is_null() => {
                members.remove(key).expect("a member");
            }
            Value::Object(members) => {
                members.insert(key.to_owned(), value.clone());
            }
            Value::Array(items) if key == "-" => items.push(value.clone()),
            Value::Array(items) if value.is_null() => {
                items.remove(key.parse().expect("an index"));
            }
            other => panic!("{pointer}: {other}"),
        }
    }
    all
}

fn changes(older: &Value, newer: &Value) -> ContractChanges {
    Contract::of_lists(older).compare(&Contract::of_lists(newer))
}

#[test]
fn each_change_has_the_class_of_what_it_does_to_models_and_clients() {
    let i = |path: &str| format!("{INPUT}/{path}");
    let t = |path: &str| format!("{TOOL}/{path}");
    let o = |path: &str| format!("{OUTPUT}/{path}");
    // pointer, new value, class of the change, and that of taking it back
    let table: Vec<(String, Value, ChangeClass, ChangeClass)> = vec![
        // tools
        ("/tools/0".into(), Value::Null, Breaking, Additive),
        ("/tools/-".into(), json!({ "name": "b", "inputSchema": {} }), Additive, Breaking),
        (t("description"), json!("Finds goods."), Routing, Routing),
        (t("title"), json!("Find"), Cosmetic, Cosmetic),
        (t("_meta"), json!({ "a": 1 }), Cosmetic, Cosmetic),
        (t("annotations/readOnlyHint"), json!(false), Breaking, Additive),
        (t("annotations/openWorldHint"), json!(true), Breaking, Additive),
        (t("annotations/openWorldHint"), Value::Null, Breaking, Additive),
        (t("execution/taskSupport"), json!("required"), Breaking, Additive),
        (t("execution"), Value::Null, Breaking, Additive),
        (t("outputSchema"), Value::Null, Breaking, Additive),
        // arguments
        (i("limit"), Value::Null, Breaking, Additive),
        (i("page"), json!({ "type": "integer" }), Additive, Breaking),
        ("/tools/0/inputSchema/required/-".into(), json!("limit"), Breaking, Additive),
        (i("limit/type"), json!("number"), Additive, Breaking),
        (i("words/type"), json!("integer"), Breaking, Breaking),
        (i("limit/default"), json!(20), Routing, Routing),
        (i("words/description"), json!("Which"), Routing, Routing),
        (i("words/format"), json!("email"), Cosmetic, Cosmetic),
        (i("sort/enum"), json!(["price"]), Breaking, Additive),
        (i("sort/enum"), json!(["price", "name", "age"]), Additive, Breaking),
        (i("sort/enum"), Value::Null, Additive, Breaking),
        (i("limit/maximum"), json!(20), Breaking, Additive),
        (i("limit/minimum"), json!(0), Additive, Breaking),
        (i("limit/maximum"), Value::Null, Additive, Breaking),
        (i("words/maxLength"), json!(50), Breaking, Additive),
        (i("words/pattern"), json!("^a"), Breaking, Additive),
        (i("region/x-mcp-header"), Value::Null, Additive, Breaking),
        (i("region/x-mcp-header"), json!("Place"), Breaking, Breaking),
        (i("tags/items/type"), json!("integer"), Breaking, Breaking),
        (i("tags/maxItems"), json!(3), Breaking, Additive),
        (i("note/type"), json!("string"), Breaking, Additive),
        (i("note"), json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), Cosmetic, Cosmetic),
        ("/tools/0/inputSchema/required".into(), json!(["words", "other"]), Breaking, Additive),
        ("/tools/0/execution/more".into(), json!(1), Cosmetic, Cosmetic),
        ("/capabilities/tools/listChanged".into(), json!({ "a": 1 }), Cosmetic, Cosmetic),
        (i("kind/oneOf/0"), Value::Null, Breaking, Additive),
        (i("kind/oneOf/0/properties/pages"), Value::Null, Breaking, Additive),
        (i("kind/oneOf/-"), json!({ "const": "any" }), Additive, Breaking),
        ("/tools/0/inputSchema/$defs/Range/required".into(), json!(["from"]), Breaking, Additive),
        (
            "/tools/0/inputSchema/$defs/Range/properties/from/type".into(),
            json!("integer"),
            Breaking,
            Additive,
        ),
        ("/tools/0/inputSchema/additionalProperties".into(), Value::Null, Additive, Breaking),
        ("/tools/0/inputSchema/if".into(), json!({ "required": ["limit"] }), Breaking, Breaking),
        // results
        (o("properties/more"), Value::Null, Breaking, Additive),
        (o("properties/new"), json!({ "type": "string" }), Additive, Breaking),
        (o("required/1"), Value::Null, Breaking, Additive),
        (o("properties/state/enum"), json!(["full", "part", "none"]), Breaking, Additive),
        (o("properties/state/enum"), json!(["full"]), Additive, Breaking),
        (o("properties/count/type"), json!("number"), Breaking, Additive),
        (o("properties/count/type"), json!(["integer", "null"]), Breaking, Additive),
        (o("properties/count/minimum"), Value::Null, Breaking, Additive),
        // prompts
        ("/prompts/0".into(), Value::Null, Breaking, Additive),
        ("/prompts/0/arguments/1".into(), Value::Null, Breaking, Additive),
        ("/prompts/0/arguments/1/required".into(), json!(true), Breaking, Additive),
        ("/prompts/0/arguments/-".into(), json!({ "name": "a", "required": true }), Breaking, Breaking),
        ("/prompts/0/arguments/0/description".into(), json!("File"), Routing, Routing),
        // resources
        ("/resources/0".into(), Value::Null, Breaking, Additive),
        ("/resources/0/mimeType".into(), json!("text/html"), Breaking, Breaking),
        ("/resources/0/name".into(), json!("card"), Cosmetic, Cosmetic),
        ("/resourceTemplates/0/uriTemplate".into(), json!("shop://item/{key}/now"), Breaking, Breaking),
        // events
        ("/events/0".into(), Value::Null, Breaking, Additive),
        ("/events/0/delivery/1".into(), Value::Null, Breaking, Additive),
        ("/events/0/payloadSchema/required".into(), Value::Null, Breaking, Additive),
        // the server
        ("/instructions".into(), json!("Buy first."), Routing, Routing),
        ("/server/name".into(), json!("store"), Cosmetic, Cosmetic),
        ("/capabilities/prompts".into(), Value::Null, Breaking, Additive),
        ("/capabilities/resources/subscribe".into(), json!(false), Breaking, Additive),
    ];
    for (pointer, value, class, back) in &table {
        let newer = with(&[(pointer, value.clone())]);
        let forth = changes(&described(), &newer);
        assert!(forth.class() == Some(*class), "{pointer} = {value}: {forth}");
        let again = changes(&newer, &described());
        assert!(again.class() == Some(*back), "back from {pointer} = {value}: {again}");
    }
    assert!(table.len() > 50);
}

#[test]
fn a_change_is_reported_in_one_line_that_says_what_was_written() {
    let texts = |newer: &Value, older: &Value| -> Vec<String> {
        changes(older, newer).changes.into_iter().map(|change| change.text).collect()
    };
    let older = described();
    let newer = with(&[(&format!("{TOOL}/annotations/readOnlyHint"), Value::Null)]);
    assert_eq!(texts(&newer, &older), ["its annotation `readOnlyHint` is weaker: it was true"]);
    assert_eq!(texts(&older, &newer), ["its annotation `readOnlyHint` is true now"]);
    // between tools that change something, both count
    let hints = |is_destructive: bool, is_idempotent: bool| json!({ "destructiveHint": is_destructive, "idempotentHint": is_idempotent });
    let careful = with(&[(&format!("{TOOL}/annotations"), hints(false, true))]);
    let careless = with(&[(&format!("{TOOL}/annotations"), hints(true, false))]);
    assert_eq!(
        texts(&careless, &careful),
        [
            "its annotation `destructiveHint` is weaker: it was false",
            "its annotation `idempotentHint` is weaker: it was true"
        ]
    );
    for (path, what) in [
        ("tags/items/type", "`tags[]`: was string, and is integer"),
        ("words/type", "`words`: was string, and is integer"),
    ] {
        let newer = with(&[(&format!("{INPUT}/{path}"), json!("integer"))]);
        assert_eq!(texts(&newer, &older), [what]);
    }
    let newer = with(&[(&format!("{OUTPUT}/properties/count/type"), json!("string"))]);
    assert_eq!(texts(&newer, &older), ["`outputSchema.count`: was integer, and is string"]);
}

#[test]
fn what_may_differ_from_day_to_day_is_not_in_the_contract() {
    let newer = with(&[
        ("/server/version", json!("2")),
        ("/tools/0/icons", Value::Null),
        ("/resources/0/size", json!(99)),
        ("/resources/1", Value::Null),
        ("/resources/-", json!({ "uri": "shop://item/8", "name": "eight" })),
    ]);
    let found = changes(&described(), &newer);
    assert!(found.changes.is_empty() && found.class().is_none(), "{found}");
    assert_eq!(found.to_string(), "nothing has changed");
}

#[test]
fn a_report_has_the_most_important_changes_first_and_a_verdict() {
    let newer = with(&[
        (&format!("{INPUT}/limit/maximum"), json!(20)),
        (&format!("{TOOL}/title"), json!("Find")),
        ("/tools/-", json!({ "name": "b", "inputSchema": {} })),
    ]);
    let report = changes(&described(), &newer).to_string();
    let expected = "\
breaking  tool search: `limit`: its `maximum` was 50, and is 20
additive  tool b: is new
cosmetic  tool search: its `title` has changed
the contract has breaking changes: a major version";
    assert_eq!(report, expected);
}

#[test]
fn settings_and_scopes_count_only_if_both_contracts_know_them() {
    let own = |required: &[&str], properties: &Value, scopes: &[&str]| {
        let mut contract = Contract::of_lists(&described());
        let settings = json!({ "required": required, "properties": properties });
        contract.add_own(Some(&settings), &[("search".to_owned(), json!(scopes))].into_iter().collect());
        contract
    };
    let timeout = json!({ "type": "integer", "maximum": 60, "x-env": "SHOP_TIMEOUT" });
    let old = own(&[], &json!({ "timeout": timeout }), &["read"]);
    for (newer, class) in [
        (own(&[], &json!({ "timeout": timeout }), &["read", "write"]), Breaking),
        (own(&[], &json!({ "timeout": timeout }), &[]), Additive),
        (own(&["timeout"], &json!({ "timeout": timeout }), &["read"]), Breaking),
        (own(&["key"], &json!({ "timeout": timeout, "key": {} }), &["read"]), Breaking),
        (own(&[], &json!({ "timeout": timeout, "key": {} }), &["read"]), Additive),
        (own(&[], &json!({}), &["read"]), Breaking),
        (
            own(&[], &json!({ "timeout": { "type": "integer", "maximum": 60, "x-env": "T" } }), &["read"]),
            Breaking,
        ),
        (
            own(
                &[],
                &json!({ "timeout": { "type": "integer", "maximum": 90, "x-env": "SHOP_TIMEOUT" } }),
                &["read"],
            ),
            Additive,
        ),
    ] {
        assert_eq!(old.compare(&newer).class(), Some(class), "{}", old.compare(&newer));
    }
    let listed = Contract::of_lists(&described());
    assert!(old.compare(&listed).changes.is_empty() && listed.compare(&old).changes.is_empty());
    assert!(old.is_of_program() && !listed.is_of_program());
    // as the command line of a program prints them
    let mut printed = described();
    printed["scopes"] = json!({ "search": ["read"] });
    printed["settings"] = json!({ "properties": { "timeout": timeout } });
    assert_eq!(Contract::of_lists(&printed), own(&[], &json!({ "timeout": timeout }), &["read"]));
}

#[test]
fn a_file_is_canonical_has_one_line_an_item_and_is_read_again() {
    let contract = Contract::of_lists(&described());
    let text = contract.text();
    assert_eq!(Contract::parse(&text).as_ref(), Ok(&contract));
    for start in [
        "    \"search\": {\"annotations\"",
        "    \"shop://item/{id}\": {",
        "  \"format\": 1,",
        "  \"tools\": {",
    ] {
        assert_eq!(text.lines().filter(|line| line.starts_with(start)).count(), 1, "{start}: {text}");
    }
    assert!(!text.contains("shop://item/7") && !text.contains("icons"), "{text}");
    for (text, error) in [
        ("", "it is not JSON"),
        ("[]", "it is not a contract"),
        ("{}", "it is not a contract"),
        ("{\"format\": 9}", "its format is 9"),
    ] {
        assert!(Contract::parse(text).is_err_and(|found| found.contains(error)), "{text}");
    }
}

#[test]
fn recursive_and_deep_schemas_are_compared_in_bounded_time() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    let mut other = deep.clone();
    let place = "/properties/a".repeat(100);
    other.pointer_mut(&place).expect("a place")["type"] = "integer".into();
    let of = |schema: &Value| json!({ "tools": [{ "name": "t", "inputSchema": schema }] });
    assert_eq!(changes(&of(&deep), &of(&other)).class(), Some(Breaking));
    let circle = json!({ "$ref": "#" });
    assert!(changes(&of(&circle), &of(&circle)).changes.is_empty());
    let loops = |name: &str| {
        json!({ "$ref": "#/$defs/A", "$defs": { "A": { "type": "object", "properties": {
        "next": { "$ref": "#/$defs/A" }, name: { "type": "string" } } } } })
    };
    assert_eq!(changes(&of(&loops("a")), &of(&loops("b"))).class(), Some(Breaking));
}

#[tokio::test]
async fn a_check_in_a_test_fails_if_anything_differs_from_the_file() {
    let server = TestServer::new(crate::ServerBuilder::new("shop", "1", "shop")).expect("a server");
    let server = std::sync::Arc::new(server);
    let folder = std::env::temp_dir().join(format!("mcp-contract-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("mcp.lock.json");
    let newer = server.contract().read().await;
    newer.write(&path).expect("a file");
    server.contract().check(&path).await;
    let with = |name: &str, value: Value| {
        let mut older = newer.clone();
        older.0.insert(name.into(), value);
        older
    };
    for (older, parts) in [
        (
            with("tools", json!({ "gone": { "inputSchema": {} } })),
            ["breaking  tool gone: is gone", "a major version", "if that is meant, `UPDATE_CONTRACT=1"],
        ),
        // what is not in the file could be taken back unseen
        (
            with("instructions", "Other words.".into()),
            [
                "routing   server: its instr",
                "has changes that are not in",
                "\n`UPDATE_CONTRACT=1 cargo test`",
            ],
        ),
        (
            with("server", json!({ "name": "store" })),
            [
                "cosmetic  server: its name",
                "has changes that are not in",
                "a patch version\n`UPDATE_CONTRACT=1",
            ],
        ),
    ] {
        older.write(&path).expect("a file");
        let (server, checked) = (server.clone(), path.clone());
        let failed = tokio::spawn(async move { server.contract().check(checked).await }).await;
        let message = *failed.expect_err("a failure").into_panic().downcast::<String>().expect("a text");
        for part in parts {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    fs::remove_dir_all(&folder).expect("the folder");
}

#[test]
fn the_file_is_replaced_whole_or_not_at_all() {
    let folder = std::env::temp_dir().join(format!("mcp-contract-whole-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("mcp.lock.json");
    let contract = Contract::of_lists(&described());
    contract.write(&path).expect("a file");
    // readers never see a part: all of them see one text or the other
    let (short, long) = (Contract::of_lists(&json!({})), contract.clone());
    let texts = [short.text(), long.text()];
    std::thread::scope(|threads| {
        for contract in [&short, &long] {
            let path = &path;
            threads.spawn(move || (0..50).for_each(|_| contract.write(path).expect("a file")));
        }
        for _ in 0..200 {
            let read = fs::read_to_string(&path).expect("a file");
            assert!(texts.contains(&read), "{read}");
        }
    });
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "temporary files are left");
    // a folder that is not there
    assert!(contract.write(folder.join("no/mcp.lock.json")).is_err());
    fs::remove_dir_all(&folder).expect("the folder");
}
