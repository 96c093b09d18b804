//! Callers over HTTP, as the server itself authenticates them.

pub(crate) mod api_keys;
mod dpop;
mod guesses;
mod introspection;
mod keys;
mod listed;
mod misconfigured;
mod owners;
mod principal;
mod providers;
mod scopes;
mod test_kit;
mod tokens;
mod visible;

use mcp_runtime::auth::Oauth;

use crate::prelude::*;

/// How often a function was entered.
#[derive(Default)]
struct Entered(AtomicUsize);

impl Entered {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Who is calling
#[mcp_tool]
fn whoami(caller: &Principal, entered: &Entered) -> String {
    entered.0.fetch_add(1, Ordering::SeqCst);
    format!("{} of {}", caller.subject(), caller.client_id().unwrap_or("no client"))
}

/// Reads notes
#[mcp_tool(scopes("notes:read"))]
fn read_notes(entered: &Entered) -> &'static str {
    entered.0.fetch_add(1, Ordering::SeqCst);
    "notes"
}

/// Moves notes
#[mcp_tool(scopes("notes:read", "notes:write"))]
fn move_notes() -> &'static str {
    "moved"
}

/// Cannot be called by anyone
#[mcp_tool(scopes("admin"))]
fn purge() -> &'static str {
    "purged"
}

/// A note
#[mcp_resource(uri = "note://one", scopes("notes:read"))]
fn note() -> &'static str {
    "one"
}

/// A summary
#[mcp_prompt(scopes("notes:read"))]
fn summarize() -> &'static str {
    "summarize"
}

const RESOURCE: &str = "https://mcp.example.com/mcp";

fn oauth(issuer: &Issuer) -> Oauth {
    Oauth::issuer(&issuer.url)
        .resource(RESOURCE)
        .scopes(["notes:read", "notes:write"])
        .unlisted_scopes(["admin"])
}

fn items() -> ServerBuilder {
    counting(&Arc::default())
}

/// The same items, which count how often their functions were entered.
fn counting(entered: &Arc<Entered>) -> ServerBuilder {
    mcp_runtime::server!()
        .state(entered.clone())
        .tool::<whoami>()
        .tool::<read_notes>()
        .tool::<move_notes>()
        .tool::<purge>()
        .resource::<note>()
        .prompt::<summarize>()
}

/// A server that accepts the tokens of an issuer, and how often its functions were entered.
async fn serve(oauth: Oauth) -> (HttpServer, Arc<Entered>) {
    let entered = Arc::new(Entered::default());
    let served = HttpServer::start(counting(&entered).auth(oauth)).await;
    (served, entered)
}

fn call(tool: &str) -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({ "name": tool }))
}

/// With a token.
fn bearing(request: HttpRequest, token: &str) -> HttpRequest {
    request.header("Authorization", &format!("Bearer {token}"))
}

/// The status of a call with a token.
async fn status(served: &HttpServer, token: &str) -> u16 {
    bearing(call("whoami"), token).send(served.address).await.status
}

/// The challenge of a refused request.
#[track_caller]
fn challenge(response: &HttpResponse) -> &str {
    response.header("www-authenticate").unwrap_or_else(|| panic!("no challenge: {}", response.text()))
}
