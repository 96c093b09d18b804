//! `#[mcp_event]`: its options and parameters, and what it expands to.

use super::*;
use crate::model::event::EventOptions;

fn event(options: &str, function: &str) -> TokenStream {
    item::expand::<EventOptions>(tokens(options), tokens(function))
}

#[test]
fn every_option_of_an_event_is_accepted() {
    assert_no_error(&event(
        r#"name = "a.b-c_1", description = "d", deliver(poll, push, "webhook"), rate = "60/1m", blocking, scopes("a"), meta(a = 1), validate(x, y), marker = Name, crate = a::b"#,
        "fn x(#[mcp(payload)] a: &A) {}",
    ));
    assert_no_error(&event(
        "",
        r#"async fn x(
            #[mcp(payload)] a: &A,
            #[mcp(name = "a-b", title = "A", description = "d", default = 10, range(1..=100), example = 5)] b: u32,
            #[mcp(length(1..=200), pattern = "^a$", one_of("a", "b"), secret)] c: String,
            #[mcp(inject)] d: Tx, e: &Db, f: Option<&Principal>,
        ) -> Result<Option<B>, E> {}"#,
    ));
    assert_no_error(&event("", "fn x(#[mcp(payload)] a: &A, #[mcp(flatten)] b: B) -> bool {}"));
}

#[test]
fn an_option_of_an_event_that_is_wrong_is_one_error() {
    assert_errors(
        &[
            ("nam = \"x\"", "did you mean `name`?"),
            ("delivery(poll)", "did you mean `deliver`?"),
            ("deliver", "`deliver`"),
            ("deliver = poll", "`deliver`"),
            ("subscribe = a", "`subscribe`"),
            ("deliver(pull)", "did you mean `poll`?"),
            ("deliver(stream)", "`poll`, `push`, `webhook`"),
            ("deliver(poll, poll)", "is duplicated"),
            ("deliver()", "deliver(poll, push)"),
            ("read_only", "it is an option of `#[mcp_tool]`"),
            ("title = \"x\"", "`#[mcp_event]`"),
            ("timeout = \"5s\"", "`#[mcp_tool]`"),
            ("payload", "it is an option of a parameter of `#[mcp_event]`"),
            ("rate = 5", "`rate`"),
            ("name = \"a b\"", "not allowed in the name of an event"),
            ("name = \"\"", "is empty"),
            ("scopes", "`scopes`"),
            ("range(1..2)", "it is an option of a parameter"),
        ],
        |options| event(options, "fn x(#[mcp(payload)] a: &A) {}"),
    );
}

#[test]
fn a_function_of_an_event_that_is_wrong_is_one_error() {
    assert_errors(
        &[
            ("fn x(a: &A) {}", "mark the parameter: `#[mcp(payload)] event: &A`"),
            ("fn x(a: &A) -> bool {}", "an event needs a payload"),
            ("fn x(a: u32) -> Result<bool, E> {}", "an event needs a payload"),
            ("fn x() -> Option<A> {}", "an event needs a payload"),
            ("async fn x() -> Result<S, E> {}", "an event needs a payload"),
            ("fn x(#[mcp(payload)] a: A) {}", "write `&A`"),
            ("fn x(#[mcp(payload)] a: Option<A>) {}", "write `&Option<A>`"),
            ("fn x(#[mcp(payload)] a: Option<&A>) {}", "an event always has its payload\nwrite `&A`"),
            ("fn x(#[mcp(payload)] a: &mut A) {}", "`&mut`"),
            ("fn x(#[mcp(payload, default)] a: &A) {}", "`default` does not apply to the payload"),
            ("fn x(#[mcp(payload = 1)] a: &A) {}", "`true` or `false`"),
            ("fn x(#[mcp(payload)] A { b }: &A) {}", "plain name"),
            ("fn x(#[mcp(payload)] a: &A, #[mcp(payload)] b: &A) {}", "an event has one payload"),
            ("fn x(#[mcp(payload)] a: &A) -> impl Decision {}", "name the type: `bool`"),
            ("fn x(#[mcp(payload)] a: &A) -> &str {}", "an event cannot return a borrowed value"),
            ("fn x<T>(#[mcp(payload)] a: &T) {}", "an event cannot be generic"),
            ("unsafe fn x(#[mcp(payload)] a: &A) {}", "cannot be `unsafe`"),
            ("fn x(#[mcp(payload)] a: &A, #[mcp(header = \"X\")] b: u32) {}", "for tools"),
            ("fn x(#[mcp(payload)] a: &A, #[mcp(complete(\"b\"))] b: String) {}", "use `one_of(..)`"),
            ("fn x(#[mcp(payload)] a: &A, #[mcp(raw)] b: String) {}", "path of a resource"),
            ("fn x(#[mcp(payload)] a: &A, #[mcp(paylod)] b: &A) {}", "is injected"),
            ("fn x(#[mcp(payload)] a: &A, b: &str) {}", "write `String`"),
            ("#[mcp_tool] fn x(#[mcp(payload)] a: &A) {}", "on the same function"),
            ("struct X;", "belongs to a function"),
        ],
        |function| event("", function),
    );
    assert_one_error(
        &tool("", "fn x(#[mcp(payload)] a: A) {}"),
        "an option of a parameter of `#[mcp_event]`",
    );
}

#[test]
fn an_event_with_errors_can_still_be_named() {
    let text = flat(&event("nonsense", "pub fn x(#[mcp(payload)] a: &A) {}"));
    assert!(text.contains("pubstructx{}") && text.contains("EventDescriptor::EMPTY"), "{text}");
    assert!(!text.contains("submit"), "{text}");
}

#[test]
fn an_event_is_emitted_with_the_type_of_its_payload() {
    let text = flat(&event("", "fn x(#[mcp(payload)] a: &A) -> bool {}"));
    assert!(text.contains("impl__rt::EventOf<A>for__Marker{}"), "{text}");
    assert!(text.contains("__rt::output::<bool,__rt::EventResult>()"), "{text}");
}
