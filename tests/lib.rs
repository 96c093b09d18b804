//! Shared by the test binaries: a client that speaks raw JSON, and programs as processes. Also the pages of the guide
//! and the examples of the attributes, whose crate cannot depend on the runtime: their Rust blocks are compiled and run as
//! doctests; `build.rs` takes those with `#[test]` functions out. Those of the README are doctests of `mcp-runtime`, and those of
//! pages that need crates which take long to compile are doctests of `mcp-external-tests`.

pub mod programs;
pub mod support;

#[cfg(doctest)]
mod examples_of_attributes {
    #[doc = include_str!("../mcp-macros/src/examples/main.md")]
    struct Main;
    #[doc = include_str!("../mcp-macros/src/examples/mcp_config.md")]
    struct Config;
    #[doc = include_str!("../mcp-macros/src/examples/mcp_event.md")]
    struct Event;
    #[doc = include_str!("../mcp-macros/src/examples/mcp_prompt.md")]
    struct Prompt;
    #[doc = include_str!("../mcp-macros/src/examples/mcp_resource.md")]
    struct Resource;
    #[doc = include_str!("../mcp-macros/src/examples/mcp_rule.md")]
    struct Rule;
    #[doc = include_str!("../mcp-macros/src/examples/mcp_service.md")]
    struct Service;
    #[doc = include_str!("../mcp-macros/src/examples/mcp_tool.md")]
    struct Tool;
    #[doc = include_str!("../mcp-macros/src/examples/mcp_type.md")]
    struct Type;
}

#[cfg(doctest)]
mod docs {
    #[doc = include_str!("../docs/README.md")]
    struct Index;
    #[doc = include_str!("../docs/tools.md")]
    struct Tools;
    #[doc = include_str!("../docs/resources.md")]
    struct Resources;
    #[doc = include_str!("../docs/settings.md")]
    struct Settings;
    #[doc = include_str!("../docs/install.md")]
    struct Install;
    #[doc = include_str!("../docs/dev.md")]
    struct Dev;
    #[doc = include_str!("../docs/skills.md")]
    struct Skills;
    #[doc = include_str!("../docs/prompts.md")]
    struct Prompts;
    #[doc = include_str!("../docs/parameters.md")]
    struct Parameters;
    #[doc = include_str!("../docs/results-and-errors.md")]
    struct Results;
    #[doc = include_str!("../docs/client.md")]
    struct TheClient;
    #[doc = include_str!("../docs/client-requests.md")]
    struct ClientRequests;
    #[doc = include_str!("../docs/subscriptions.md")]
    struct Subscriptions;
    #[doc = include_str!("../docs/events.md")]
    struct Events;
    #[doc = include_str!("../docs/tasks.md")]
    struct Tasks;
    #[doc = include_str!("../docs/search.md")]
    struct Search;
    #[doc = include_str!("../docs/state.md")]
    struct State;
    #[doc = include_str!("../docs/token-exchange.md")]
    struct TokenExchange;
    #[doc = include_str!("../docs/openapi.md")]
    struct OpenApi;
    #[doc = include_str!("../docs/other-servers.md")]
    struct OtherServers;
    #[doc = include_str!(concat!(env!("OUT_DIR"), "/additions.md"))]
    struct Additions;
    #[doc = include_str!("../docs/apps.md")]
    struct Apps;
    #[doc = include_str!("../docs/layers.md")]
    struct Layers;
    #[doc = include_str!("../docs/context.md")]
    struct Request;
    #[doc = include_str!("../docs/transports.md")]
    struct Transports;
    #[doc = include_str!("../docs/versions.md")]
    struct Versions;
    #[doc = include_str!("../docs/sessions.md")]
    struct Sessions;
    #[doc = include_str!(concat!(env!("OUT_DIR"), "/testing.md"))]
    struct Testing;
    #[doc = include_str!("../docs/tool-or-resource.md")]
    struct ToolOrResource;
    #[doc = include_str!("../docs/authorization.md")]
    struct Authorization;
    #[doc = include_str!(concat!(env!("OUT_DIR"), "/authentication.md"))]
    struct Authentication;
    #[doc = include_str!("../docs/limits.md")]
    struct Limits;
    #[doc = include_str!(concat!(env!("OUT_DIR"), "/deploy.md"))]
    struct Deploy;
    #[doc = include_str!(concat!(env!("OUT_DIR"), "/server-card.md"))]
    struct ServerCard;
    #[doc = include_str!("../docs/security.md")]
    struct Security;
    #[doc = include_str!("../docs/logging.md")]
    struct Logging;
    #[doc = include_str!("../docs/graceful-shutdown.md")]
    struct GracefulShutdown;
    #[doc = include_str!(concat!(env!("OUT_DIR"), "/behind-a-proxy.md"))]
    struct BehindAProxy;
    #[doc = include_str!("../docs/agents.md")]
    struct Agents;
    #[doc = include_str!(concat!(env!("OUT_DIR"), "/from-rmcp.md"))]
    struct FromRmcp;
    #[doc = include_str!("../docs/troubleshooting.md")]
    struct Troubleshooting;
    #[doc = include_str!("../docs/conformance.md")]
    struct Conformance;
    #[doc = include_str!("../docs/performance.md")]
    struct Performance;
    #[doc = include_str!("../docs/architecture.md")]
    struct Architecture;
}
