//! One server for several tenants: plans, a quota, tools of one tenant, limits on each caller, and an audit log.
//!
//! ```sh
//! cargo run --example tenants -- --http 127.0.0.1:8080
//! ```
//!
//! Callers have API keys here, `acme-key-of-ada-1` and `globex-key-of-bob`; a claim of an access token says the tenant and the
//! plan as well.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use mcp_runtime::{
    Principal, ServerBuilder,
    audit::Audit,
    auth::{ApiKeys, Claims},
    config::ItemView,
    layer::{Layer, LayeredCall, Next, Outcome},
    prelude::*,
    serde_json::{Map, json},
    tool::{ToolCall, ToolDef},
};

/// What the issuer of a key or token says about a caller.
#[mcp_type]
struct Membership {
    tenant: String,
    plan: String,
}

impl Membership {
    /// Calls that a tenant may make in a month.
    fn quota(&self) -> u32 {
        if self.plan == "pro" { 10_000 } else { 3 }
    }
}

/// The claims of a caller, without copying them.
fn claim<'a>(caller: Option<&'a Principal>, name: &str) -> Option<&'a str> {
    caller?.claims()?.get(name)?.as_str()
}

/// The documents of all tenants. Every query names one of them.
struct Documents(HashMap<&'static str, Vec<String>>);

impl Documents {
    fn of(&self, tenant: &str) -> &[String] {
        self.0.get(tenant).map_or(&[], Vec::as_slice)
    }
}

/// Two titles, and the `skip` of the next page.
#[mcp_type]
struct Titles {
    titles: Vec<String>,
    next: Option<usize>,
}

/// Lists your documents.
#[mcp_tool(read_only)]
async fn list_documents(
    #[mcp(default = 0)] skip: usize,
    #[mcp(inject)] member: Claims<Membership>,
    documents: &Documents,
) -> Json<Titles> {
    let mut rest = documents.of(&member.0.tenant).iter().skip(skip);
    let titles = rest.by_ref().take(2).cloned().collect();
    Json(Titles { titles, next: rest.next().map(|_| skip + 2) })
}

/// Reads one of your documents.
#[mcp_tool(read_only, max_result = "10KB")]
async fn read_document(
    title: String,
    #[mcp(inject)] member: Claims<Membership>,
    documents: &Documents,
) -> Result<String, ToolError> {
    let found = documents.of(&member.0.tenant).iter().find(|known| **known == title);
    found
        .map(|title| format!("All of {title}."))
        .ok_or_else(|| format!("no document is called `{title}`").into())
}

/// Summarises all of your documents; for the plan `pro`.
#[mcp_tool(read_only, tags("pro"), rate = "2/1m", max_concurrency_per_caller = 1)]
async fn summarise(#[mcp(inject)] member: Claims<Membership>, documents: &Documents) -> String {
    format!("{} documents", documents.of(&member.0.tenant).len())
}

/// Whether a caller sees an item: what is tagged with a plan is for that plan, and what begins with a tenant and `__` is
/// for that tenant. For the others it does not exist.
fn is_visible(caller: Option<&Principal>, item: &ItemView<'_>) -> bool {
    let (Some(tenant), Some(plan)) = (claim(caller, "tenant"), claim(caller, "plan")) else { return false };
    let of_plan = plan == "pro" || !item.tags().contains(&"pro");
    let of_tenant = item.name().split_once("__").is_none_or(|(owner, _)| owner == tenant);
    of_plan && of_tenant
}

/// Counts the calls of each tenant, and refuses those beyond its quota. A real program counts in its database.
#[derive(Default)]
struct Quota(Mutex<HashMap<String, u32>>);

impl Quota {
    /// Counts a call; `false` if the tenant has used up its quota.
    fn take(&self, member: &Membership) -> bool {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = used.entry(member.tenant.clone()).or_default();
        if *used >= member.quota() {
            return false;
        }
        *used += 1;
        true
    }
}

impl Layer for Quota {
    async fn call(&self, call: LayeredCall, next: Next) -> Outcome {
        let caller = call.context().caller();
        let (Some(tenant), Some(plan)) = (claim(caller, "tenant"), claim(caller, "plan")) else {
            return Err(ToolError::new("the caller belongs to no tenant"));
        };
        if !self.take(&Membership { tenant: tenant.to_owned(), plan: plan.to_owned() }) {
            return Err(ToolError::new("the quota of this month is used up; the plan `pro` has more"));
        }
        next.run(&call).await
    }
}

/// A caller, as an API key stands for it.
fn member(name: &str, tenant: &str, plan: &str) -> Principal {
    let claims = Map::from_iter([("tenant".to_owned(), json!(tenant)), ("plan".to_owned(), json!(plan))]);
    Principal::new("https://example.com", name).with_claims(claims)
}

/// The server; the lines of its audit log go to `audit`.
pub(crate) fn server(audit: Audit) -> ServerBuilder {
    // a program reads hashes of its keys with `ApiKeys::from_file(..)`, or verifies access tokens with `Oauth`
    let keys = ApiKeys::new([
        ("acme-key-of-ada-1", member("ada", "acme", "pro")),
        ("globex-key-of-bob", member("bob", "globex", "free")),
    ]);
    let documents = Documents(HashMap::from([
        ("acme", ["Anvils", "Rockets", "Magnets"].map(str::to_owned).to_vec()),
        ("globex", vec!["Plan".to_owned()]),
    ]));
    // made for one tenant, such as from a table of integrations
    let integration = ToolDef::builder("acme__order_anvil")
        .description("Orders an anvil.")
        .handler(|_: ToolCall| async { "ordered" });
    mcp_runtime::server!()
        .info(|info| info.name("tenants"))
        .tool::<list_documents>()
        .tool::<read_document>()
        .tool::<summarise>()
        .add(integration)
        .state(documents)
        .auth(keys)
        .lists(|lists| lists.visible(is_visible))
        .layer(Quota::default())
        .limits(|limits| limits.rate("600/1m").timeout(Duration::from_secs(30)).max_result(100_000))
        .audit(audit)
}

fn main() -> mcp_runtime::Result<()> {
    server(Audit::to(|line: &str| eprintln!("{line}"))).run()
}
