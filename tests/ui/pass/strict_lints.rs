//! A user who denies nearly every lint: what the attributes expand to must trigger none of them.
//!
//! Checked by `cargo clippy --bins`.

#![deny(warnings, missing_docs, unreachable_pub, missing_debug_implementations, unused_qualifications)]
#![deny(trivial_casts, trivial_numeric_casts, unused_results, unused_lifetimes, let_underscore_drop)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]
#![deny(
    clippy::absolute_paths,
    clippy::allow_attributes_without_reason,
    clippy::as_conversions,
    clippy::as_underscore,
    clippy::empty_structs_with_brackets,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::items_after_statements,
    clippy::large_futures,
    clippy::let_underscore_untyped,
    clippy::missing_docs_in_private_items,
    clippy::panic,
    clippy::panic_in_result_fn,
    clippy::pattern_type_mismatch,
    clippy::pub_use,
    clippy::ref_patterns,
    clippy::shadow_reuse,
    clippy::shadow_unrelated,
    clippy::single_char_lifetime_names,
    clippy::str_to_string,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::wildcard_imports
)]
#![forbid(unsafe_code)]
#![allow(clippy::must_use_candidate, reason = "the functions would have it without the attributes as well")]

use mcp_runtime::{
    Completion, Context, Json, ToolError, mcp_prompt, mcp_resource, mcp_service, mcp_tool, mcp_type,
    resource::ListedResource,
};

/// How many.
const LIMIT: u32 = 5;

/// A database.
#[derive(Debug)]
pub struct Db;

/// How it sounds.
#[mcp_type]
#[derive(Debug, Clone, Copy)]
pub enum Tone {
    /// Kind
    Kind,
    /// Plain
    Plain,
}

/// What was found.
#[mcp_type]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Its number
    pub id: u32,
}

/// Searches.
///
/// # Errors
/// There is nothing.
#[mcp_tool(read_only, timeout = "5s", meta(model = "m"), icon = "https://a.example/i.png", scopes("read"))]
pub async fn search(
    /// Words
    #[mcp(length(1..=200), pattern = "^a", one_of("a", "ab"), default = "a", example = "ab")]
    query: String,
    #[mcp(default = LIMIT, range(1..=LIMIT), header = "Limit")] limit: u32,
    #[mcp(default = 0.5, range(0.0..=1.0))] ratio: f64,
    #[mcp(default = Some(1))] count: Option<u32>,
    #[mcp(default = Tone::Kind)] tone: Tone,
    db: &Db,
    context: &Context,
) -> Result<Json<Vec<Hit>>, ToolError> {
    let text = format!("{query}{limit}{ratio}{count:?}{tone:?}{db:?}{}", context.is_cancelled());
    if text.is_empty() { Err(ToolError::new("nothing")) } else { Ok(Json(vec![Hit { id: limit }])) }
}

/// Adds nothing.
#[mcp_tool]
pub const fn constant(value: u32) -> u32 {
    value
}

/// Runs elsewhere.
#[mcp_tool(blocking, max_concurrency = 2)]
pub fn blocking(query: String, db: Option<&Db>) -> String {
    format!("{query}{db:?}")
}

/// Never waits.
#[mcp_tool]
pub async fn unused_async(query: String) -> String {
    query
}

/// Says nothing.
#[mcp_tool]
pub const fn nothing() {}

/// A page.
#[mcp_resource(uri = "docs://{section}{?page}", cache(ttl = "5s"), priority = 0.5, list = pages)]
pub fn page(#[mcp(complete = sections)] section: String, page: Option<u32>) -> Option<String> {
    let number = page?;
    Some(format!("{section}{number}"))
}

/// All pages.
fn pages(_: &Db) -> Vec<ListedResource> {
    vec!["docs://a".into()]
}

/// All sections.
fn sections(completion: &Completion) -> Vec<String> {
    vec![completion.value.clone()]
}

/// A review.
#[mcp_prompt]
pub fn review(#[mcp(complete("a", "b"))] id: String, #[mcp(default)] number: u32) -> String {
    format!("{id}{number}")
}

/// A service.
#[derive(Debug)]
pub struct Weather;

#[mcp_service]
impl Weather {
    /// How many days.
    const DAYS: u32 = 3;

    /// The forecast.
    #[mcp_tool]
    pub fn forecast(&self, #[mcp(default = Self::DAYS)] days: u32, db: &Db) -> String {
        format!("{self:?}{days}{db:?}")
    }
}

/// Calls the functions, and registers everything.
pub(crate) fn main() {
    assert_eq!(constant(1), 1);
    assert_eq!(blocking("a".to_owned(), None), "aNone");
    assert_eq!(page("a".to_owned(), Some(1)).as_deref(), Some("a1"));
    assert_eq!(review("a".to_owned(), 1), "a1");
    assert_eq!(Weather.forecast(1, &Db), "Weather1Db");
    nothing();
    let server = mcp_runtime::server!()
        .tool::<search>()
        .tool::<constant>()
        .tool::<blocking>()
        .tool::<unused_async>()
        .tool::<nothing>()
        .resource::<page>()
        .prompt::<review>()
        .service(Weather)
        .state(Db)
        .build();
    assert!(server.is_ok(), "{:?}", server.err());
}
