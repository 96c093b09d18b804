//! Every option at once, under the strictest lints that rustc has.

#![allow(clippy::too_many_arguments)]
#![deny(warnings, nonstandard_style, rust_2018_idioms, unused)]
#![deny(missing_docs, unreachable_pub, missing_debug_implementations, trivial_casts, trivial_numeric_casts)]
#![deny(unused_qualifications, unused_results, unused_lifetimes, unused_import_braces, single_use_lifetimes)]
#![deny(let_underscore_drop, meta_variable_misuse, redundant_lifetimes, variant_size_differences)]
#![deny(elided_lifetimes_in_paths, explicit_outlives_requirements, absolute_paths_not_starting_with_crate)]
#![deny(missing_copy_implementations, unit_bindings, unused_macro_rules, ambiguous_negative_literals)]
#![forbid(unsafe_code)]

use std::{borrow::Cow, collections::BTreeMap};

use mcp_runtime::{
    Completion, FromContext, ToolResult,
    layer::{Layer, LayeredCall, Next, Outcome},
    prelude::*,
    resource::{ListedResource, Subscription},
};

const DESCRIPTION: &str = "Described elsewhere.";
const TITLE: &str = "What to look for";
const CALLS: usize = 3;
const LIMIT: u64 = 7;

/// A store.
pub trait Store: Send + Sync {
    /// The number of its entries.
    fn size(&self) -> u32;
}

/// A database.
#[derive(Debug, Clone, Copy)]
pub struct Db;

/// A transaction.
#[derive(Debug, Clone, Copy)]
pub struct Tx;

impl FromContext for Tx {
    type Error = ToolError;

    async fn from_context(_: &Context) -> Result<Self, ToolError> {
        Ok(Self)
    }
}

/// How it sounds.
#[mcp_type]
#[derive(Debug, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Kind
    Kind,
    /// Plain
    Plain,
}

/// Where it runs.
#[mcp_type]
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Region {
    Eu,
    Us,
}

/// What is looked for.
#[mcp_type]
#[derive(Debug)]
pub struct Query {
    /// Words
    pub text: String,
}

/// What was found.
#[mcp_type]
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// How many
    pub count: u32,
}

async fn pass_on(call: LayeredCall, next: Next) -> Outcome {
    next.run(&call).await
}

struct Pass {
    on: bool,
}

impl Pass {
    const fn new(on: bool) -> Self {
        Self { on }
    }
}

impl Layer for Pass {
    async fn call(&self, call: LayeredCall, next: Next) -> Outcome {
        if self.on { next.run(&call).await } else { Err("off".into()) }
    }
}

/// Not the description that is published.
#[mcp_tool(
    name = "x.y-z_1",
    title = "Search",
    description = DESCRIPTION,
    read_only,
    destructive = false,
    idempotent = true,
    open_world = false,
    icon = ["https://a.example/i.png", "data:image/png;base64,AA"],
    icon(src = "https://a.example/d.svg", mime = "image/svg+xml", sizes("any"), theme = "dark"),
    icon(theme = "light", sizes = ["48x48", "96x96"], src = "https://a.example/l.png"),
    meta(model = "m", n = 1, rate = -0.5, beta = true, list = ["a"], nested(x = 1), "org.example/kind" = "k"),
    timeout = "250ms",
    max_concurrency = 2,
    scopes("read", "write"),
    tags("a", "b"),
    strict,
    output = BTreeMap<String, Report>,
    unregistered,
    layers(pass_on, Pass { on: true }, Pass::new(true),),
    crate = ::mcp_runtime,
)]
pub async fn search(
    /// Words
    #[mcp(title = TITLE, length(1..=200), pattern = "^[a-z]+$", example = "tea")]
    query: String,
    #[mcp(name = "max-hits", description = "How many", default = 10, range(1..=100), header = "Limit")] limit: u32,
    #[mcp(default = LIMIT, range(..=9_007_199_254_740_991))] wide: u64,
    #[mcp(range(0..=9_007_199_254_740_991), header = "Wide")] exact: Option<u64>,
    #[mcp(range(-0.5..1.0), default)] ratio: f64,
    #[mcp(one_of("a", "b"), default = "a", header = "Choice")] choice: String,
    #[mcp(one_of = [1, 2, -3])] number: Option<i8>,
    #[mcp(length(..10))] list: Option<Vec<u8>>,
    #[mcp(length(3), secret)] fixed: Option<String>,
    #[mcp(default = Tone::Kind)] tone: Tone,
    #[mcp(header = "Region")] region: Region,
    #[mcp(default = vec!["a".to_owned()])] words: Vec<String>,
    #[mcp(default = Some(1))] maybe: Option<u32>,
    text: Option<Cow<'static, str>>,
    #[mcp(default = "a", example = "b")] words_of_text: Option<String>,
    #[mcp(example = "c")] boxed: Option<Box<str>>,
    db: &Db,
    store: &dyn Store,
    sync: &(dyn Store + 'static),
    maybe_db: Option<&Db>,
    ctx: &Context,
    #[mcp(inject)] tx: Tx,
    _: &Db,
) -> ToolResult {
    let used = (query, limit, wide, exact, ratio, choice, number, list, fixed, tone, words, maybe);
    let injected = (text, words_of_text, boxed, region, db, store.size(), sync.size(), maybe_db, ctx, tx);
    drop((used, injected));
    ToolResult::default()
}

/// Plain.
#[mcp_tool(max_concurrency = CALLS)]
pub const fn constant(#[mcp(range(1..=5))] mut value: u32) -> u32 {
    value += 1;
    value
}

/// Blocking.
#[mcp_tool(task, blocking, timeout = "1h")]
pub(crate) fn blocking(value: u32, db: &Db) -> Result<Json<Report>, std::num::ParseIntError> {
    drop(format!("{db:?}"));
    Ok(Json(Report { count: value }))
}

/// Flat.
#[mcp_tool]
fn flat(#[mcp(flatten)] query: Query, db: &Db) -> String {
    format!("{}{db:?}", query.text)
}

/// Injected into a plain function, which fails as set-up code does.
#[mcp_tool(task = false)]
fn made(#[mcp(inject)] tx: Tx) -> mcp_runtime::Result<u32> {
    drop(format!("{tx:?}"));
    "x".parse().map_err(mcp_runtime::Error::other)
}

/// Starts its task by itself.
#[mcp_tool(task = manual)]
async fn starts(#[mcp(inject)] tx: Tx, ctx: &Context) -> bool {
    drop(format!("{tx:?}"));
    ctx.start_task().await
}

/** Nothing at all. */
#[mcp_tool]
fn nothing() {}

#[doc = concat!("Comp", "uted.")]
#[doc = " More."]
#[mcp_tool]
fn computed() -> Option<String> {
    None
}

/// A page.
#[mcp_resource(
    uri = "docs://{section}/{+path}{?lang,page}",
    name = "page",
    title = "Page",
    mime = "text/markdown; charset=utf-8",
    icon = "https://a.example/i.png",
    audience("user", "assistant"),
    priority = 0.5,
    cache(ttl = "60s"),
    list = pages,
    subscribe = may_subscribe,
    scopes("read"),
    meta(a = 1),
)]
pub fn page(
    /// Section
    #[mcp(complete("a", "b"))]
    section: Tone,
    #[mcp(raw)] path: String,
    #[mcp(default = "en", one_of("en", "de"))] lang: String,
    page: Option<u32>,
    db: &Db,
) -> Option<String> {
    Some(format!("{section:?}{path}{lang}{page:?}{db:?}"))
}

fn may_subscribe(wanted: &Subscription, _: &Db, ctx: &Context) -> bool {
    wanted.variables.contains_key("section") && ctx.caller().is_none()
}

async fn pages(_: &Db) -> Vec<ListedResource> {
    Vec::new()
}

/// Of a size that is known.
#[mcp_resource(uri = "docs://index", size = 1024)]
pub fn index() -> &'static [u8] {
    &[0; 1024]
}

/// Without a URI.
#[mcp_resource]
async fn by_name(id: Option<u32>) -> Json<Report> {
    Json(Report { count: id.unwrap_or_default() })
}

/// A review.
#[mcp_prompt(
    name = "review",
    title = "Review",
    icon("https://a.example/i.png"),
    icon(src = "https://a.example/j.png"),
    meta(a = 1),
    scopes("read")
)]
pub async fn review(
    #[mcp(complete = ids, range(1..), title = "Number")] id: u64,
    #[mcp(default = Tone::Plain)] tone: Tone,
    db: &Db,
) -> Result<String, ToolError> {
    Ok(format!("{id}{tone:?}{db:?}"))
}

fn ids(completion: &Completion, _: &Db) -> Vec<String> {
    vec![completion.value.clone()]
}

pub(crate) fn main() {
    assert_eq!(constant(1), 2);
    assert_eq!(page(Tone::Kind, "p".into(), "en".into(), None, &Db).as_deref(), Some("KindpenNoneDb"));
    nothing();
    struct Mem;
    impl Store for Mem {
        fn size(&self) -> u32 {
            0
        }
    }
    let store: std::sync::Arc<dyn Store> = std::sync::Arc::new(Mem);
    let server = mcp_runtime::server!()
        .tool::<search>()
        .tool::<constant>()
        .tool::<blocking>()
        .tool::<flat>()
        .tool::<made>()
        .tool::<starts>()
        .tool::<nothing>()
        .tool::<computed>()
        .resource::<page>()
        .resource::<index>()
        .resource::<by_name>()
        .prompt::<review>()
        .state(Db)
        .state(store)
        .build();
    drop(server.expect("a server"));
}
