//! `#[mcp_config]`: every option is accepted, every mistake is one error, and the struct is always emitted.

use super::*;
use crate::attribute::config;

fn settings(options: &str, item: &str) -> TokenStream {
    config::expand(tokens(options), &tokens(item))
}

#[test]
fn every_option_of_settings_is_accepted() {
    assert_no_error(&settings(
        r#"name = "my-server_2", crate = a::b"#,
        r#"
        /// Settings
        #[derive(Debug, Clone)]
        pub(crate) struct Settings {
            /// Where
            #[mcp(name = "place", title = "T", default = "a", example = "b", pattern = "^a", length(1..=9), one_of("a", "b"))]
            a: String,
            #[mcp(description = "d", range(1..), flag = "bee", env = "_BEE2")]
            pub b: Option<u32>,
            #[mcp(secret)]
            #[cfg(unix)]
            c: Secret<String>,
            #[mcp(default = "5s")] d: Duration,
            #[serde(flatten)] e: Common,
            #[mcp(flatten)] f: Others,
        }"#,
    ));
    assert_no_error(&settings("", "struct Settings {}"));
}

#[test]
fn a_mistake_in_settings_is_one_error_and_the_struct_has_no_helper_attributes() {
    let cases = [
        ("", "enum Settings { A { #[mcp(secret)] a: u8 } }", "belongs to a `struct` with named fields"),
        ("", "fn settings() {}", "belongs to a `struct` with named fields"),
        ("", "struct Settings(#[mcp(secret)] u8);", "write `{ name: T }`"),
        ("", "struct Settings;", "settings need fields"),
        ("", "struct Settings<T> { #[mcp(default)] a: T }", "settings cannot be generic"),
        ("", "struct Settings { #[mcp(defualt)] a: u8 }", "did you mean `default`?"),
        (
            "",
            "struct Settings { #[mcp(header = \"A\")] a: u8 }",
            "unknown option `header` of a setting's `#[mcp(..)]`",
        ),
        ("", "struct Settings { #[mcp] a: u8 }", "`#[mcp]` has no options"),
        ("", "struct Settings { #[mcp(flag = \"--a\")] a: u8 }", "`flag = \"a\"`"),
        (
            "",
            "struct Settings { #[mcp(flag = \"http\")] a: u8 }",
            "is an option of every server's command line",
        ),
        ("", "struct Settings { #[mcp(env = \"A-B\")] a: u8 }", "is not the name of an environment variable"),
        ("", "struct Settings { #[mcp(name = \"a b\")] a: u8 }", "cannot be the key of a setting"),
        ("", "struct Settings { a: u8, #[mcp(name = \"a\")] b: u8 }", "two settings are named `a`"),
        (
            "",
            "struct Settings { #[mcp(flatten, default)] a: A }",
            "`default` cannot be combined with `flatten`",
        ),
        ("", "struct Settings { #[serde(rename = \"b\")] a: u8 }", "write `#[mcp(name = \"..\")]`"),
        ("", "struct Settings { #[schemars(range(min = 1))] a: u8 }", "write `#[mcp(range(1..=100))]`"),
        ("", "#[serde(rename_all = \"kebab-case\")] struct Settings { a: u8 }", "has no effect on settings"),
        ("", "#[derive(Debug, Deserialize)] struct Settings { a: u8 }", "derives `Deserialize` already"),
        ("", "struct Settings { a: &'static str }", "a setting owns its value"),
        ("", "struct Settings { #[cfg_attr(unix, mcp(secret))] a: u8 }", "write the field twice"),
        ("nmae = \"a\"", "struct Settings { a: u8 }", "did you mean `name`?"),
        ("name = \"a b\"", "struct Settings { a: u8 }", "cannot name variables and a file"),
    ];
    for (options, item, part) in cases {
        let expansion = settings(options, item);
        assert_one_error(&expansion, part);
        let expansion = flat(&expansion);
        let expansion = expansion.split("compile_error").next().unwrap();
        assert!(!expansion.contains("#[mcp(") && !expansion.contains("#[serde("), "{expansion}");
    }
}
