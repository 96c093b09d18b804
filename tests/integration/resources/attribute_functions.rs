//! The functions that `complete`, `list` and `subscribe` name: what they can take, that `build()` checks it, how they
//! fail, how they run, and how they list pages.

use std::io;

use mcp_runtime::{
    Completion,
    resource::{ListedPage, ListedResource, PageRequest, Subscription},
};

use crate::prelude::*;

struct Shelf(Vec<&'static str>);

/// Their parameters may be there or not, in any order.
async fn own(caller: Option<&Principal>, shelf: &Shelf, missing: Option<&Gate>) -> Vec<String> {
    let name = caller.map_or("anyone", |caller| caller.subject());
    shelf.0.iter().filter(|_| missing.is_none()).map(|title| format!("own://{name}-{title}")).collect()
}

fn own_titles(_: &Completion, shelf: Option<&Shelf>, caller: Option<&Principal>) -> [String; 1] {
    [format!(
        "{} {}",
        caller.map_or("anyone", |caller| caller.subject()),
        shelf.map_or(0, |shelf| shelf.0.len())
    )]
}

fn may_follow_own(_: &Subscription, caller: Option<&Principal>) -> bool {
    caller.is_some()
}

fn of_caller(caller: &Principal) -> [String; 1] {
    [format!("mine://{}", caller.subject())]
}

#[mcp_resource(uri = "own://{title}", list = own, subscribe = may_follow_own)]
fn own_book(#[mcp(complete = own_titles)] title: String) -> String {
    title
}

#[mcp_resource(uri = "mine://{title}", list = of_caller)]
fn my_book(title: String) -> String {
    title
}

#[tokio::test]
async fn named_functions_take_the_caller_and_what_may_be_absent() {
    let server = mcp_runtime::server!().resource::<own_book>().resource::<my_book>().with_handle(drop);
    let server = server.state(Shelf(vec!["Emma"])).build().expect("a server");
    let ada = Principal::new("https://example.com", "ada");
    for (caller, name, may_follow) in [(None, "anyone", false), (Some(ada), "ada", true)] {
        let client = TestServer::of(&server).caller(caller);
        let listed = client.list_resources().await;
        let uris: Vec<_> = listed.iter().map(|entry| entry["uri"].as_str().expect("a URI")).collect();
        let mine = format!("mine://{name}");
        let expected = [format!("own://{name}-Emma"), mine];
        // without a caller, the one that needs it has failed
        assert_eq!(uris, expected[..if may_follow { 2 } else { 1 }]);
        let reply = client.complete("own://{title}", "title", "").await;
        assert_eq!(reply.value()["completion"]["values"], json!([format!("{name} 1")]));
        let legacy = client.legacy(LEGACY[3]);
        let reply = legacy.request("resources/subscribe", json!({ "uri": "own://1" })).await;
        assert_eq!(!reply.is_error(), may_follow, "{reply}");
    }
}

fn titles(typed: &Completion, shelf: &Shelf, ctx: &Context) -> Vec<String> {
    assert!(!ctx.is_cancelled());
    shelf.0.iter().filter(|title| title.starts_with(&typed.value)).map(ToString::to_string).collect()
}

async fn books(shelf: &Shelf, ctx: &Context) -> Vec<String> {
    assert!(ctx.caller().is_none());
    shelf.0.iter().map(|title| format!("books://{title}")).collect()
}

fn may_follow(wanted: &Subscription, shelf: &Shelf) -> bool {
    shelf.0.contains(&wanted.variables["title"].as_str())
}

/// A book.
#[mcp_resource(uri = "books://{title}", list = books, subscribe = may_follow)]
fn book(#[mcp(complete = titles)] title: String) -> String {
    title
}

#[test]
fn missing_state_of_named_functions_is_a_build_error() {
    let error = build_error(mcp_runtime::server!().resource::<book>());
    for option in ["complete", "list", "subscribe"] {
        let text = format!("the `{option}` function of resource `book` takes `&");
        let line = error.lines().find(|line| line.starts_with(&text));
        assert!(line.is_some_and(|line| line.contains("Shelf`, and no state")), "{option}: {error}");
    }
    assert!(!error.contains("Context"), "{error}");
}

#[tokio::test]
async fn a_handle_that_only_a_named_function_takes_is_provided() {
    fn nothing(_: &Completion, server: &ServerHandle) -> Vec<String> {
        server.resources_changed();
        vec!["x".into()]
    }
    #[mcp_prompt]
    fn ask(#[mcp(complete = nothing)] what: String) -> String {
        what
    }
    let server = serve(mcp_runtime::server!().prompt::<ask>());
    let reply = server.complete("ask", "what", "").await;
    assert_eq!(reply.value()["completion"]["values"], json!(["x"]));
}

struct Library {
    titles: Vec<&'static str>,
}

#[mcp_service]
impl Library {
    fn all(&self) -> Vec<String> {
        self.titles.iter().map(|title| format!("library://{title}")).collect()
    }

    fn is_there(wanted: &Subscription, this: &Self) -> bool {
        this.titles.contains(&wanted.variables["title"].as_str())
    }

    fn typed(typed: &Completion, this: &Self) -> Vec<&'static str> {
        this.titles.iter().copied().filter(|title| title.starts_with(&typed.value)).collect()
    }

    #[mcp_resource(uri = "library://{title}", list = Self::all, subscribe = Self::is_there)]
    fn page(&self, #[mcp(complete = Self::typed)] title: String) -> Option<String> {
        self.titles.contains(&title.as_str()).then_some(title)
    }
}

#[tokio::test]
async fn named_functions_of_a_service_take_the_service() {
    let builder = mcp_runtime::server!()
        .service(Library { titles: vec!["Emma"] })
        .service_as("eu", Library { titles: vec!["Faust"] })
        .state(Library { titles: vec!["unused"] })
        .with_handle(drop);
    let server = TestServer::new(builder).expect("a server");
    let listed: Vec<_> = server.list_resources().await.iter().map(|r| r["uri"].clone()).collect();
    assert_eq!(listed, ["library://Emma", "library://eu/Faust"]);
    for (template, title) in [("library://{title}", "Emma"), ("library://eu/{title}", "Faust")] {
        let reply = server.complete(template, "title", "").await;
        assert_eq!(reply.value()["completion"]["values"], json!([title]));
    }
    let wanted = ["library://Emma", "library://Faust", "library://eu/Faust"];
    let changes = server.listen(json!({ "resourceSubscriptions": wanted })).await;
    let told = json!({ "resourceSubscriptions": ["library://Emma", "library://eu/Faust"] });
    assert_eq!(*changes.acknowledged(), told);
}

/// How the functions below fail.
#[derive(Clone, Copy)]
enum Fails {
    Propagated,
    Written,
    Chosen,
    NotFound,
}

impl Fails {
    fn error(self) -> ToolError {
        match self {
            Self::Propagated => io::Error::other("the password is wrong").into(),
            Self::Written => "the library is closed".into(),
            Self::Chosen => ProtocolError::new(4001, "come back").into(),
            Self::NotFound => ToolError::not_found(),
        }
    }
}

fn fails_to_list(fails: &Fails) -> Result<Vec<ListedResource>, ToolError> {
    Err(fails.error())
}

async fn fails_to_complete(_: &Completion, fails: &Fails) -> Result<[String; 1], ToolError> {
    tokio::task::yield_now().await;
    Err(fails.error())
}

fn fails_to_decide(_: &Subscription, fails: &Fails) -> Result<bool, ToolError> {
    Err(fails.error())
}

#[mcp_resource(uri = "failing://{id}", list = fails_to_list, subscribe = fails_to_decide)]
fn failing(#[mcp(complete = fails_to_complete)] id: String) -> String {
    id
}

fn failing_server(fails: Fails) -> ServerBuilder {
    mcp_runtime::server!().resource::<failing>().state(fails).with_handle(drop)
}

#[tokio::test]
async fn named_functions_fail_with_what_they_write_and_not_with_what_they_propagate() {
    for (fails, code, text) in [
        (Fails::Propagated, -32603, None),
        (Fails::Written, -32603, Some("the library is closed")),
        (Fails::Chosen, 4001, Some("come back")),
    ] {
        let server = serve(failing_server(fails)).legacy(LEGACY[3]);
        for (what, reply) in [
            ("list of", server.request("resources/list", json!({})).await),
            ("completion of", server.complete("failing://{id}", "id", "").await),
            ("subscription to", server.request("resources/subscribe", json!({ "uri": "failing://1" })).await),
        ] {
            let (found, message) = refusal(&reply);
            let name = if what == "completion of" { "failing://{id}" } else { "failing" };
            let private = format!("{what} '{name}' failed");
            assert_eq!((found, &*message), (code, text.unwrap_or(&private)));
        }
    }
    let server = serve(failing_server(Fails::NotFound));
    assert_eq!(refusal(&server.request("resources/list", json!({})).await).0, -32603);
    let detailed = serve(failing_server(Fails::Propagated).detailed_errors());
    let (_, message) = refusal(&detailed.request("resources/list", json!({})).await);
    assert_eq!(message, "list of 'failing' failed: the password is wrong");
}

async fn pending_list(gate: &Gate) -> Vec<String> {
    gate.pass().await;
    Vec::new()
}

async fn pending_values(_: &Completion, gate: &Gate) -> Vec<String> {
    gate.pass().await;
    Vec::new()
}

#[mcp_resource(uri = "pending://{id}", list = pending_list)]
fn pending_instance(#[mcp(complete = pending_values)] id: String) -> String {
    id
}

fn pending_server() -> (Server, Gate) {
    let gate = Gate::default();
    let server = mcp_runtime::server!().resource::<pending_instance>().state(gate.clone());
    (server.build().expect("a server"), gate)
}

#[tokio::test]
async fn async_named_functions_are_dropped_when_their_request_is_cancelled() {
    let (server, gate) = pending_server();
    let mut client = LineConnection::serve(&server, 1 << 16);
    client.initialize("2025-11-25").await;
    let reference = json!({ "type": "ref/resource", "uri": "pending://{id}" });
    let completion = json!({ "ref": reference, "argument": { "name": "id", "value": "" } });
    for (calls, (method, params)) in
        [("resources/list", json!({})), ("completion/complete", completion)].into_iter().enumerate()
    {
        client.send(&request(7 + calls, method, params)).await;
        gate.until_entered(calls + 1).await;
        client.send(&cancelled(7 + calls)).await;
        gate.until_ended(calls + 1, 0).await;
    }
}

/// They would wait for each other if each kept a thread until it ends.
#[test]
fn async_named_functions_take_no_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    runtime.block_on(within(async {
        let (server, gate) = pending_server();
        let client = TestServer::of(&server);
        let lists = async { tokio::join!(client.list_resources(), client.list_resources()) };
        let completion = client.complete("pending://{id}", "id", "");
        tokio::select! {
            _ = lists => panic!("a list ended"),
            _ = completion => panic!("a completion ended"),
            () = gate.until_entered(3) => {}
        }
    }));
}

/// Returns pages in the way of the server's state.
fn listed(page: &PageRequest, pages: &Pages) -> ListedPage {
    pages.0(page)
}

struct Pages(fn(&PageRequest) -> ListedPage);

#[mcp_resource(uri = "paged://{id}", list = listed)]
fn paged(id: String) -> String {
    id
}

#[tokio::test]
async fn a_page_with_more_than_there_is_room_for_is_split_and_none_is_lost() {
    let server = serve(
        mcp_runtime::server!()
            .resource::<paged>()
            .state(Pages(|page| match page.cursor.as_deref() {
                None => {
                    ListedPage::new((0..5).map(|id| format!("paged://{id}"))).next_cursor("rest".to_owned())
                }
                Some(_) => ListedPage::new(["paged://5"]),
            }))
            .lists(|lists| lists.page_size(2)),
    );
    let all: Vec<_> = server.list_resources().await.iter().map(|entry| entry["uri"].clone()).collect();
    assert_eq!(all, ["paged://0", "paged://1", "paged://2", "paged://3", "paged://4", "paged://5"]);
}

#[tokio::test]
async fn a_list_function_whose_pages_do_not_end_is_an_error() {
    let endless: [fn(&PageRequest) -> ListedPage; 2] = [
        |_| ListedPage::new(["paged://1"]).next_cursor("again".to_owned()),
        |_| ListedPage::new(["paged://1"]).next_cursor("x".repeat(1025)),
    ];
    for page in endless {
        let builder = mcp_runtime::server!().resource::<paged>().state(Pages(page)).detailed_errors();
        let server = serve(builder);
        let mut reply = server.request("resources/list", json!({})).await;
        if !reply.is_error() {
            reply = server.request("resources/list", json!({ "cursor": reply.value()["nextCursor"] })).await;
        }
        let (code, message) = refusal(&reply);
        assert!(code == -32603 && message.contains("its `next_cursor` is"), "{message}");
    }
}
