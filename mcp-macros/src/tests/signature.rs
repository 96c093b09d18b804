//! Signatures and parameters that are not valid for an item.

use super::*;

#[test]
fn a_header_that_is_wrong_is_one_error() {
    assert_errors(
        &[
            ("unsafe fn x() {}", "cannot be `unsafe`"),
            (r#"extern "C" fn x() {}"#, "remove the `extern`"),
            ("fn x(a: u32, ...) {}", "cannot be variadic"),
            ("fn x<T>(a: T) {}", "cannot be generic"),
            ("fn x<'a>(a: &'a Db) {}", "lifetime"),
            ("fn x() where u32: Copy, { }", "`where` clause"),
            ("fn x();", "needs a body"),
            ("fn x() -> ! {}", "must return"),
            ("fn x() -> &str {}", "borrowed"),
            ("fn x(db: &Db) -> &str {}", "borrowed"),
            ("fn x() -> Option<&str> {}", "borrowed"),
            ("fn x() -> impl Display {}", "cannot return `impl Trait`"),
            ("fn x() -> impl Future<Output = u32> {}", "write `async fn .. -> u32`"),
            ("fn x() -> Cow<'_, str> {}", "borrowed"),
            ("fn x(&self) {}", "put `#[mcp_service]` on the `impl`"),
            ("fn x(&self, a: u32);", "a method of a trait cannot be a tool"),
            ("fn x(self: Arc<Self>) {}", "put `#[mcp_service]` on the `impl`"),
            ("#[mcp_tool] fn x() {}", "is duplicated"),
            ("#[mcp_runtime::mcp_prompt] fn x() {}", "on the same function"),
            ("#[mcp(default)] fn x() {}", "belongs to a parameter"),
            ("struct X;", "put `#[mcp_type]`"),
            ("pub enum X {}", "put `#[mcp_type]`"),
            ("impl X { #[mcp_tool] fn x(&self) {} }", "put `#[mcp_service]` on the `impl`"),
            ("mod x {}", "move it to an `fn`"),
            ("const X: u32 = 1;", "move it to an `fn`"),
        ],
        |item| tool("", item),
    );
    assert_no_error(&tool("", "const fn x() -> u32 { 1 }"));
    assert_no_error(&tool("", r#"fn x(a: Cow<'static, str>) -> &'static str { "" }"#));
}

#[test]
fn a_parameter_that_is_wrong_is_one_error() {
    assert_errors(
        &[
            ("a: &str", "write `String`"),
            ("a: Option<&str>", "write `Option<String>`"),
            ("a: &[u8]", "write `Vec<u8>`"),
            ("a: &mut Db", "write `&Db`"),
            ("a: &'static Db", "without a lifetime"),
            ("a: &Holder<'_>", "type that owns its data"),
            ("a: &&Db", "type that owns its data"),
            ("a: Vec<&str>", "cannot hold a reference"),
            ("a: (&str, u32)", "cannot hold a reference"),
            ("a: Holder<'_>", "cannot have a lifetime"),
            ("a: impl Display", "`impl Trait`"),
            ("a: &impl Display", "write `&dyn Trait`"),
            ("(a, b): (u32, u32)", "plain name"),
            ("_: u32", "name it, or remove it"),
            ("ctx: &mut Context", "the context is shared\nwrite `&Context`"),
            ("State(db): State<Db>", "write `db: &Db`, and register it with `.state(..)`"),
            ("Extension(db): axum::Extension<Db>", "write `db: &Db`"),
            ("Json(f): Json<Filter>", "or `#[mcp(flatten)] f: Filter`"),
            ("Parameters(f): Parameters<Filter>", "or `#[mcp(flatten)] f: Filter`"),
            ("Path(id): Path<u32>", "write `id: u32`"),
            ("Some(x): Option<u32>", "destructure it in the body"),
            ("_a: u32", "clients would send this argument as `_a`\nwrite `a`"),
            (r#"#[mcp("what to find")] a: String"#, "write `description = \"what to find\"`"),
            ("#[serde(default)] a: u32", "write `#[mcp(default)]`"),
            (r#"#[serde(rename = "b")] a: u32"#, "write `#[mcp(name = \"..\")]`"),
            ("#[schemars(range(min = 1))] a: u32", "write `#[mcp(range(1..=100))]`"),
            ("#[schemars(email)] a: String", "put it on a field of an `#[mcp_type]`"),
            ("Db { x }: &Db", "plain name"),
            ("#[mcp] a: u32", "has no options"),
            ("#[mcp = 1] a: u32", "has no options"),
            ("#[cfg_attr(x, mcp(default))] a: u32", "`#[cfg_attr]`"),
            ("#[mcp(defualt = 1)] a: u32", "did you mean `default`?"),
            (r#"#[mcp(regex = "x")] a: String"#, "did you mean `pattern`?"),
            ("#[mcp(default = 1)] #[mcp(default = 2)] a: u32", "is duplicated"),
            (r#"#[mcp(name = "")] a: u32"#, "cannot be empty"),
            ("#[mcp(name = 1)] a: u32", "takes a string"),
            ("#[mcp(default(1))] a: u32", "takes a value"),
            ("#[mcp(example)] a: u32", "takes a value"),
            ("#[mcp(range)] a: u32", "takes a range"),
            ("#[mcp(range(..))] a: u32", "takes a range"),
            ("#[mcp(range(5))] a: u32", "takes a range"),
            ("#[mcp(range = 1..2)] a: u32", "takes a range"),
            ("#[mcp(range(5..=1))] a: u32", "smaller bound first"),
            ("#[mcp(range(1..1))] a: u32", "smaller bound first"),
            ("#[mcp(length(5..=1))] a: String", "smaller bound first"),
            ("#[mcp(length(-1..))] a: String", "a number or a range"),
            ("#[mcp(length = 5)] a: String", "a number or a range"),
            (r#"#[mcp(pattern("x"))] a: String"#, "takes a string"),
            ("#[mcp(one_of)] a: String", "list of literals"),
            ("#[mcp(one_of(a))] a: String", "list of literals"),
            (r#"#[mcp(one_of("a", "a"))] a: String"#, "is duplicated"),
            (r#"#[mcp(header = "a b")] a: String"#, "header name"),
            (r#"#[mcp(header = "")] a: String"#, "header name"),
            ("#[mcp(header)] a: String", "takes a string"),
            (r#"#[mcp(complete("a"))] a: String"#, "use `one_of(..)`"),
            ("#[mcp(raw)] a: String", "path of a resource"),
            ("#[mcp(default)] a: &Db", "is injected"),
            ("#[mcp(inject)] a: &Db", "is injected"),
            ("#[mcp(inject, default)] a: Tx", "injected parameter"),
            ("#[mcp(inject = 1)] a: Tx", "`true` or `false`"),
            (r#"#[mcp(flatten, name = "x")] a: All"#, "combined with `flatten`"),
            ("#[mcp(flatten)] a: All, b: u32", "whole argument object"),
            (r#"a: u32, #[mcp(name = "a")] b: u32"#, "are named `a`"),
            (r#"#[mcp(header = "X")] a: u32, #[mcp(header = "x")] b: u32"#, "use the header"),
        ],
        |parameters| tool("", &format!("fn x({parameters}) {{}}")),
    );
    assert_one_error(&prompt("", r#"fn x(#[mcp(header = "X")] a: u32) {}"#), "for tools");
    assert_one_error(&prompt("", "fn x(#[mcp(flatten)] a: u32) {}"), "for tools");
    assert_one_error(&resource("", r#"fn x(#[mcp(title = "A")] a: u32) {}"#), "for tools and prompts");
    assert_one_error(&tool("", r#"fn x(#[mcp(flatten, title = "A")] a: All) {}"#), "combined with `flatten`");
    assert_one_error(&prompt("", "fn x(#[mcp(complete = 5)] a: u32) {}"), "a function or a list");
    assert_no_error(&tool("", r#"fn x(#[mcp(name = "_a")] _a: u32, _db: &Db, #[mcp(inject)] _tx: Tx) {}"#));
}
