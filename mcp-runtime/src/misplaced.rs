//! What programs try where this crate does not have it: methods of features that are off, options in another group, and
//! options of a server that is built already. Each is one error that says what to write: no call of these methods compiles,
//! and rustdoc shows none.

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

/// What is called. It has a lifetime, so that a bound on it is checked where a method is called, and not where it is
/// declared.
#[derive(Debug)]
pub struct Misplaced<'a>(PhantomData<&'a ()>);

/// Declares methods that cannot be called, each with the trait that says why.
macro_rules! misplaced {
    ($(impl $owner:ident { $(fn $method:ident<$($generic:ident),*>($this:ty $(, $argument:ty)*) $(-> $returned:ty)?;)* } $reason:ident)*) => {$(
        impl $owner {
            $(
                #[doc(hidden)]
                pub fn $method<$($generic),*>(self: $this $(, _: $argument)*) $(-> $returned)?
                where
                    for<'a> Misplaced<'a>: $reason,
                {
                    unreachable!("no call of this method compiles")
                }
            )*
        }
    )*};
}

/// Options are set before `build()`.
#[diagnostic::on_unimplemented(
    message = "a server that is built has its options and its items",
    label = "belongs before `.build()`",
    note = "call it on the builder: `server!()` and this, then `.build()?`",
    note = "items are added to a running server with `server.handle().add(..)`"
)]
pub trait BeforeBuild {}

misplaced! {
    impl Server {
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
        fn run<>(&Self) -> Result<()>;
        fn tool<T>(&Self) -> ServerBuilder;
        fn resource<T>(&Self) -> ServerBuilder;
        fn prompt<T>(&Self) -> ServerBuilder;
    } BeforeBuild
}

/// What a running server does, through its handle.
#[diagnostic::on_unimplemented(
    message = "a builder has no server yet that this could change",
    label = "a method of the server's handle",
    note = "a server that is built has one: `let server = builder.build()?; let handle = server.handle();`",
    note = "`.with_handle(|handle| ..)` gets it when `.run()` has built the server; a function takes `&ServerHandle`"
)]
pub trait HandleMethod {}

misplaced! {
    impl ServerBuilder {
        fn handle<R>(&Self) -> R;
        fn tools_changed<>(&Self);
        fn prompts_changed<>(&Self);
        fn resources_changed<>(&Self);
        fn resource_updated<A>(&Self, A);
        fn resource_updated_for<A, B>(&Self, A, B);
        fn end_subscriptions<>(&Self);
        fn reload_keys<>(&Self) -> Result<()>;
        fn reload_auth<>(&Self) -> Result<()>;
    } HandleMethod
}

/// Where a server listens.
#[diagnostic::on_unimplemented(
    message = "the address is not an option of the server",
    label = "said where the server is started",
    note = "with `.run()` it is an argument of the program, `--http 127.0.0.1:8080`; otherwise `.serve_http(\"127.0.0.1:8080\").await`"
)]
pub trait ListenAddress {}

misplaced! {
    impl ServerBuilder {
        fn port<A>(Self, A) -> Self;
        fn bind<A>(Self, A) -> Self;
        fn address<A>(Self, A) -> Self;
        fn addr<A>(Self, A) -> Self;
        fn listen<A>(Self, A) -> Self;
    } ListenAddress
}

#[cfg(feature = "http")]
misplaced! {
    impl HttpOptions {
        fn port<A>(Self, A) -> Self;
        fn bind<A>(Self, A) -> Self;
        fn address<A>(Self, A) -> Self;
        fn addr<A>(Self, A) -> Self;
        fn listen<A>(Self, A) -> Self;
    } ListenAddress
}

/// A server begins with the macro.
#[diagnostic::on_unimplemented(
    message = "a server begins with `mcp_runtime::server!()`",
    label = "write `mcp_runtime::server!()`",
    note = "it knows the name and the version of the program, and where `.discover()` looks for functions"
)]
pub trait ServerMacro {}

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

/// What other clients call `connect`.
#[cfg(feature = "client")]
#[diagnostic::on_unimplemented(
    message = "a client is connected to a server",
    label = "write `Client::connect(target).await?`",
    note = "the target is a command line, a `Command`, a URL, `(reader, writer)` or `&Server`; options come first: `Client::builder()..connect(target)`"
)]
pub trait ClientConnect {}

#[cfg(feature = "client")]
impl Client {
    #[doc(hidden)]
    pub fn new<A>(_: A) -> Ready<std::result::Result<Self, ClientError>>
    where
        for<'a> Misplaced<'a>: ClientConnect,
    {
        unreachable!("no call of this function compiles")
    }
}

/// An option of `.limits(..)`, of all transports.
#[diagnostic::on_unimplemented(
    message = "this is an option of `.limits(..)`",
    label = "belongs into `.limits(|limits| ..)`",
    note = "such as `.limits(|limits| limits.max_in_flight(8))`, on the builder"
)]
pub trait LimitOption {}

/// An option of `.http(..)`.
#[diagnostic::on_unimplemented(
    message = "this is an option of `.http(..)`",
    label = "belongs into `.http(|http| ..)`",
    note = "such as `.http(|http| http.max_body(1 << 20))`, on the builder"
)]
pub trait HttpOption {}

/// An option of `.info(..)`.
#[diagnostic::on_unimplemented(
    message = "this is an option of `.info(..)`",
    label = "belongs into `.info(|info| ..)`",
    note = "such as `.info(|info| info.name(\"shop\"))`, on the builder"
)]
pub trait InfoOption {}

/// An option of `.lists(..)`.
#[diagnostic::on_unimplemented(
    message = "this is an option of `.lists(..)`",
    label = "belongs into `.lists(|lists| ..)`",
    note = "such as `.lists(|lists| lists.page_size(100))`, on the builder"
)]
pub trait ListOption {}

/// An option of `.stdio(..)`.
#[diagnostic::on_unimplemented(
    message = "this is an option of `.stdio(..)`",
    label = "belongs into `.stdio(|stdio| ..)`",
    note = "such as `.stdio(|stdio| stdio.max_line(1 << 20))`, on the builder"
)]
pub trait StdioOption {}

/// An option of `.tasks(..)`.
#[diagnostic::on_unimplemented(
    message = "this is an option of `.tasks(..)`",
    label = "belongs into `.tasks(|tasks| ..)`",
    note = "such as `.tasks(|tasks| tasks.ttl(time))`, on the builder"
)]
pub trait TaskOption {}

/// An option of `.stores(..)`.
#[diagnostic::on_unimplemented(
    message = "this is an option of `.stores(..)`",
    label = "belongs into `.stores(|stores| ..)`",
    note = "such as `.stores(|stores| stores.keys_from_env(\"MCP_KEYS\"))`, on the builder"
)]
pub trait StoreOption {}

/// An option of `.telemetry(..)`.
#[diagnostic::on_unimplemented(
    message = "this is an option of `.telemetry(..)`",
    label = "belongs into `.telemetry(|telemetry| ..)`",
    note = "such as `.telemetry(|telemetry| telemetry.arguments())`, on the builder"
)]
pub trait TelemetryOption {}

misplaced! {
    impl ServerBuilder {
        fn max_in_flight<A>(Self, A) -> Self;
        fn max_queued<A>(Self, A) -> Self;
        fn max_queued_bytes<A>(Self, A) -> Self;
        fn max_result<A>(Self, A) -> Self;
        fn max_argument_values<A>(Self, A) -> Self;
        fn max_concurrency_per_caller<A>(Self, A) -> Self;
        fn max_share_percent<A>(Self, A) -> Self;
        fn max_subscribers<A>(Self, A) -> Self;
        fn max_subscriptions<A>(Self, A) -> Self;
        fn max_pending_changes<A>(Self, A) -> Self;
        fn max_rate_callers<A>(Self, A) -> Self;
        fn max_kept_bytes<A>(Self, A) -> Self;
        fn keep_results<A>(Self, A) -> Self;
        fn rate<A>(Self, A) -> Self;
        fn timeout<A>(Self, A) -> Self;
        fn write_timeout<A>(Self, A) -> Self;
        fn shutdown_timeout<A>(Self, A) -> Self;
        fn client_request_timeout<A>(Self, A) -> Self;
        fn slow_function<A>(Self, A) -> Self;
    } LimitOption
    impl ServerBuilder {
        fn allowed_hosts<A>(Self, A) -> Self;
        fn allowed_origins<A>(Self, A) -> Self;
        fn any_host<>(Self) -> Self;
        fn max_body<A>(Self, A) -> Self;
        fn max_connections<A>(Self, A) -> Self;
        fn max_requests<A>(Self, A) -> Self;
        fn max_unfinished_bytes<A>(Self, A) -> Self;
        fn max_unread_bytes<A>(Self, A) -> Self;
        fn header_timeout<A>(Self, A) -> Self;
        fn body_timeout<A>(Self, A) -> Self;
        fn stateless<>(Self) -> Self;
        fn session_lifetime<A>(Self, A) -> Self;
        fn max_sessions<A>(Self, A) -> Self;
        fn max_session_records<A>(Self, A) -> Self;
        fn max_streams<A>(Self, A) -> Self;
        fn max_stream_age<A>(Self, A) -> Self;
        fn without_resumption<>(Self) -> Self;
        fn max_event_bytes<A>(Self, A) -> Self;
        fn max_event_streams<A>(Self, A) -> Self;
        fn max_events_per_stream<A>(Self, A) -> Self;
        fn implied_scopes<A>(Self, A) -> Self;
        fn caller<A>(Self, A) -> Self;
        fn caller_from<T>(Self) -> Self;
        fn trusted_proxies<A>(Self, A) -> Self;
        fn client_address<A>(Self, A) -> Self;
        fn trust_all_callers<>(Self) -> Self;
        fn from_request<T>(Self) -> Self;
        fn legacy_sse<A>(Self, A) -> Self;
        fn health_paths<A, B>(Self, A, B) -> Self;
        fn without_health<>(Self) -> Self;
        fn readiness<A, B>(Self, A, B) -> Self;
        fn readiness_timeout<A>(Self, A) -> Self;
        fn shutdown_delay<A>(Self, A) -> Self;
        fn behind_proxy<>(Self) -> Self;
        fn path<A>(Self, A) -> Self;
    } HttpOption
    impl ServerBuilder {
        fn name<A>(Self, A) -> Self;
        fn version<A>(Self, A) -> Self;
        fn title<A>(Self, A) -> Self;
        fn description<A>(Self, A) -> Self;
        fn website<A>(Self, A) -> Self;
        fn icon<A>(Self, A) -> Self;
        fn instructions<A>(Self, A) -> Self;
    } InfoOption
    impl ServerBuilder {
        fn page_size<A>(Self, A) -> Self;
        fn visible<A>(Self, A) -> Self;
        fn require_descriptions<>(Self) -> Self;
    } ListOption
    impl ServerBuilder {
        fn max_line<A>(Self, A) -> Self;
    } StdioOption
    impl ServerBuilder {
        fn ttl<A>(Self, A) -> Self;
        fn poll_interval<A>(Self, A) -> Self;
        fn max_running<A>(Self, A) -> Self;
    } TaskOption
    impl ServerBuilder {
        fn keys<A>(Self, A) -> Self;
        fn keys_from_env<A>(Self, A) -> Self;
        fn keys_from_file<A>(Self, A) -> Self;
        fn allow_unchecked_sessions<>(Self) -> Self;
        fn events<A>(Self, A) -> Self;
    } StoreOption
    impl ServerBuilder {
        fn arguments<>(Self) -> Self;
        fn client_logging<>(Self) -> Self;
        fn forward_events<>(Self) -> Self;
        fn metrics<>(Self) -> Self;
        fn metrics_path<A>(Self, A) -> Self;
        fn metrics_address<A>(Self, A) -> Self;
    } TelemetryOption
    impl Limits {
        fn max_body<A>(Self, A) -> Self;
        fn max_connections<A>(Self, A) -> Self;
        fn max_requests<A>(Self, A) -> Self;
        fn max_unfinished_bytes<A>(Self, A) -> Self;
        fn max_unread_bytes<A>(Self, A) -> Self;
        fn header_timeout<A>(Self, A) -> Self;
        fn body_timeout<A>(Self, A) -> Self;
        fn session_lifetime<A>(Self, A) -> Self;
        fn max_sessions<A>(Self, A) -> Self;
        fn max_session_records<A>(Self, A) -> Self;
        fn max_streams<A>(Self, A) -> Self;
        fn max_stream_age<A>(Self, A) -> Self;
        fn max_event_bytes<A>(Self, A) -> Self;
        fn max_event_streams<A>(Self, A) -> Self;
        fn max_events_per_stream<A>(Self, A) -> Self;
    } HttpOption
}

#[cfg(feature = "http")]
misplaced! {
    impl HttpOptions {
        fn max_in_flight<A>(Self, A) -> Self;
        fn max_queued<A>(Self, A) -> Self;
        fn max_queued_bytes<A>(Self, A) -> Self;
        fn max_result<A>(Self, A) -> Self;
        fn max_argument_values<A>(Self, A) -> Self;
        fn max_concurrency_per_caller<A>(Self, A) -> Self;
        fn max_share_percent<A>(Self, A) -> Self;
        fn max_subscribers<A>(Self, A) -> Self;
        fn max_subscriptions<A>(Self, A) -> Self;
        fn max_pending_changes<A>(Self, A) -> Self;
        fn max_rate_callers<A>(Self, A) -> Self;
        fn max_kept_bytes<A>(Self, A) -> Self;
        fn keep_results<A>(Self, A) -> Self;
        fn rate<A>(Self, A) -> Self;
        fn timeout<A>(Self, A) -> Self;
        fn write_timeout<A>(Self, A) -> Self;
        fn shutdown_timeout<A>(Self, A) -> Self;
        fn client_request_timeout<A>(Self, A) -> Self;
        fn slow_function<A>(Self, A) -> Self;
    } LimitOption
}

/// What other clients call `call`.
#[cfg(feature = "client")]
#[diagnostic::on_unimplemented(
    message = "a client has no method of this name",
    label = "write `.call(name, arguments)`",
    note = "`.call(name, arguments)` does it: see `mcp_runtime::client::Client`"
)]
pub trait ClientCall {}

/// What other clients call `read`.
#[cfg(feature = "client")]
#[diagnostic::on_unimplemented(
    message = "a client has no method of this name",
    label = "write `.read(uri)`",
    note = "`.read(uri)` does it: see `mcp_runtime::client::Client`"
)]
pub trait ClientRead {}

/// What other clients call `prompt`.
#[cfg(feature = "client")]
#[diagnostic::on_unimplemented(
    message = "a client has no method of this name",
    label = "write `.prompt(name, arguments)`",
    note = "`.prompt(name, arguments)` does it: see `mcp_runtime::client::Client`"
)]
pub trait ClientPrompt {}

/// What other clients call `tools`, `resources` and so on.
#[cfg(feature = "client")]
#[diagnostic::on_unimplemented(
    message = "a client has no method of this name",
    label = "write `.tools()`, `.resources()`, `.templates()` or `.prompts()`",
    note = "`.tools()`, `.resources()`, `.templates()` or `.prompts()` does it: see `mcp_runtime::client::Client`"
)]
pub trait ClientLists {}

#[cfg(feature = "client")]
misplaced! {
    impl Client {
        fn call_tool<A, B, R>(&Self, A, B) -> Ready<std::result::Result<R, ClientError>>;
    } ClientCall
    impl Client {
        fn read_resource<A, R>(&Self, A) -> Ready<std::result::Result<R, ClientError>>;
    } ClientRead
    impl Client {
        fn get_prompt<A, B, R>(&Self, A, B) -> Ready<std::result::Result<R, ClientError>>;
    } ClientPrompt
    impl Client {
        fn list_tools<R>(&Self) -> Ready<std::result::Result<R, ClientError>>;
        fn list_resources<R>(&Self) -> Ready<std::result::Result<R, ClientError>>;
        fn list_resource_templates<R>(&Self) -> Ready<std::result::Result<R, ClientError>>;
        fn list_prompts<R>(&Self) -> Ready<std::result::Result<R, ClientError>>;
    } ClientLists
}

/// OpenTelemetry is configured by the program.
#[diagnostic::on_unimplemented(
    message = "a server has no option for OpenTelemetry",
    label = "not an option of `.telemetry(..)`",
    note = "with the feature `otel` it records with the global providers: set them with `opentelemetry::global` before it runs"
)]
pub trait OtelOption {}

misplaced! {
    impl TelemetryOptions {
        fn otel<A>(Self, A) -> Self;
        fn opentelemetry<A>(Self, A) -> Self;
        fn otlp<A>(Self, A) -> Self;
    } OtelOption
}

/// The feature `cli`.
#[cfg(not(feature = "cli"))]
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `cli` of `mcp-runtime`",
    label = "the feature `cli` is off",
    note = "add it to the dependency in Cargo.toml: `features = [\"cli\"]`"
)]
pub trait CliFeature {}

#[cfg(not(feature = "cli"))]
misplaced! {
    impl ServerBuilder {
        fn run<>(Self) -> Result<()>;
        fn run_with_args<A>(Self, A) -> Result<()>;
    } CliFeature
    impl Server {
        fn run_with_args<A>(&Self, A) -> Result<()>;
    } CliFeature
    impl TelemetryOptions {
        fn forward_events<>(Self) -> Self;
    } CliFeature
}

/// The feature `stdio`.
#[cfg(not(feature = "stdio"))]
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `stdio` of `mcp-runtime`",
    label = "the feature `stdio` is off",
    note = "add it to the dependency in Cargo.toml: `features = [\"stdio\"]`"
)]
pub trait StdioFeature {}

#[cfg(not(feature = "stdio"))]
misplaced! {
    impl ServerBuilder {
        fn serve_stdio<>(Self) -> Ready<Result<()>>;
    } StdioFeature
    impl Server {
        fn serve_stdio<>(&Self) -> Ready<Result<()>>;
    } StdioFeature
}

/// The feature `http`.
#[cfg(not(feature = "http"))]
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `http` of `mcp-runtime`",
    label = "the feature `http` is off",
    note = "add it to the dependency in Cargo.toml: `features = [\"http\"]`"
)]
pub trait HttpFeature {}

#[cfg(not(feature = "http"))]
misplaced! {
    impl ServerBuilder {
        fn http<A>(Self, A) -> Self;
        fn serve_http<A>(Self, A) -> Ready<Result<()>>;
        fn into_service<R>(Self) -> Result<R>;
    } HttpFeature
    impl Server {
        fn serve_http<A>(&Self, A) -> Ready<Result<()>>;
        fn serve_http_on<A>(&Self, A) -> Ready<Result<()>>;
        fn serve_http_until<A, B>(&Self, A, B) -> Ready<Result<()>>;
        fn into_service<R>(&Self) -> Result<R>;
    } HttpFeature
    impl ServerInfo {
        fn registry_name<A>(Self, A) -> Self;
        fn public_url<A>(Self, A) -> Self;
    } HttpFeature
    impl Stores {
        fn revocations<A>(Self, A) -> Self;
        fn events<A>(Self, A) -> Self;
    } HttpFeature
}

/// The feature `axum`.
#[cfg(not(feature = "axum"))]
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `axum` of `mcp-runtime`",
    label = "the feature `axum` is off",
    note = "add it to the dependency in Cargo.toml: `features = [\"axum\"]`"
)]
pub trait AxumFeature {}

#[cfg(not(feature = "axum"))]
misplaced! {
    impl ServerBuilder {
        fn into_router<R>(Self) -> Result<R>;
    } AxumFeature
    impl Server {
        fn into_router<R>(&Self) -> Result<R>;
    } AxumFeature
}

/// The feature `auth`.
#[cfg(not(feature = "auth"))]
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `auth` of `mcp-runtime`",
    label = "the feature `auth` is off",
    note = "add it to the dependency in Cargo.toml: `features = [\"auth\"]`"
)]
pub trait AuthFeature {}

#[cfg(not(feature = "auth"))]
misplaced! {
    impl ServerHandle {
        fn reload_auth<>(&Self) -> Result<()>;
    } AuthFeature
}

#[cfg(not(feature = "auth"))]
impl ServerBuilder {
    /// The bound is one on the argument: an argument that does not exist either is one error.
    #[doc(hidden)]
    pub fn auth<A: AuthFeature>(self, _: A) -> Self {
        unreachable!("no call of this method compiles")
    }
}

/// The feature `config`.
#[cfg(not(feature = "config"))]
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `config` of `mcp-runtime`",
    label = "the feature `config` is off",
    note = "add it to the dependency in Cargo.toml: `features = [\"config\"]`"
)]
pub trait ConfigFeature {}

#[cfg(not(feature = "config"))]
misplaced! {
    impl ServerBuilder {
        fn config<S>(Self) -> Self;
        fn state_from<A>(Self, A) -> Self;
    } ConfigFeature
}

/// The feature `metrics`.
#[cfg(not(feature = "metrics"))]
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `metrics` of `mcp-runtime`",
    label = "the feature `metrics` is off",
    note = "add it to the dependency in Cargo.toml: `features = [\"metrics\"]`"
)]
pub trait MetricsFeature {}

#[cfg(not(feature = "metrics"))]
misplaced! {
    impl TelemetryOptions {
        fn metrics<>(Self) -> Self;
        fn metrics_path<A>(Self, A) -> Self;
        fn metrics_address<A>(Self, A) -> Self;
    } MetricsFeature
    impl Server {
        fn metrics<>(&Self) -> Option<String>;
    } MetricsFeature
}

/// The feature `client-oauth`.
#[cfg(all(feature = "client", not(feature = "client-oauth")))]
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `client-oauth` of `mcp-runtime`",
    label = "the feature `client-oauth` is off",
    note = "add it to the dependency in Cargo.toml: `features = [\"client-oauth\"]`"
)]
pub trait ClientOauthFeature {}

#[cfg(all(feature = "client", not(feature = "client-oauth")))]
impl ClientBuilder {
    /// The bound is one on the argument: an argument that does not exist either is one error.
    #[doc(hidden)]
    pub fn oauth<A: ClientOauthFeature>(self, _: A) -> Self {
        unreachable!("no call of this method compiles")
    }
}

/// The feature `client-browser`.
#[cfg(all(feature = "client-oauth", not(feature = "client-browser")))]
#[diagnostic::on_unimplemented(
    message = "this method needs the feature `client-browser` of `mcp-runtime`",
    label = "the feature `client-browser` is off",
    note = "add it to the dependency in Cargo.toml: `features = [\"client-browser\"]`"
)]
pub trait ClientBrowserFeature {}

#[cfg(all(feature = "client-oauth", not(feature = "client-browser")))]
misplaced! {
    impl OAuth {
        fn open_browser<>(Self) -> Self;
    } ClientBrowserFeature
}
