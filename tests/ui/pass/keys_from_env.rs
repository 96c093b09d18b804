//! The keys in the environment: `keys_from_env()` and `run()` read them, `build()` does not.

use super::child;
use mcp_runtime::{ServerBuilder, config::Stores, prelude::*, serde_json::json, testing::TestServer};

#[mcp_tool]
fn one() {}

#[mcp_tool]
fn two() {}

const KEY: [u8; 32] = *b"a key for tests, and not random!";

fn builder() -> ServerBuilder {
    mcp_runtime::server!().discover_in(module_path!()).lists(|lists| lists.page_size(1))
}

fn from_env() -> ServerBuilder {
    builder().stores(|stores| stores.keys_from_env())
}

fn own_keys() -> ServerBuilder {
    builder().stores(|stores| stores.keys([KEY]))
}

/// Whether the second server accepts a cursor of the first.
async fn share_keys(first: ServerBuilder, second: ServerBuilder) -> mcp_runtime::Result<bool> {
    let (first, second) = (TestServer::new(first)?, TestServer::new(second)?);
    let page = first.request("tools/list", json!({})).await;
    let reply = second.request("tools/list", json!({ "cursor": page.value()["nextCursor"] })).await;
    Ok(reply.error().is_none())
}

fn problems(builder: ServerBuilder) -> Option<String> {
    builder.build().err().map(|error| error.to_string())
}

#[mcp_runtime::main]
pub(crate) async fn child() -> mcp_runtime::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("valid") => {
            assert!(share_keys(from_env(), from_env()).await?);
            assert!(!share_keys(builder(), from_env()).await?);
            assert!(!share_keys(builder(), builder()).await?);
            Ok(())
        }
        Some("invalid") => {
            assert_eq!(problems(builder()), None);
            let text = problems(from_env()).expect("a problem");
            assert_eq!(text.matches("`MCP_SERVER_KEYS` contains an invalid key").count(), 1, "{text}");
            assert!(!text.contains("secret"), "{text}");
            Ok(())
        }
        Some("unset") => {
            assert!(share_keys(own_keys(), own_keys().stores(Stores::keys_from_env)).await?);
            assert!(!share_keys(from_env(), from_env()).await?);
            Ok(())
        }
        Some("list") if std::env::var_os("OWN_KEYS").is_some() => own_keys().run(),
        _ => from_env().run(),
    }
}

pub(crate) fn main() {
    let (valid, invalid) = (
        ("MCP_SERVER_KEYS", "4f1a6c0b93d27e58a1f0c3b4d5e697788a9bacbdcedf00112233445566778899"),
        ("MCP_SERVER_KEYS", "secret"),
    );
    let run = |arguments: &[&str], environment: &[(&str, &str)]| {
        child::run("keys_from_env", arguments, environment)
    };
    let nothing = String::new();
    assert_eq!(run(&["valid"], &[valid]), (Some(0), nothing.clone(), nothing.clone()));
    assert_eq!(run(&["invalid"], &[invalid]), (Some(0), nothing.clone(), nothing.clone()));
    assert_eq!(run(&["unset"], &[]), (Some(0), nothing.clone(), nothing));
    assert_eq!(run(&["list"], &[valid]).0, Some(0));
    assert_eq!(run(&["list"], &[invalid, ("OWN_KEYS", "1")]).0, Some(0));
    let (code, _, stderr) = run(&["list"], &[invalid]);
    assert_eq!(code, Some(1));
    assert_eq!(stderr.matches("contains an invalid key").count(), 1, "{stderr}");
}
