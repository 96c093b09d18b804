//! The functions that `complete`, `list` and `subscribe` name: what they can take, and that `build()` checks it.

use mcp_runtime::{Completion, prelude::*, resource::Subscription, testing::TestServer};
use serde_json::json;

use crate::common::{build_error, serve};

struct Shelf(Vec<&'static str>);

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
async fn named_functions_take_the_context() {
    let server = serve(mcp_runtime::server!().resource::<book>().state(Shelf(vec!["Emma"])));
    assert_eq!(server.list_resources().await[0]["uri"], "books://Emma");
    let reply = server.complete("books://{title}", "title", "E").await;
    assert_eq!(reply.value()["completion"]["values"], json!(["Emma"]));
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
