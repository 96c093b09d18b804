//! Explanations with examples, one page for each subject.
//!
#![doc = include_str!("guide_links.txt")]
#![doc = include_str!("../docs/README.md")]

// A page's links have labels, which its last lines lead to files, for readers of the repository. The first definition of
// a label counts, so that here the same labels lead to modules.
macro_rules! pages {
    ($($page:ident = $file:literal;)*) => {$(
        #[doc = include_str!("guide_links.txt")]
        #[doc = include_str!(concat!("../docs/", $file))]
        pub mod $page {}
    )*};
}

pages! {
    tools = "tools.md";
    resources = "resources.md";
    skills = "skills.md";
    prompts = "prompts.md";
    parameters = "parameters.md";
    results_and_errors = "results-and-errors.md";
    client_requests = "client-requests.md";
    tasks = "tasks.md";
    state = "state.md";
    settings = "settings.md";
    install = "install.md";
    dev = "dev.md";
    openapi = "openapi.md";
    token_exchange = "token-exchange.md";
    other_servers = "other-servers.md";
    additions = "additions.md";
    search = "search.md";
    apps = "apps.md";
    layers = "layers.md";
    telemetry = "telemetry.md";
    context = "context.md";
    transports = "transports.md";
    versions = "versions.md";
    subscriptions = "subscriptions.md";
    events = "events.md";
    sessions = "sessions.md";
    client = "client.md";
    limits = "limits.md";
    testing = "testing.md";
    tool_or_resource = "tool-or-resource.md";
    database = "database.md";
    authorization = "authorization.md";
    authentication = "authentication.md";
    logging = "logging.md";
    graceful_shutdown = "graceful-shutdown.md";
    behind_a_proxy = "behind-a-proxy.md";
    deploy = "deploy.md";
    server_card = "server-card.md";
    cluster = "cluster.md";
    security = "security.md";
    agents = "agents.md";
    from_rmcp = "from-rmcp.md";
    troubleshooting = "troubleshooting.md";
    conformance = "conformance.md";
    performance = "performance.md";
    architecture = "architecture.md";
}
