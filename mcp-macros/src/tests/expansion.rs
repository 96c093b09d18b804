//! Whole expansions: their order and size, services, types and `main`.

use super::*;
use crate::attribute::{main_, service, type_};

#[test]
fn independent_errors_are_all_reported() {
    let expansion = tool(
        r#"titel = "x", name = "a b", timeout = 5"#,
        "unsafe fn x<T>(a: &str, #[mcp(rnage(1..2))] b: u32) -> &u8 {}",
    );
    assert_eq!(messages(&expansion).len(), 8, "{:#?}", messages(&expansion));
}

#[test]
fn the_function_is_always_first_and_without_helper_attributes() {
    for options in ["", "nonsense"] {
        let expansion = tool(
            options,
            r#"#[doc = " Docs stay."] pub async fn x( #[doc = " gone"] #[mcp(default)] a: u32, #[cfg(all())] b: &Db, ) -> u32 { if 1 }"#,
        );
        let start = "#[allow(clippy::needless_pass_by_value,clippy::too_many_arguments,clippy::unused_async)]#[doc=\"Docsstay.\"]\
                     pubasyncfnx(a:u32,#[cfg(all())]b:&Db,)->u32{if1}";
        assert!(flat(&expansion).starts_with(start), "{}", flat(&expansion));
    }
    // A function whose header cannot be parsed is emitted as well.
    let expansion = tool("", r#"fn x(#[mcp(default)] a: u32, #[doc = "b"] 5) {}"#);
    assert!(flat(&expansion).starts_with("fnx(a:u32,5){}"), "{}", flat(&expansion));
    assert_eq!(messages(&expansion).len(), 1);
}

#[test]
fn after_an_error_the_marker_can_be_registered() {
    let text = flat(&tool("nonsense", "pub fn x() {}"));
    assert!(text.contains("pubstructx{}"), "{text}");
    assert!(text.contains("ToolDescriptor::EMPTY"), "{text}");
    assert!(!text.contains("submit"), "{text}");
    // A struct inside an impl would be a second error.
    assert!(!flat(&tool("", "fn x(&self) {}")).contains("struct"));
}

#[test]
fn services_report_their_errors() {
    assert_errors(
        &[
            ("impl X {}", "no method of this `impl` is annotated"),
            ("impl Y for X { #[mcp_tool] fn a(&self) {} }", "an inherent `impl`"),
            ("impl<T> X<T> { #[mcp_tool] fn a(&self) {} }", "cannot be generic"),
            ("impl X { #[mcp_tool] fn a(self) {} }", "take `&self`"),
            ("impl X { #[mcp_tool] fn a(&mut self) {} }", "take `&self`"),
            ("impl X { #[mcp_tool] fn a<'a>(&'a self) {} }", "cannot have lifetime parameters"),
            ("impl X { #[mcp_tool] fn a(&'static self) {} }", "take `&self`"),
            ("impl X { #[mcp_tool(crate = a)] fn a(&self) {} }", "`crate` is an option of the service"),
            ("impl X { #[mcp_tool = 1] fn a(&self) {} }", "go into parentheses"),
            ("impl X { #[mcp_tool] #[mcp_prompt] fn a(&self) {} }", "on the same function"),
            ("struct X;", "belongs to an `impl` block"),
        ],
        |block| service::expand(tokens(""), &tokens(block)),
    );
    let block = r#"
impl X {
            const A: fn() = { b };
            fn plain(&self) { a. }
            #[mcp_tool] fn tool(&self, #[mcp(default = Self::A)] a: Self) -> Self { if 1 }
            #[cfg(any())] #[mcp_runtime::mcp_resource(uri = "a://b")] async fn page() -> String {}
            macro_call! {}
        }"#;
    let expansion = service::expand(tokens("crate = renamed"), &tokens(block));
    assert_no_error(&expansion);
    let text = flat(&expansion);
    assert!(text.starts_with("implX{constA:fn()={b};fnplain(&self){a.}#[allow("), "{text}");
    assert!(text.contains("macro_call!{}}"), "{text}");
    assert!(text.contains("renamed::__private"), "{text}");
    assert!(text.contains("ArgDescriptor<X>") && text.contains("<X>::A"), "{text}");
    let block = "impl X { #[mcp_tool(output = Self)] fn tool(&self) -> Option<Self> {} }";
    let text = flat(&service::expand(tokens(""), &tokens(block)));
    assert!(text.contains("OutputType::of::<X,Option<X>>()"), "{text}");
}

#[test]
fn types_and_main_report_their_errors() {
    assert_one_error(&type_::expand(tokens(""), &tokens("fn x() {}")), "a `struct` or an `enum`");
    assert_one_error(
        &type_::expand(tokens(""), &tokens("#[derive(Debug, serde::Serialize)] struct X;")),
        "derives `Serialize`",
    );
    assert_one_error(&type_::expand(tokens("krate = x"), &tokens("struct X;")), "did you mean `crate`?");
    let text = flat(&type_::expand(tokens("crate = a::b"), &tokens("pub enum X { A, }")));
    assert!(text.contains("#[serde(crate=\"a::b::__private::serde\")]"), "{text}");
    assert!(text.contains("impl__rt::HeaderArgforX{}"), "{text}");
    // the derives are on a copy, which has the attributes that they read
    let item =
        r#"#[derive(Clone)] #[clap(x)] pub struct X { #[clap(y)] #[serde(default)] pub a: Vec<Self> }"#;
    let text = flat(&type_::expand(tokens(""), &tokens(item)));
    assert!(text.contains("TypeAttributes)]#[derive(Clone)]#[clap(x)]pubstructX{#[clap(y)]"), "{text}");
    assert!(text.contains("struct__McpXwhere<[();__FIELDS]"), "{text}");
    assert!(text.contains("{#[serde(default)]a:Vec<X>}"), "{text}");
    // unless the copy could not be the same
    for item in [
        "struct X<T> { a: T }",
        "#[serde(transparent)] struct X(u32);",
        r#"#[serde(rename = "Y")] struct X(u32);"#,
        r#"#[serde(from = "Y")] struct X(u32);"#,
        r#"struct X { #[serde(default = "Self::a")] a: u32 }"#,
        "struct X { #[cfg_attr(x, serde(default), clap(y))] a: u32 }",
    ] {
        let text = flat(&type_::expand(tokens(""), &tokens(item)));
        assert!(text.contains("#[derive(::mcp_runtime::__private::serde::Serialize,"), "{text}");
        assert!(!text.contains("__McpX"), "{text}");
    }

    assert_one_error(&main_::expand(tokens(""), &tokens("fn main() {}")), "add `async`");
    assert_one_error(&main_::expand(tokens(""), &tokens("async fn main(a: u32) {}")), "takes no parameters");
    assert_one_error(&main_::expand(tokens(""), &tokens("struct X;")), "belongs to `async fn main()`");
    let text = flat(&main_::expand(tokens(""), &tokens("#[allow(x)] async fn main() -> R { body }")));
    assert_eq!(text, "#[allow(x)]fnmain()->R{::mcp_runtime::__private::block_on(asyncmove{body})}");
}

#[test]
fn two_fields_of_one_name_are_an_error() {
    for item in [
        r#"struct F { #[serde(rename = "b")] a: String, b: String }"#,
        r#"struct F { #[serde(rename(serialize = "x", deserialize = "b"))] a: String, b: Option<String> }"#,
        r#"#[serde(rename_all = "camelCase")] struct F { foo_bar: u8, #[serde(rename = "fooBar")] x: u8 }"#,
        r#"#[serde(rename_all_fields = "kebab-case")] enum E { A { a_b: u8, #[serde(rename = "a-b")] x: u8 } }"#,
        r#"struct F { r#type: u8, #[serde(rename = "type")] x: u8 }"#,
    ] {
        assert_one_error(&type_::expand(tokens(""), &tokens(item)), "two fields are named `");
    }
    for item in [
        r#"struct F { #[serde(rename(serialize = "b"))] a: String, b: String }"#,
        r#"struct F { #[serde(skip, rename = "b")] a: String, b: String }"#,
        r#"struct F { #[cfg(a)] #[serde(rename = "b")] a: String, b: String }"#,
        r#"enum E { A { a: u8 }, B { a: u8 }, C(u8, u8) }"#,
        r#"struct F { a: u8, a_: u8 }"#,
    ] {
        assert_no_error(&type_::expand(tokens(""), &tokens(item)));
    }
}

#[test]
fn attributes_of_fields_that_are_wrong_are_one_error() {
    assert_errors(
        &[
            ("struct X { #[mcp(range(1..=5))] a: u32 }", "write `#[schemars(range(min = 1, max = 5))]`"),
            ("struct X { #[mcp(range(-1..5))] a: i32 }", "write `#[schemars(range(min = -1, max = 4))]`"),
            ("struct X { #[mcp(range(0.5..))] a: f64 }", "write `#[schemars(range(min = 0.5))]`"),
            ("struct X { #[mcp(length(8))] a: String }", "write `#[schemars(length(equal = 8))]`"),
            (r#"struct X { #[mcp(pattern = "a")] a: String }"#, r#"`#[schemars(regex(pattern = "a"))]`"#),
            ("struct X { #[mcp(default)] a: u32 }", "write `#[serde(default)]`"),
            ("struct X { #[mcp(default = 5)] a: u32 }", "a function that returns `5`"),
            (r#"enum X { #[mcp(name = "b")] A }"#, "write `#[serde(rename = \"b\")]`"),
            ("enum X { A { #[mcp(flatten)] b: Y } }", "write `#[serde(flatten)]`"),
            ("struct X(#[mcp(x)] u32);", "write `#[serde(..)]` or `#[schemars(..)]`"),
        ],
        |item| type_::expand(tokens(""), &tokens(item)),
    );
    // the derives report words that they do not know
    assert_no_error(&type_::expand(tokens(""), &tokens("struct X { #[serde(colour)] a: u32 }")));
}

/// A future is a state machine that is compiled for every item of every user.
#[test]
fn only_a_function_that_borrows_has_a_future_around_its_own() {
    for (options, function, has_future) in [
        ("", "async fn x(a: u32, #[cfg(b)] b: Option<u8>) -> u32 {}", false),
        ("", "async fn x() {}", false),
        ("", "async fn x(a: u32, db: &Db) -> u32 {}", true),
        ("", "async fn x(db: Option<&Db>) -> u32 {}", true),
        ("", "async fn x(#[mcp(inject)] tx: Tx) -> u32 {}", true),
        ("task", "async fn x(a: u32) -> u32 {}", true),
        ("", "fn x(a: u32, db: &Db) -> u32 {}", false),
        ("", "fn x(#[mcp(inject)] tx: Tx) -> u32 {}", true),
    ] {
        let text = flat(&tool(options, function));
        assert_eq!(text.contains("asyncmove"), has_future, "{text}");
    }
    for (function, has_future) in [("async fn x(&self) {}", true), ("async fn x(a: u32) {}", false)] {
        let text =
            flat(&service::expand(tokens(""), &tokens(&format!("impl S {{ #[mcp_tool] {function} }}"))));
        assert_eq!(text.contains("asyncmove"), has_future, "{text}");
    }
}

/// The size of an expansion is compile time for every tool of every user.
#[test]
fn an_expansion_stays_small() {
    fn count(tokens: TokenStream) -> usize {
        tokens
            .into_iter()
            .map(|token| match token {
                TokenTree::Group(group) => 2 + count(group.stream()),
                _ => 1,
            })
            .sum()
    }
    let function = "
/// Search the catalogue.
        async fn search(
            /// Words
            #[mcp(length(1..=200))] query: String,
            #[mcp(default = 10, range(1..=100))] limit: u32,
            db: &Db, ctx: &Context, who: Option<&Principal>, #[mcp(inject)] tx: Tx,
        ) -> Result<Json<Vec<Hit>>, MyErr> {}";
    let size = count(tool(r#"read_only, timeout = "5s""#, function));
    assert!((400..=960).contains(&size), "{size} tokens");
    let smallest = count(tool("", "fn ping() {}"));
    assert!((150..=340).contains(&smallest), "{smallest} tokens");
}
