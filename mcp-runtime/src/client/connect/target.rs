//! The targets that a client connects to: a command line, a command, a URL, two byte streams, or a server in this process.

use std::{fmt, process::Command};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{client_builder::ClientOptions, shared_client::SharedClient};
use crate::{
    client::{
        Error,
        link::{ServerLink, child_process, event_link, http_link::HttpLink, stream_link::StreamLink},
        operation::Operation,
    },
    core::{server::Server, sync::Mutex},
};

/// The buffer of a connection to a server in this process.
const IN_PROCESS_BUFFER: usize = 256 << 10;

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

impl TargetKind {
    /// The key under which the server is remembered; `None` if it is not the same the next time.
    pub(super) fn source_key(&self, options: &ClientOptions) -> Option<String> {
        match self {
            Self::Command(command) => Some(format!("{command:?}")),
            Self::Url(url) if !options.http_sse => Some(url.clone()),
            _ => None,
        }
    }

    /// Whether a link that has ended is replaced.
    pub(super) fn can_be_opened_again(&self, options: &ClientOptions) -> bool {
        match self {
            Self::Command(_) => options.respawn,
            // a session over HTTP that is lost is replaced
            Self::Url(_) => true,
            _ => false,
        }
    }

    /// Opens a link, which ends with the client.
    ///
    /// # Errors
    /// The process cannot be started, the server has no event stream, or the streams were used.
    pub(super) async fn open_link(
        &self,
        client: &SharedClient,
        operation: &Operation,
    ) -> Result<ServerLink, Error> {
        let options = &client.options;
        let (inbox, token, limit) = (client.inbox.clone(), client.token.child_token(), options.max_message);
        Ok(match self {
            Self::Command(command) => {
                let (process, stdout, stdin) =
                    child_process::spawn(command, options.inherit_environment, &token)?;
                ServerLink::Stream(StreamLink::lines(stdout, stdin, Some(process), inbox, token, limit))
            }
            Self::Url(url) => {
                let http = HttpLink::new(url, options, inbox.clone(), token.clone())?;
                if !options.http_sse {
                    return Ok(ServerLink::Http(http));
                }
                ServerLink::Stream(event_link::open(http, inbox, token, options, operation).await?)
            }
            Self::Server(server) => {
                let (ours, theirs) = tokio::io::duplex(IN_PROCESS_BUFFER);
                let (server, ended) = (server.clone(), token.clone());
                tokio::spawn(async move {
                    let (reader, writer) = tokio::io::split(theirs);
                    tokio::select! {
                        served = server.serve(reader, writer) => if let Err(error) = served {
                            tracing::error!(%error, "the server in this process is not served");
                        },
                        () = ended.cancelled() => {}
                    }
                });
                let (reader, writer) = tokio::io::split(ours);
                ServerLink::Stream(StreamLink::lines(reader, writer, None, inbox, token, limit))
            }
            Self::Streams(streams) => {
                let streams = streams.lock().take();
                let (reader, writer) =
                    streams.ok_or_else(|| Error::not_connected("the streams have ended"))?;
                ServerLink::Stream(StreamLink::lines(reader, writer, None, inbox, token, limit))
            }
            Self::Invalid(error) => return Err(error.clone()),
        })
    }
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
