//! Descriptions in YAML, which are read as JSON.

use mcp_runtime::serde_json::json;
use mcp_runtime_openapi::OpenApi;

use crate::support::serve;

#[tokio::test]
async fn scalars_keys_and_aliases_are_as_yaml_1_2_says() {
    let yaml = r#"
openapi: 3.1.0
paths:
  /:
    get:
      operationId: call
      parameters:
      - name: p
        in: query
        schema:
          const:
            a: &x {200: yes, b: [1, +2, 0x1F, 1.5, .5, 1e2, ~, true, '1', "n\n"]}
            c: *x
            d: []
            e: {}
            version: 1.2.3
            date: 2026-01-01
            empty:
            long: |
              two
              lines
"#;
    let x = json!({ "200": "yes", "b": [1, 2, 31, 1.5, 0.5, 100.0, null, true, "1", "n\n"] });
    let expected = json!({
        "a": x, "c": x, "d": [], "e": {}, "version": "1.2.3", "date": "2026-01-01", "empty": null,
        "long": "two\nlines\n",
    });
    let api = OpenApi::parse(yaml).expect("a description").server("https://x.example");
    assert_eq!(serve(api).list_tools().await[0]["inputSchema"]["properties"]["p"]["const"], expected);
}

/// Why a description is refused.
fn error(yaml: &str) -> String {
    OpenApi::parse(yaml).expect_err(yaml).to_string()
}

#[test]
fn aliases_that_multiply_and_values_that_contain_themselves_are_refused() {
    let mut bomb = "l0: &l0 [xxxxxxxxxxxxxxxxxxxxxxxx]\n".to_owned();
    for level in 1..30 {
        bomb.push_str(&format!("l{level}: &l{level} [*l{0}, *l{0}, *l{0}]\n", level - 1));
    }
    assert!(error(&bomb).contains("repeat too much"));
    assert!(error("a: &a [*a]").contains("contains it"));
    let deep = format!("{}{}", "[".repeat(150), "]".repeat(150));
    assert!(error(&deep).contains("levels deep"));
}

#[test]
fn what_json_cannot_say_is_an_error_with_its_line() {
    for (yaml, expected) in [
        ("a: 1\nb: !x 2", "line 2: a tag"),
        ("c:\n  <<: {b: 1}", "line 2: `<<`"),
        ("a: &a [1]\nc:\n  <<: *a", "line 3: `<<`"),
        ("a: &a {b: *a}", "contains it"),
        ("a: 1\n? [b]\n: 2", "line 2: a key"),
        ("a: 'x", "it is not YAML"),
        ("", "empty"),
    ] {
        let found = error(yaml);
        assert!(found.contains(expected), "{yaml}: {found}");
    }
}

#[tokio::test]
async fn merged_keys_are_those_that_a_mapping_does_not_have() {
    let yaml = r#"
openapi: 3.1.0
paths:
  /:
    get:
      operationId: call
      parameters:
      - name: p
        in: query
        schema:
          const:
            a: &a {x: 1, y: [1, 2]}
            b: &b {x: 2, z: {w: 3}}
            c: {<<: *a, x: 3}
            d: {x: 4, <<: [*b, *a]}
            e: {<<: *a}
            f: &f {'<<': 5, <<: [*b]}
            g: {<<: *f}
"#;
    let expected = json!({
        "a": { "x": 1, "y": [1, 2] }, "b": { "x": 2, "z": { "w": 3 } },
        "c": { "x": 3, "y": [1, 2] }, "d": { "x": 4, "z": { "w": 3 }, "y": [1, 2] }, "e": { "x": 1, "y": [1, 2] },
        "f": { "<<": 5, "x": 2, "z": { "w": 3 } }, "g": { "<<": 5, "x": 2, "z": { "w": 3 } },
    });
    let api = OpenApi::parse(yaml).expect("a description").server("https://x.example");
    assert_eq!(serve(api).list_tools().await[0]["inputSchema"]["properties"]["p"]["const"], expected);
    // merged again and again without a new key, or with one
    let members: String = (0..20_000).map(|number| format!("k{number}: 1, ")).collect();
    let merges = |count: usize| vec!["*a"; count].join(", ");
    for bomb in [
        format!("a: &a {{{members}}}\nb: {{<<: [{}]}}", merges(2_000)),
        format!("a: &a {{{members}}}\nb: [{}]", vec!["{<<: *a}"; 200].join(", ")),
    ] {
        assert!(error(&bomb).contains("repeat too much"));
    }
}
