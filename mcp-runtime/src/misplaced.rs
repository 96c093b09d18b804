//! Methods that programs try on a type that does not have them: methods of features that are off, options of another group,
//! and options of a server that is already built. Each gives one error that says what to write. No call of these methods
//! compiles, and rustdoc shows none of them.

#[cfg(any(feature = "client", not(feature = "http"), not(feature = "stdio")))]
use std::future::Ready;
use std::marker::PhantomData;

#[cfg(all(feature = "client", not(feature = "client-oauth")))]
use crate::client::ClientBuilder;
#[cfg(all(feature = "client-oauth", not(feature = "client-browser")))]
use crate::client::OAuth;
#[cfg(feature = "client")]
use crate::client::{Client, Error as ClientError};
#[cfg(feature = "http")]
use crate::core::config::HttpOptions;
#[cfg(not(feature = "http"))]
use crate::core::config::{ServerInfo, Stores};
#[cfg(not(feature = "auth"))]
use crate::core::server::ServerHandle;
use crate::core::{
    config::{Limits, TelemetryOptions},
    server::{Result, Server, ServerBuilder},
};

/// The receiver of a misplaced call. It has a lifetime, so that its bounds are checked where a method is called and not
/// where it is declared.
#[derive(Debug)]
pub struct Misplaced<'a>(PhantomData<&'a ()>);

/// The return type of the misplaced methods of [`Client`].
#[cfg(feature = "client")]
type Answer<R> = Ready<std::result::Result<R, ClientError>>;

/// Declares a reason, with the message, the label and the notes of the error, and the methods of each type that it is the
/// error of: see `stubs`.
macro_rules! misplaced {
    (
        $reason:ident: $message:literal, $label:literal $(, $note:literal)+;
        $($($(#[$attr:meta])* $owner:ident),+ => $methods:tt)*
    ) => {
        #[doc = $message]
        #[diagnostic::on_unimplemented(message = $message, label = $label, $(note = $note),+)]
        pub trait $reason {}

        $($($(#[$attr])* stubs! { $reason $owner $methods })+)*
    };
}

/// Declares methods that cannot be called: setters by their names and arguments, others by their signatures.
macro_rules! stubs {
    ($reason:ident $owner:ident {
        $(fn $method:ident $(<$($generic:ident),+>)?($this:ty $(, $argument:ty)*) $(-> $returned:ty)?;)*
    }) => {
        impl $owner {
            $(
                #[doc(hidden)]
                pub fn $method $(<$($generic),+>)?(self: $this $(, _: $argument)*) $(-> $returned)?
                where
                    for<'a> Misplaced<'a>: $reason,
                {
                    unreachable!("no call of this method compiles")
                }
            )*
        }
    };
    ($reason:ident $owner:ident { $($setter:ident $(<$type:ident>)?($($argument:ident),*))* }) => {
        impl $owner {
            $(
                #[doc(hidden)]
                pub fn $setter<$($type,)? $($argument),*>(self $(, _: $argument)*) -> Self
                where
                    for<'a> Misplaced<'a>: $reason,
                {
                    unreachable!("no call of this method compiles")
                }
            )*
        }
    };
}

misplaced! {
    BeforeBuild:
        "a server that is built has its options and its items",
        "belongs before `.build()`",
        "call it on the builder: `server!()` and this, then `.build()?`",
        "items are added to a running server with `server.handle().add(..)`";
    Server => {
        fn limits<A>(&Self, A) -> ServerBuilder;
        fn lists<A>(&Self, A) -> ServerBuilder;
        fn info<A>(&Self, A) -> ServerBuilder;
        fn stdio<A>(&Self, A) -> ServerBuilder;
        fn http<A>(&Self, A) -> ServerBuilder;
        fn stores<A>(&Self, A) -> ServerBuilder;
        fn layer<A>(&Self, A) -> ServerBuilder;
        fn auth<A>(&Self, A) -> ServerBuilder;
        fn service<A>(&Self, A) -> ServerBuilder;
        fn add<A>(&Self, A) -> ServerBuilder;
        fn run(&Self) -> Result<()>;
        fn tool<T>(&Self) -> ServerBuilder;
        fn resource<T>(&Self) -> ServerBuilder;
        fn prompt<T>(&Self) -> ServerBuilder;
    }
}

misplaced! {
    HandleMethod:
        "a builder has no server yet that this could change",
        "a method of the server's handle",
        "a server that is built has one: `let server = builder.build()?; let handle = server.handle();`",
        "`.with_handle(|handle| ..)` gets it when `.run()` has built the server; a function takes `&ServerHandle`";
    ServerBuilder => {
        fn handle<R>(&Self) -> R;
        fn tools_changed(&Self);
        fn prompts_changed(&Self);
        fn resources_changed(&Self);
        fn resource_updated<A>(&Self, A);
        fn resource_updated_for<A, B>(&Self, A, B);
        fn end_subscriptions(&Self);
        fn reload_keys(&Self) -> Result<()>;
        fn reload_auth(&Self) -> Result<()>;
    }
}

/// The bound is one on the type: a call with an argument, or without a type, is one error.
#[diagnostic::on_unimplemented(
    message = "an event is added with `.add(..)`",
    label = "write `.add(mcp_runtime::event::of::<name>())`",
    note = "`name` is a function with `#[mcp_event]`; `.discover()` finds it by itself"
)]
pub trait AddedEvent {}

impl ServerBuilder {
    #[doc(hidden)]
    pub fn event<E: AddedEvent>(self /* write `.add(mcp_runtime::event::of::<name>())` */) -> Self {
        unreachable!("no call of this method compiles")
    }
}

misplaced! {
    ListenAddress:
        "the address is not an option of the server",
        "said where the server is started",
        "with `.run()` it is an argument of the program, `--http 127.0.0.1:8080`; otherwise `.serve_http(\"127.0.0.1:8080\").await`";
    ServerBuilder, #[cfg(feature = "http")] HttpOptions => {
        port(A) bind(A) address(A) addr(A) listen(A)
    }
}

misplaced! {
    ServerMacro:
        "a server begins with `mcp_runtime::server!()`",
        "write `mcp_runtime::server!()`",
        "it knows the name and the version of the program, and where `.discover()` looks for functions";
}

impl Server {
    #[doc(hidden)]
    #[expect(clippy::new_ret_no_self, reason = "no call of it compiles")]
    pub fn new() -> ServerBuilder
    where
        for<'a> Misplaced<'a>: ServerMacro,
    {
        unreachable!("no call of this function compiles")
    }
}

misplaced! {
    LimitOption:
        "this is an option of `.limits(..)`",
        "belongs into `.limits(|limits| ..)`",
        "such as `.limits(|limits| limits.max_in_flight(8))`, on the builder";
    ServerBuilder, #[cfg(feature = "http")] HttpOptions => {
        max_in_flight(A) max_queued(A) max_queued_bytes(A) max_result(A) max_argument_values(A)
        max_concurrency_per_caller(A) max_share_percent(A) max_subscribers(A) max_subscriptions(A)
        max_pending_changes(A) max_rate_callers(A) max_consumed_calls(A) rate(A)
        timeout(A) write_timeout(A) shutdown_timeout(A) client_request_timeout(A) slow_function(A)
    }
}

misplaced! {
    HttpOption:
        "this is an option of `.http(..)`",
        "belongs into `.http(|http| ..)`",
        "such as `.http(|http| http.max_body(1 << 20))`, on the builder";
    ServerBuilder, Limits => {
        max_body(A) max_connections(A) max_requests(A) max_unfinished_bytes(A) max_unread_bytes(A)
        header_timeout(A) body_timeout(A) session_lifetime(A) max_sessions(A) max_session_records(A)
        max_streams(A) max_stream_age(A) max_event_bytes(A) max_event_streams(A) max_events_per_stream(A)
    }
    ServerBuilder => {
        allowed_hosts(A) allowed_origins(A) any_host() stateless() without_resumption() implied_scopes(A)
        caller(A) caller_from<T>() trusted_proxies(A) client_address(A) trust_all_callers() from_request<T>()
        legacy_sse(A) health_paths(A, B) without_health() readiness(A, B) readiness_needs_store()
        readiness_timeout(A) shutdown_delay(A) behind_proxy() path(A)
    }
}

misplaced! {
    InfoOption:
        "this is an option of `.info(..)`",
        "belongs into `.info(|info| ..)`",
        "such as `.info(|info| info.name(\"shop\"))`, on the builder";
    ServerBuilder => { name(A) version(A) title(A) description(A) website(A) icon(A) instructions(A) }
}

misplaced! {
    ListOption:
        "this is an option of `.lists(..)`",
        "belongs into `.lists(|lists| ..)`",
        "such as `.lists(|lists| lists.page_size(100))`, on the builder";
    ServerBuilder => { page_size(A) visible(A) require_descriptions() }
}

misplaced! {
    StdioOption:
        "this is an option of `.stdio(..)`",
        "belongs into `.stdio(|stdio| ..)`",
        "such as `.stdio(|stdio| stdio.max_line(1 << 20))`, on the builder";
    ServerBuilder => { max_line(A) }
}

misplaced! {
    TaskOption:
        "this is an option of `.tasks(..)`",
        "belongs into `.tasks(|tasks| ..)`",
        "such as `.tasks(|tasks| tasks.ttl(time))`, on the builder";
    ServerBuilder => { ttl(A) poll_interval(A) max_running(A) }
}

misplaced! {
    StoreOption:
        "this is an option of `.stores(..)`",
        "belongs into `.stores(|stores| ..)`",
        "such as `.stores(|stores| stores.keys_from_env(\"MCP_KEYS\"))`, on the builder";
    ServerBuilder => { keys(A) keys_from_env(A) keys_from_file(A) allow_unchecked_sessions() events(A) }
}

misplaced! {
    TelemetryOption:
        "this is an option of `.telemetry(..)`",
        "belongs into `.telemetry(|telemetry| ..)`",
        "such as `.telemetry(|telemetry| telemetry.arguments())`, on the builder";
    ServerBuilder => {
        arguments() client_logging() forward_events() metrics() metrics_path(A) metrics_address(A)
    }
}

misplaced! {
    OtelOption:
        "a server has no option for OpenTelemetry",
        "not an option of `.telemetry(..)`",
        "with the feature `otel` it records with the global providers: set them with `opentelemetry::global` before it runs";
    TelemetryOptions => { otel(A) opentelemetry(A) otlp(A) }
}

#[cfg(feature = "client")]
misplaced! {
    ClientConnect:
        "a client is connected to a server",
        "write `Client::connect(target).await?`",
        "the target is a command line, a `Command`, a URL, `(reader, writer)` or `&Server`; options come first: `Client::builder()..connect(target)`";
}

#[cfg(feature = "client")]
impl Client {
    #[doc(hidden)]
    pub fn new<A>(_: A) -> Answer<Self>
    where
        for<'a> Misplaced<'a>: ClientConnect,
    {
        unreachable!("no call of this function compiles")
    }
}

#[cfg(feature = "client")]
misplaced! {
    ClientCall:
        "a client has no method of this name",
        "write `.call(name, arguments)`",
        "`.call(name, arguments)` does it: see `mcp_runtime::client::Client`";
    Client => { fn call_tool<A, B, R>(&Self, A, B) -> Answer<R>; }
}

#[cfg(feature = "client")]
misplaced! {
    ClientRead:
        "a client has no method of this name",
        "write `.read(uri)`",
        "`.read(uri)` does it: see `mcp_runtime::client::Client`";
    Client => { fn read_resource<A, R>(&Self, A) -> Answer<R>; }
}

#[cfg(feature = "client")]
misplaced! {
    ClientPrompt:
        "a client has no method of this name",
        "write `.prompt(name, arguments)`",
        "`.prompt(name, arguments)` does it: see `mcp_runtime::client::Client`";
    Client => { fn get_prompt<A, B, R>(&Self, A, B) -> Answer<R>; }
}

#[cfg(feature = "client")]
misplaced! {
    ClientLists:
        "a client has no method of this name",
        "write `.tools()`, `.resources()`, `.templates()` or `.prompts()`",
        "`.tools()`, `.resources()`, `.templates()` or `.prompts()` does it: see `mcp_runtime::client::Client`";
    Client => {
        fn list_tools<R>(&Self) -> Answer<R>;
        fn list_resources<R>(&Self) -> Answer<R>;
        fn list_resource_templates<R>(&Self) -> Answer<R>;
        fn list_prompts<R>(&Self) -> Answer<R>;
    }
}

#[cfg(not(feature = "cli"))]
misplaced! {
    CliFeature:
        "this method needs the feature `cli` of `mcp-runtime`",
        "the feature `cli` is off",
        "add it to the dependency in Cargo.toml: `features = [\"cli\"]`";
    ServerBuilder => {
        fn run(Self) -> Result<()>;
        fn run_with_args<A>(Self, A) -> Result<()>;
    }
    Server => { fn run_with_args<A>(&Self, A) -> Result<()>; }
    TelemetryOptions => { forward_events() }
}

#[cfg(not(feature = "stdio"))]
misplaced! {
    StdioFeature:
        "this method needs the feature `stdio` of `mcp-runtime`",
        "the feature `stdio` is off",
        "add it to the dependency in Cargo.toml: `features = [\"stdio\"]`";
    ServerBuilder => { fn serve_stdio(Self) -> Ready<Result<()>>; }
    Server => { fn serve_stdio(&Self) -> Ready<Result<()>>; }
}

#[cfg(not(feature = "http"))]
misplaced! {
    HttpFeature:
        "this method needs the feature `http` of `mcp-runtime`",
        "the feature `http` is off",
        "add it to the dependency in Cargo.toml: `features = [\"http\"]`";
    ServerBuilder => {
        fn http<A>(Self, A) -> Self;
        fn serve_http<A>(Self, A) -> Ready<Result<()>>;
        fn into_service<R>(Self) -> Result<R>;
    }
    Server => {
        fn serve_http<A>(&Self, A) -> Ready<Result<()>>;
        fn serve_http_on<A>(&Self, A) -> Ready<Result<()>>;
        fn serve_http_until<A, B>(&Self, A, B) -> Ready<Result<()>>;
        fn into_service<R>(&Self) -> Result<R>;
    }
    ServerInfo => { registry_name(A) public_url(A) }
    Stores => { revocations(A) events(A) }
}

#[cfg(not(feature = "axum"))]
misplaced! {
    AxumFeature:
        "this method needs the feature `axum` of `mcp-runtime`",
        "the feature `axum` is off",
        "add it to the dependency in Cargo.toml: `features = [\"axum\"]`";
    ServerBuilder => { fn into_router<R>(Self) -> Result<R>; }
    Server => { fn into_router<R>(&Self) -> Result<R>; }
}

#[cfg(not(feature = "auth"))]
misplaced! {
    AuthFeature:
        "this method needs the feature `auth` of `mcp-runtime`",
        "the feature `auth` is off",
        "add it to the dependency in Cargo.toml: `features = [\"auth\"]`";
    ServerHandle => { fn reload_auth(&Self) -> Result<()>; }
}

#[cfg(not(feature = "auth"))]
impl ServerBuilder {
    /// The bound is one on the argument: an argument that does not exist either is one error.
    #[doc(hidden)]
    pub fn auth<A: AuthFeature>(self, _: A) -> Self {
        unreachable!("no call of this method compiles")
    }
}

#[cfg(not(feature = "config"))]
misplaced! {
    ConfigFeature:
        "this method needs the feature `config` of `mcp-runtime`",
        "the feature `config` is off",
        "add it to the dependency in Cargo.toml: `features = [\"config\"]`";
    ServerBuilder => { config<S>() state_from(A) }
}

#[cfg(not(feature = "metrics"))]
misplaced! {
    MetricsFeature:
        "this method needs the feature `metrics` of `mcp-runtime`",
        "the feature `metrics` is off",
        "add it to the dependency in Cargo.toml: `features = [\"metrics\"]`";
    TelemetryOptions => { metrics() metrics_path(A) metrics_address(A) }
    Server => { fn metrics(&Self) -> Option<String>; }
}

#[cfg(all(feature = "client", not(feature = "client-oauth")))]
misplaced! {
    ClientOauthFeature:
        "this method needs the feature `client-oauth` of `mcp-runtime`",
        "the feature `client-oauth` is off",
        "add it to the dependency in Cargo.toml: `features = [\"client-oauth\"]`";
}

#[cfg(all(feature = "client", not(feature = "client-oauth")))]
impl ClientBuilder {
    /// The bound is one on the argument: an argument that does not exist either is one error.
    #[doc(hidden)]
    pub fn oauth<A: ClientOauthFeature>(self, _: A) -> Self {
        unreachable!("no call of this method compiles")
    }
}

#[cfg(all(feature = "client-oauth", not(feature = "client-browser")))]
misplaced! {
    ClientBrowserFeature:
        "this method needs the feature `client-browser` of `mcp-runtime`",
        "the feature `client-browser` is off",
        "add it to the dependency in Cargo.toml: `features = [\"client-browser\"]`";
    OAuth => { open_browser() }
}
