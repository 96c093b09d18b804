//! `#[mcp_event]`: its options and parameters, and what it expands to with a payload and with a stream.

use super::*;
use crate::model::event::EventOptions;

fn event(options: &str, function: &str) -> TokenStream {
    item::expand::<EventOptions>(tokens(options), tokens(function))
}

#[test]
fn every_option_of_an_event_is_accepted() {
    assert_no_error(&event(
        r#"name = "a.b-c_1", description = "d", deliver(poll, push, "webhook"), rate = "60/1m", blocking, scopes("a"), meta(a = 1), validate(x, y), subscribed = a::b, unsubscribed = c, marker = Name, crate = a::b"#,
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
    assert_no_error(&event("", "fn x(#[mcp(position)] a: Option<Position>) -> EventStream<A> {}"));
    assert_no_error(&event("", "async fn x() -> Result<event::EventStream<A>, E> {}"));
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
            ("subscribed", "subscribed = path::to::function"),
            ("unsubscribed(a, b)", "unsubscribed = path::to::function"),
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
            ("fn x(#[mcp(payload)] a: A) {}", "write `&A`"),
            ("fn x(#[mcp(payload)] a: Option<A>) {}", "write `&Option<A>`"),
            ("fn x(#[mcp(payload)] a: Option<&A>) {}", "an event always has its payload\nwrite `&A`"),
            ("fn x(#[mcp(payload)] a: &mut A) {}", "`&mut`"),
            ("fn x(#[mcp(payload, default)] a: &A) {}", "`default` does not apply to the payload"),
            ("fn x(#[mcp(payload = 1)] a: &A) {}", "`true` or `false`"),
            ("fn x(#[mcp(payload)] A { b }: &A) {}", "plain name"),
            ("fn x(#[mcp(payload)] a: &A, #[mcp(payload)] b: &A) {}", "an event has one payload"),
            ("fn x(#[mcp(position)] a: Option<Position>) -> bool {}", "return `EventStream<T>`"),
            ("fn x(#[mcp(position)] a: Option<Position>) {}", "return `EventStream<T>`"),
            ("fn x(#[mcp(position)] a: &Position) -> S {}", "write `Option<Position>`"),
            ("fn x(#[mcp(position)] a: Option<&Position>) -> S {}", "write `Option<Position>`"),
            ("fn x(#[mcp(position, default)] a: Option<P>) -> S {}", "does not apply to the position"),
            ("fn x(#[mcp(position = 1)] a: Option<P>) -> S {}", "`true` or `false`"),
            ("fn x(#[mcp(position)] a: P, #[mcp(position)] b: P) -> S {}", "an event has one position"),
            ("fn x(#[mcp(payload)] a: &A, #[mcp(position)] b: P) {}", "is emitted, and has no position"),
            ("fn x() -> impl Stream<Item = A> {}", "made with `EventStream::new(stream)`"),
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
    assert_one_error(
        &tool("", "fn x(#[mcp(position)] a: u64) {}"),
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
fn only_an_event_with_a_payload_is_emitted() {
    let text = flat(&event("", "fn x(#[mcp(payload)] a: &A) -> bool {}"));
    assert!(text.contains("impl__rt::EventOf<A>for__Marker{}"), "{text}");
    assert!(text.contains("__rt::event_output::<bool>()") && !text.contains("is_streamed"), "{text}");
    for function in ["fn x() -> S {}", "fn x(#[mcp(position)] a: P) -> S {}"] {
        let text = flat(&event("", function));
        assert!(text.contains("impl__rt::EventOf<__rt::Streamed>for__Marker{}"), "{text}");
        assert!(text.contains("__rt::event_source::<S>()") && text.contains("is_streamed:true"), "{text}");
    }
    // nothing is opened while the arguments are checked
    for options in ["", "blocking"] {
        let text = flat(&event(options, "fn x() -> S {}"));
        assert!(text.contains("__rt::opened_at(&__ctx)?;"), "{text}");
    }
}
