//! The targets that a client connects to: a command line, a command, a URL, two byte streams, or a server in this process.

use std::{fmt, process::Command};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    client::Error,
    core::{server::Server, sync::Mutex},
};

/// Byte streams, which are there for one connection.
type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// A server to connect to; made by [`IntoTarget`].
pub struct Target(pub(in crate::client) TargetKind);

pub(in crate::client) enum TargetKind {
    Command(Command),
    Url(String),
    Streams(Mutex<Option<Streams>>),
    Server(Server),
    Invalid(Error),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // neither a URL nor a command: both may have credentials
        f.write_str(match self.0 {
            TargetKind::Command(_) => "Target::Command",
            TargetKind::Url(_) => "Target::Url",
            TargetKind::Streams(..) => "Target::Streams",
            TargetKind::Server(_) => "Target::Server",
            TargetKind::Invalid(_) => "Target::Invalid",
        })
    }
}

/// Types that name a server.
#[diagnostic::on_unimplemented(
    message = "a client cannot connect to `{Self}`",
    label = "not a server to connect to",
    note = "connect to a command line or a URL (text), a `Command`, `(reader, writer)`, or `&Server`",
    note = "a server of this program is built first: `let server = builder.build()?;`, then `Client::connect(&server)`"
)]
pub trait IntoTarget {
    /// The server.
    fn into_target(self) -> Target;
}

/// A URL of the scheme `http` or `https`, or else a command line: split by the rules of POSIX shells, but run without one.
impl IntoTarget for &str {
    fn into_target(self) -> Target {
        let text = self.trim();
        let is_url = ["http://", "https://"]
            .iter()
            .any(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
        if is_url {
            return Target(TargetKind::Url(text.to_owned()));
        }
        Target(match shlex::split(text).as_deref() {
            Some([program, arguments @ ..]) => {
                let mut command = Command::new(program);
                command.args(arguments);
                TargetKind::Command(command)
            }
            Some([]) => TargetKind::Invalid(Error::invalid("the command line is empty")),
            None => TargetKind::Invalid(Error::invalid(format!("`{text}` has a quote that is not closed"))),
        })
    }
}

impl IntoTarget for String {
    fn into_target(self) -> Target {
        self.as_str().into_target()
    }
}

impl IntoTarget for &String {
    fn into_target(self) -> Target {
        self.as_str().into_target()
    }
}

/// Only the variables that were set on it are used, in addition to those that every server gets; see
/// [`inherit_environment`](crate::client::ClientBuilder::inherit_environment).
impl IntoTarget for Command {
    fn into_target(self) -> Target {
        Target(TargetKind::Command(self))
    }
}

impl IntoTarget for tokio::process::Command {
    fn into_target(self) -> Target {
        Target(TargetKind::Command(self.into_std()))
    }
}

impl<R, W> IntoTarget for (R, W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn into_target(self) -> Target {
        let streams: Streams = (Box::new(self.0), Box::new(self.1));
        Target(TargetKind::Streams(Mutex::new(Some(streams))))
    }
}

impl IntoTarget for &Server {
    fn into_target(self) -> Target {
        Target(TargetKind::Server(self.clone()))
    }
}
