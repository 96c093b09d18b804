//! The command line of a server: [`ServerBuilder::run`] executes the program's arguments.

mod command;
#[cfg(feature = "events")]
mod events;
mod print;
#[cfg(feature = "config")]
mod settings;
mod stderr_subscriber;
#[cfg(feature = "tasks")]
mod tasks;
mod terminal;

use std::{
    env::VarError,
    ffi::OsString,
    io::{IsTerminal, stdin},
    pin::{Pin, pin},
};

use tokio::runtime::{Builder, Handle, RuntimeFlavor};

use command::Command;
use print::About;
pub use print::{content_value, list_text, print_result};
pub use terminal::answer_question;

use crate::core::{
    config::Stores,
    server::{Error, Result, Server, ServerBuilder},
};

impl ServerBuilder {
    /// Builds the server and runs the command in the program's arguments; without any, it serves stdio.
    ///
    /// `--help` lists the commands: `stdio`, `--http [ADDR]`, and some to try the server from a shell (`list`,
    /// `call NAME JSON`, `read URI`, `prompt NAME JSON`, `events NAME JSON`, `schema`; in a terminal you answer what a function asks; `--as
    /// SUBJECT`, `--scope SCOPE` and `--claim NAME=VALUE` say as whom). If the
    /// program has no `tracing` subscriber, one is installed that writes to stderr what `MCP_LOG` or `RUST_LOG` allow (one level name; `warn` by default).
    ///
    /// It blocks and starts the async runtime that suits the command. Inside a multi-thread runtime, as under
    /// `#[mcp_runtime::main]`, it uses that one. It does not end the process: an error that `main` returns is printed
    /// to stderr, and the exit code is 1.
    ///
    /// With `.config(..)` the settings are flags here too: `--database x` or `--timeout=9`, before or after the command;
    /// `--help` lists them, and the command `config` prints their values. Both and `--version` build nothing: they work whatever
    /// is missing.
    ///
    /// The [keys](Stores::keys), if none are set, come [from the environment](Stores::keys_from_env). The
    /// [store](Self::shared) that replicas share, if none is set, is the one at the URL in `MCP_SHARED`.
    ///
    /// # Errors
    /// The server cannot be built or served, the program's arguments are not a command, or what a command called
    /// failed; the [kind](crate::Error::kind) of the error says which.
    #[doc(alias("serve", "start", "listen"))]
    pub fn run(self) -> Result<()> {
        self.run_arguments(std::env::args_os().skip(1).collect())
    }

    /// Like [`run`](Self::run), with the command and the flags of settings in these arguments, which do not begin with the
    /// program's name.
    ///
    /// For a program with its own options: it reads those first and passes on the rest.
    ///
    /// ```no_run
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
    /// // `program [--brief] [COMMAND]`
    /// let brief = arguments.first().is_some_and(|first| first == "--brief");
    /// if brief {
    ///     arguments.remove(0);
    /// }
    /// mcp_runtime::server!().discover().run_with_args(arguments)
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn run_with_args<T: Into<OsString>>(self, arguments: impl IntoIterator<Item = T>) -> Result<()> {
        self.run_arguments(arguments.into_iter().map(Into::into).collect())
    }

    fn run_arguments(self, arguments: Vec<OsString>) -> Result<()> {
        let forward_events = stderr_subscriber::install();
        #[cfg(not(feature = "config"))]
        let (command, this) = (parse(arguments.into_iter())?, self);
        #[cfg(feature = "config")]
        let (command, mut this) = self.parse_with_settings(arguments)?;
        #[cfg(feature = "config")]
        this.read_settings();
        // nothing is built for these, so that they work whatever is missing
        if let Command::Describe(what) = &command {
            return this.about().print(what);
        }
        #[cfg(feature = "config")]
        let this = this.configured()?;
        if let Some(start) = forward_events.filter(|_| this.options.telemetry.forward_events) {
            start();
        }
        let builder = if this.options.stores.has_keys() { this } else { this.stores(Stores::keys_from_env) };
        run_command(share_by_environment(builder, std::env::var(SHARED))?.build()?, command)
    }
}

impl ServerBuilder {
    fn about(&self) -> About<'_> {
        About {
            name: &self.info.name,
            version: &self.info.version,
            instructions: self.info.instructions.as_deref(),
            #[cfg(feature = "config")]
            settings: self.settings.as_ref().and_then(|settings| settings.as_read()?.texts()),
        }
    }
}

impl Server {
    fn about(&self) -> About<'_> {
        About {
            name: self.name(),
            version: self.version(),
            instructions: self.instructions(),
            #[cfg(feature = "config")]
            settings: self.server_settings().and_then(|settings| settings.texts()),
        }
    }

    /// Runs the command in these arguments, which do not begin with the program's name: like
    /// [`ServerBuilder::run_with_args`], for a program that needs the server before. Its settings were read when it was
    /// built, so their flags are errors. The keys, if none are set, come from `MCP_SERVER_KEYS`.
    ///
    /// # Errors
    /// The server cannot be served, the arguments are not a command, or what a command called failed.
    pub fn run_with_args<T: Into<OsString>>(self, arguments: impl IntoIterator<Item = T>) -> Result<()> {
        let forward_events = stderr_subscriber::install();
        if let Some(start) = forward_events.filter(|_| self.options().telemetry.forward_events) {
            start();
        }
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        #[cfg(feature = "config")]
        settings::report_late_flags(&self, &arguments)?;
        let command = parse(arguments.into_iter())?;
        self.keys().read_environment().map_err(Error::build)?;
        if !self.store().is_shared() && std::env::var_os(SHARED).is_some() {
            tracing::warn!("`{SHARED}` is set, but only `.run()` reads it: this server has no shared store");
        }
        run_command(self, command)
    }
}

/// The environment variable with the URL of the store that replicas share.
const SHARED: &str = "MCP_SHARED";

/// Sets the store that the environment names, unless the program has set one.
///
/// # Errors
/// The program cannot connect to it.
#[cfg_attr(
    not(feature = "redis"),
    expect(clippy::needless_pass_by_value, reason = "the store takes the URL")
)]
fn share_by_environment(builder: ServerBuilder, url: Result<String, VarError>) -> Result<ServerBuilder> {
    #[cfg(feature = "shared")]
    if builder.options.stores.shared.is_some() {
        return Ok(builder);
    }
    match url {
        Err(VarError::NotPresent) => Ok(builder),
        #[cfg(feature = "redis")]
        Ok(url) => Ok(builder.shared(crate::redis::Redis::at(url))),
        #[cfg(feature = "redis")]
        Err(_) => Err(Error::build(format!("`{SHARED}` is not a URL"))),
        #[cfg(not(feature = "redis"))]
        _ => Err(Error::build(format!(
            "`{SHARED}` is set, and this program was built without Redis\nenable the feature `redis`"
        ))),
    }
}

fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command> {
    Command::parse(arguments)
        .map_err(|message| Error::usage(format!("{message}\n`--help` lists the commands")))
}

fn run_command(server: Server, command: Command) -> Result<()> {
    match command {
        Command::Describe(what) => server.about().print(&what),
        Command::Default if stdin().is_terminal() => {
            print::print_welcome(&server);
            serve_stdio(&server)
        }
        Command::Default | Command::Stdio => serve_stdio(&server),
        Command::Http(address) => serve_http(&server, &address),
        #[cfg(feature = "install")]
        Command::Install(options) => {
            check_flags(&server)?;
            crate::install::run_own(&server, options)
        }
        Command::Action(action, caller) => {
            check_flags(&server)?;
            #[cfg(feature = "config")]
            if let Some(note) = server.server_settings().and_then(|settings| settings.incomplete_note())
                && matches!(action, command::Action::List { .. } | command::Action::Schema)
            {
                print::print_to_stderr(&note);
            }
            block_on(Builder::new_current_thread(), pin!(print::run_action(server, &action, caller)))
        }
    }
}

/// # Errors
/// The flag of a setting is not valid.
fn check_flags(server: &Server) -> Result<()> {
    #[cfg(feature = "config")]
    if server.server_settings().is_some_and(|settings| settings.has_wrong_flags()) {
        return server.check_settings();
    }
    let _without_settings = server;
    Ok(())
}

#[cfg(feature = "stdio")]
fn serve_stdio(server: &Server) -> Result<()> {
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(worker_threads());
    block_on(runtime, pin!(server.serve_stdio()))
}

/// A few threads are enough for the one client of stdio, whose short calls run on the reader's thread.
#[cfg(feature = "stdio")]
fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

#[cfg(not(feature = "stdio"))]
fn serve_stdio(_: &Server) -> Result<()> {
    Err(Error::serve(
        "this program was built without stdio\nuse `--http [ADDR]`, or enable the feature `stdio`",
    ))
}

#[cfg(not(feature = "http"))]
fn serve_http(_: &Server, _: &str) -> Result<()> {
    Err(Error::serve("this program was built without HTTP\nenable the feature `http`"))
}

#[cfg(feature = "http")]
fn serve_http(server: &Server, address: &str) -> Result<()> {
    #[cfg(feature = "config")]
    server.check_settings()?;
    let serving = async {
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener =
            listener.map_err(|e| Error::serve(format!("cannot listen on `{address}`")).caused_by(e))?;
        let address = listener.local_addr()?;
        server.check_before_serving(address)?;
        print::print_to_stderr(&format!("serving {} at http://{address}{}", server.name(), server.path()));
        server.clone().serve_http_on(listener).await
    };
    block_on(Builder::new_multi_thread(), pin!(serving))
}

/// Runs a future on the runtime that this is called in, or on a new one.
fn block_on(mut builder: Builder, future: Pin<&mut (dyn Future<Output = Result<()>> + Send)>) -> Result<()> {
    let Ok(current) = Handle::try_current() else {
        let runtime = builder.enable_all().build()?;
        let output = runtime.block_on(future);
        // a thread of a `blocking` function that outlives its call must not delay the exit
        runtime.shutdown_background();
        return output;
    };
    if current.runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Err(Error::serve(
            "`.run()` blocks, and the runtime that it was called in has no other thread\n\
             await `.serve_stdio()` there, or call `.run()` outside of the runtime",
        ));
    }
    // a thread of the runtime must not block on it, but another thread can
    let output = std::thread::scope(|scope| scope.spawn(|| current.block_on(future)).join());
    output.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared_by(url: Result<String, VarError>) -> Result<ServerBuilder> {
        share_by_environment(Server::builder("test", "1"), url)
    }

    #[cfg(feature = "shared")]
    #[test]
    fn nothing_is_shared_without_the_variable() {
        let builder = shared_by(Err(VarError::NotPresent)).expect("a builder");
        assert!(builder.options.stores.shared.is_none());
    }

    #[cfg(feature = "redis")]
    #[test]
    fn the_store_of_the_variable_is_shared() {
        assert!(shared_by(Ok("redis://10.0.0.5".into())).expect("a builder").options.stores.shared.is_some());
        shared_by(Err(VarError::NotUnicode("redis".into()))).expect_err("not a URL");
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn the_variable_is_an_error_of_a_program_without_redis() {
        for set in [Ok("redis://:sesame@10.0.0.5".into()), Err(VarError::NotUnicode("sesame".into()))] {
            let error = shared_by(set).expect_err("no Redis").to_string();
            assert!(error.contains("enable the feature `redis`") && !error.contains("sesame"), "{error}");
        }
    }
}
