//! Methods of features that are off. Each gives one error that names the feature. No call of these methods compiles, and
//! rustdoc shows none of them.

use std::marker::PhantomData;

/// The receiver of such a call. It has a lifetime, so that its bounds are checked where a method is called and not where it
/// is declared.
#[derive(Debug)]
pub struct Disabled<'a>(PhantomData<&'a ()>);

/// Declares the trait of a feature that is off, with the message, the label and the note of its errors, and the methods that
/// need the feature, by their types.
macro_rules! missing {
    (
        $feature:ident: $message:literal, $label:literal, $note:literal;
        $($(#[$of_owner:meta])* $owner:ty {
            $(fn $method:ident $(<$($generic:ident),+>)?($this:ty $(, $argument:ty)*) -> $returned:ty;)*
        })*
    ) => {
        #[doc = $message]
        #[diagnostic::on_unimplemented(message = $message, label = $label, note = $note)]
        pub trait $feature {}

        $($(#[$of_owner])* impl $owner {
            $(
                #[doc(hidden)]
                pub fn $method $(<$($generic),+>)?(self: $this $(, _: $argument)*) -> $returned
                where
                    for<'a> Disabled<'a>: $feature,
                {
                    unreachable!("no call of this method compiles")
                }
            )*
        })*
    };
}

#[cfg(not(feature = "cli"))]
missing! {
    CliFeature:
        "this method needs the feature `cli` of `mcp-runtime`",
        "the feature `cli` is off",
        "add it to the dependency in Cargo.toml: `features = [\"cli\"]`";
    crate::ServerBuilder {
        fn run(Self) -> crate::Result<()>;
        fn run_with_args<A>(Self, A) -> crate::Result<()>;
    }
    crate::Server { fn run_with_args<A>(&Self, A) -> crate::Result<()>; }
    crate::config::TelemetryOptions { fn forward_events(Self) -> Self; }
}

#[cfg(not(feature = "stdio"))]
missing! {
    StdioFeature:
        "this method needs the feature `stdio` of `mcp-runtime`",
        "the feature `stdio` is off",
        "add it to the dependency in Cargo.toml: `features = [\"stdio\"]`";
    crate::ServerBuilder { fn serve_stdio(Self) -> std::future::Ready<crate::Result<()>>; }
    crate::Server { fn serve_stdio(&Self) -> std::future::Ready<crate::Result<()>>; }
}

#[cfg(not(feature = "http"))]
missing! {
    HttpFeature:
        "this method needs the feature `http` of `mcp-runtime`",
        "the feature `http` is off",
        "add it to the dependency in Cargo.toml: `features = [\"http\"]`";
    crate::ServerBuilder {
        fn http<A>(Self, A) -> Self;
        fn serve_http<A>(Self, A) -> std::future::Ready<crate::Result<()>>;
        fn into_service<R>(Self) -> crate::Result<R>;
    }
    crate::Server {
        fn serve_http<A>(&Self, A) -> std::future::Ready<crate::Result<()>>;
        fn serve_http_on<A>(&Self, A) -> std::future::Ready<crate::Result<()>>;
        fn serve_http_until<A, B>(&Self, A, B) -> std::future::Ready<crate::Result<()>>;
        fn into_service<R>(&Self) -> crate::Result<R>;
    }
    crate::config::Stores {
        fn revocations<A>(Self, A) -> Self;
    }
}

#[cfg(all(feature = "http", not(feature = "http-sse")))]
missing! {
    HttpSseFeature:
        "this method needs the feature `http-sse` of `mcp-runtime`",
        "the feature `http-sse` is off",
        "add it to the dependency in Cargo.toml: `features = [\"http-sse\"]`";
    crate::config::HttpOptions { fn legacy_sse<A>(Self, A) -> Self; }
}

#[cfg(not(feature = "axum"))]
missing! {
    AxumFeature:
        "this method needs the feature `axum` of `mcp-runtime`",
        "the feature `axum` is off",
        "add it to the dependency in Cargo.toml: `features = [\"axum\"]`";
    crate::ServerBuilder { fn into_router<R>(Self) -> crate::Result<R>; }
    crate::Server { fn into_router<R>(&Self) -> crate::Result<R>; }
}

#[cfg(not(feature = "auth"))]
missing! {
    AuthFeature:
        "this method needs the feature `auth` of `mcp-runtime`",
        "the feature `auth` is off",
        "add it to the dependency in Cargo.toml: `features = [\"auth\"]`";
    crate::ServerHandle { fn reload_auth(&Self) -> crate::Result<()>; }
}

#[cfg(not(feature = "auth"))]
impl crate::ServerBuilder {
    /// The bound is one on the argument: an argument that does not exist either is one error.
    #[doc(hidden)]
    pub fn auth<A: AuthFeature>(self, _: A) -> Self {
        unreachable!("no call of this method compiles")
    }
}

#[cfg(not(feature = "audit"))]
missing! {
    AuditFeature:
        "this method needs the feature `audit` of `mcp-runtime`",
        "the feature `audit` is off",
        "add it to the dependency in Cargo.toml: `features = [\"audit\"]`";
}

#[cfg(not(feature = "audit"))]
impl crate::ServerBuilder {
    /// The bound is one on the argument: an argument that does not exist either is one error.
    #[doc(hidden)]
    pub fn audit<A: AuditFeature>(self, _: A) -> Self {
        unreachable!("no call of this method compiles")
    }
}

#[cfg(not(feature = "config"))]
missing! {
    ConfigFeature:
        "this method needs the feature `config` of `mcp-runtime`",
        "the feature `config` is off",
        "add it to the dependency in Cargo.toml: `features = [\"config\"]`";
    crate::ServerBuilder {
        fn config<S>(Self) -> Self;
        fn configure<A>(Self, A) -> Self;
    }
}

#[cfg(not(feature = "metrics"))]
missing! {
    MetricsFeature:
        "this method needs the feature `metrics` of `mcp-runtime`",
        "the feature `metrics` is off",
        "add it to the dependency in Cargo.toml: `features = [\"metrics\"]`";
    crate::config::TelemetryOptions {
        fn metrics(Self) -> Self;
        fn metrics_path<A>(Self, A) -> Self;
        fn metrics_address<A>(Self, A) -> Self;
    }
    crate::Server { fn metrics(&Self) -> Option<String>; }
}

#[cfg(all(feature = "client", not(feature = "client-oauth")))]
missing! {
    ClientOauthFeature:
        "this method needs the feature `client-oauth` of `mcp-runtime`",
        "the feature `client-oauth` is off",
        "add it to the dependency in Cargo.toml: `features = [\"client-oauth\"]`";
}

#[cfg(all(feature = "client", not(feature = "client-oauth")))]
impl crate::client::ClientBuilder {
    /// The bound is one on the argument: an argument that does not exist either is one error.
    #[doc(hidden)]
    pub fn oauth<A: ClientOauthFeature>(self, _: A) -> Self {
        unreachable!("no call of this method compiles")
    }
}

#[cfg(all(feature = "client-oauth", not(feature = "client-browser")))]
missing! {
    ClientBrowserFeature:
        "this method needs the feature `client-browser` of `mcp-runtime`",
        "the feature `client-browser` is off",
        "add it to the dependency in Cargo.toml: `features = [\"client-browser\"]`";
    crate::client::OAuth { fn open_browser(Self) -> Self; }
}

#[cfg(not(feature = "events"))]
missing! {
    EventsFeature:
        "this method needs the feature `events` of `mcp-runtime`",
        "the feature `events` is off",
        "add it to the dependency in Cargo.toml: `features = [\"events\"]`";
    crate::ServerHandle { fn emit<E>(&Self, impl Sized) -> std::future::Ready<crate::Result<()>>; }
    crate::Server { fn emit<E>(&Self, impl Sized) -> std::future::Ready<crate::Result<()>>; }
    crate::config::Limits { fn events<A>(Self, A) -> Self; }
}

#[cfg(not(feature = "server-card"))]
missing! {
    ServerCardFeature:
        "this method needs the feature `server-card` of `mcp-runtime`",
        "the feature `server-card` is off",
        "add it to the dependency in Cargo.toml: `features = [\"server-card\"]`";
    crate::config::ServerInfo {
        fn registry_name<A>(Self, A) -> Self;
        fn public_url<A>(Self, A) -> Self;
        fn repository<A>(Self, A) -> Self;
    }
}

#[cfg(not(feature = "shared"))]
missing! {
    SharedFeature:
        "this method needs the feature `shared` of `mcp-runtime`",
        "the feature `shared` is off",
        "add it to the dependency in Cargo.toml: `features = [\"shared\"]`, or `redis` for the store in Redis";
}

#[cfg(not(feature = "shared"))]
impl crate::ServerBuilder {
    /// The bound is one on the argument: an argument that does not exist either is one error.
    #[doc(hidden)]
    pub fn shared<A: SharedFeature>(self, _: A) -> Self {
        unreachable!("no call of this method compiles")
    }
}

#[cfg(not(feature = "tasks"))]
missing! {
    TasksFeature:
        "this method needs the feature `tasks` of `mcp-runtime`",
        "the feature `tasks` is off",
        "add it to the dependency in Cargo.toml: `features = [\"tasks\"]`";
    crate::ServerBuilder { fn tasks<A>(Self, A) -> Self; }
    crate::Context { fn start_task(&Self) -> std::future::Ready<bool>; }
    crate::tool::ToolBuilder { fn restart_task(Self) -> Self; }
    #[cfg(any(feature = "testing", test))]
    crate::testing::TestServer { fn call_task<A>(&Self, &str, A) -> std::future::Ready<crate::testing::Reply>; }
}

#[cfg(not(feature = "tasks"))]
impl crate::tool::ToolBuilder {
    /// The bound is one on the argument: an argument that does not exist either is one error.
    #[doc(hidden)]
    pub fn task<A: TasksFeature>(self, _: A) -> Self {
        unreachable!("no call of this method compiles")
    }
}
