//! Generated code does not depend on what its surroundings call things.

#![deny(warnings)]
#![allow(clippy::non_minimal_cfg)]
#![allow(dead_code, unused_macros, non_camel_case_types)]

mod core {}
mod std {}
mod serde {}
mod schemars {}
mod __private {}

pub struct Result;
pub struct Option;
pub struct Some;
pub struct None;
pub struct Ok;
pub struct Err;
pub struct Box;
pub struct String;
pub struct Vec;
pub struct Default;
pub struct Clone;
pub struct Into;
pub struct Tool;
pub struct Json;
pub struct Cow;
pub struct Icon;
pub struct Theme;
pub trait Fn {}
pub trait Send {}

macro_rules! file {
    () => {
        1
    };
}
macro_rules! line {
    () => {
        ""
    };
}
macro_rules! column {
    () => {
        ""
    };
}
macro_rules! module_path {
    () => {
        1
    };
}
macro_rules! concat {
    ($($t:tt)*) => {
        1
    };
}
macro_rules! vec {
    ($($t:tt)*) => {
        1
    };
}
macro_rules! cfg {
    ($($t:tt)*) => {
        ""
    };
}
macro_rules! compile_error {
    ($($t:tt)*) => {
        1
    };
}

type Text = ::std::string::String;
type Maybe = ::std::option::Option<u32>;

pub struct Db;
pub struct Service;

#[::mcp_runtime::mcp_type]
pub struct Query {
    text: Text,
}

#[::mcp_runtime::mcp_type]
pub enum Tone {
    Kind,
    Plain,
}

/// Search
#[doc = "more"]
#[::mcp_runtime::mcp_tool(
    name = "search",
    title = "T",
    read_only,
    icon = "https://a.example/i.png",
    icon(src = "https://a.example/d.svg", mime = "image/svg+xml", sizes("any"), theme = "dark"),
    meta(a = 1),
    timeout = "5s",
    task,
    ui(resource = "ui://charts/page.html", visibility(model, app)),
    max_concurrency = 2,
    scopes("a"),
    tags("b"),
    strict
)]
pub async fn search(
    /// Words
    #[mcp(length(1..=200), pattern = "^a", one_of("a", "b"), example = "a", default = "a")]
    query: Text,
    #[mcp(range(1..=5), default = 5, header = "Limit")] limit: u32,
    #[mcp(default)] count: Maybe,
    #[cfg(all())] tone: Tone,
    whole: Query,
    db: &Db,
    cx: ::std::option::Option<&Service>,
) -> ::std::result::Result<Text, ::mcp_runtime::ToolError> {
    let _: (Tone, Query, &Db, ::std::option::Option<&Service>) = (tone, whole, db, cx);
    ::std::result::Result::Ok(::std::format!("{query}{limit}{count:?}"))
}

#[::mcp_runtime::mcp_tool(task = required, blocking, timeout = "1s", ui(visibility("app")))]
pub fn slow(db: &Db) -> u32 {
    let _: &Db = db;
    1
}

#[::mcp_runtime::mcp_resource(uri = "a://{id}", list = list, cache(ttl = "5s"), priority = 0.5, audience("user"))]
pub fn page(#[mcp(complete = ids)] id: u32) -> Text {
    ::std::format!("{id}")
}

#[::mcp_runtime::mcp_resource(
    uri = "ui://charts/page.html",
    ui(
        csp(connect("https://api.example.org"), resource("https://*.example.org"), frame = ["https://a.example"]),
        permissions(camera, clipboard_write),
        prefers_border,
        domain = "charts.example.org"
    ),
    meta(version = 1)
)]
fn chart() -> &'static str {
    "<!doctype html>"
}

fn list() -> ::std::vec::Vec<Text> {
    ::std::vec::Vec::new()
}

fn ids(_: &::mcp_runtime::Completion) -> ::std::vec::Vec<Text> {
    ::std::vec::Vec::new()
}

#[::mcp_runtime::mcp_prompt]
pub fn review(#[mcp(complete("a", "b"))] id: Text) -> Text {
    id
}

#[::mcp_runtime::mcp_service]
impl Service {
    #[::mcp_runtime::mcp_tool(task, blocking)]
    fn forecast(&self, city: Text) -> Text {
        city
    }
}

pub(crate) fn main() {
    ::mcp_runtime::server!()
        .tool::<search>()
        .tool::<slow>()
        .resource::<page>()
        .resource::<chart>()
        .prompt::<review>()
        .service(Service)
        .state(Db)
        .build()
        .expect("a server");
}
