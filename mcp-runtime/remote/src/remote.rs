//! Another server as the program mounts it: which of its items, under which names, with which credentials.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use mcp_runtime::{
    Context, ToolError,
    addition::{AddedItems, Addition, IntoAddition},
};

use crate::{
    callers::{Callers, CredentialFn},
    pinned::Pinned,
    target::{FromState, Target},
    upstream::Upstream,
};

/// The most characters of the name of a remote server.
const MAX_NAME: usize = 64;

/// Another MCP server, to [add](mcp_runtime::ServerBuilder::add) to a server: its tools, prompts and resources are offered
/// as those of the server itself are, with the layers, scopes, rates and limits that hold there.
///
/// ```no_run
/// use mcp_runtime_remote::Remote;
///
/// struct Settings {
///     token: String,
/// }
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let github = Remote::new("github", "https://api.githubcopilot.com/mcp/")
///     .only(["search_*", "get_*"])
///     .bearer(|settings: &Settings| settings.token.clone());
/// let server = mcp_runtime::server!().state(Settings { token: "..".to_owned() }).add(github).build()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a remote server does nothing before it is added to a server"]
pub struct Remote {
    names: Names,
    target: Target,
    limits: Limits,
    per_caller: Option<CredentialFn>,
    pinned: Option<PathBuf>,
    /// What `build()` checks.
    needs: Addition,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("name", &self.names.remote).finish_non_exhaustive()
    }
}

/// How it is used.
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) concurrency: usize,
    /// After how long without a request its connection ends.
    pub(crate) idle: Option<Duration>,
    pub(crate) is_required: bool,
}

/// The names of tools and prompts here, and which of them are offered.
pub(crate) struct Names {
    /// That of the server.
    pub(crate) remote: String,
    /// With the separator.
    prefix: Option<String>,
    separator: String,
    only: Vec<String>,
    except: Vec<String>,
}

impl Names {
    /// The name of a tool or prompt here; `None` if it is not offered.
    pub(crate) fn shown(&self, own: &str) -> Option<String> {
        let matches = |patterns: &[String]| patterns.iter().any(|pattern| is_match(pattern, own));
        let is_offered = (self.only.is_empty() || matches(&self.only)) && !matches(&self.except);
        let prefix = self.prefix.as_deref().unwrap_or(&self.remote);
        is_offered.then(|| match prefix.is_empty() {
            true => own.to_owned(),
            false => format!("{prefix}{}{own}", self.separator),
        })
    }
}

/// Whether a name is the pattern, in which one `*` at the beginning or at the end stands for any characters.
fn is_match(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (_, Some(beginning)) => name.starts_with(beginning),
        (Some(end), None) => name.ends_with(end),
        (None, None) => name == pattern,
    }
}

impl Remote {
    /// The server at a URL, or the one that a command line starts: split by the rules of POSIX shells, and run without one.
    /// A URL is `https`, or of this machine. `name` is the prefix of its tools and prompts, and names it in messages.
    pub fn new(name: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            names: Names {
                remote: name.into(),
                prefix: None,
                separator: "_".to_owned(),
                only: Vec::new(),
                except: Vec::new(),
            },
            target: Target::new(target.into()),
            limits: Limits {
                timeout: Duration::from_secs(60),
                concurrency: 32,
                idle: None,
                is_required: false,
            },
            per_caller: None,
            pinned: None,
            needs: Addition::new(),
        }
    }

    /// Offers only the tools and prompts with these names, as the other server has them. A `*` at the end or at the
    /// beginning stands for any characters: `search_*`.
    pub fn only<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.only.extend(names.into_iter().map(Into::into));
        self
    }

    /// Does not offer the tools and prompts with these names, written as for [`only`](Self::only).
    pub fn except<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.except.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the prefix of its tools and prompts, in place of its name.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.names.prefix = Some(prefix.into());
        self
    }

    /// Sets what is between prefix and name; `_` by default.
    pub fn separator(mut self, separator: impl Into<String>) -> Self {
        self.names.separator = separator.into();
        self
    }

    /// Offers its tools and prompts under their own names.
    pub fn no_prefix(self) -> Self {
        self.prefix("")
    }

    /// Sends `Authorization: Bearer` with the token that `f` finds in the state of this server, for each request. Without
    /// such state, `build()` fails.
    #[track_caller]
    pub fn bearer<S: ?Sized + 'static, T: Into<String>>(
        mut self,
        f: impl Fn(&S) -> T + Send + Sync + 'static,
    ) -> Self {
        let token = self.value_of_state("bearer", move |state: &S| format!("Bearer {}", f(state).into()));
        self.target.add_header("authorization", token);
        self
    }

    /// Sends a header with the value that `f` finds in the state of this server, for each request. Without such state,
    /// `build()` fails.
    #[track_caller]
    pub fn header<S: ?Sized + 'static, T: Into<String>>(
        mut self,
        name: &str,
        f: impl Fn(&S) -> T + Send + Sync + 'static,
    ) -> Self {
        let value = self.value_of_state("header", f);
        self.target.add_header(name, value);
        self
    }

    /// Sends `Authorization: Bearer` with a token of the caller, for every call, read, prompt and completion. Lists are read
    /// with what [`bearer`](Self::bearer) or [`header`](Self::header) sends, without which `build()` fails, and nothing of that
    /// is sent for callers: one without a token is refused with the error of `f`, and so is one whose token is empty.
    ///
    /// Each caller and token has a connection of its own: 256 at most, closed after 5 minutes without a request, or as
    /// [`idle`](Self::idle) says.
    ///
    /// ```
    /// use mcp_runtime::{Context, ToolError};
    /// use mcp_runtime_remote::Remote;
    ///
    /// struct Tokens;
    ///
    /// impl Tokens {
    ///     async fn of(&self, subject: &str) -> Option<String> {
    ///         (subject == "ada").then(|| "..".to_owned())
    ///     }
    /// }
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let drive = Remote::new("drive", "https://drive.example.com/mcp")
    ///     .bearer(|token: &String| token.clone())
    ///     .per_caller(|ctx: Context| async move {
    ///         let caller = ctx.caller().ok_or("log in first")?;
    ///         let tokens = ctx.state::<Tokens>().ok_or("tokens are missing")?;
    ///         let token = tokens.of(caller.subject()).await;
    ///         token.ok_or_else(|| ToolError::new("connect your drive first"))
    ///     });
    /// let server = mcp_runtime::server!().state("..".to_owned()).state(Tokens).add(drive).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn per_caller<F, Fut, T>(mut self, f: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
        T: Into<String>,
    {
        self.per_caller = Some(Arc::new(move |context| {
            let token = f(context);
            Box::pin(async move { Ok(token.await?.into()) })
        }));
        self
    }

    /// Sets an environment variable of its process to the value that `f` finds in the state of this server. The process
    /// gets `PATH`, `HOME`, the language and a few others besides. Without such state, `build()` fails.
    #[track_caller]
    pub fn env<S: ?Sized + 'static, T: Into<String>>(
        mut self,
        name: impl Into<String>,
        f: impl Fn(&S) -> T + Send + Sync + 'static,
    ) -> Self {
        let value = self.value_of_state("env", f);
        self.target.add_variable(name.into(), value);
        self
    }

    /// Sets how long it may be silent during a request: without a response or progress; 60 seconds by default.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limits.timeout = limit;
        self
    }

    /// Sets how many requests are sent to it at once; 32 by default. Further ones wait.
    pub fn max_concurrency(mut self, requests: usize) -> Self {
        self.limits.concurrency = requests;
        self
    }

    /// Offers only the tools of a lock file, as they were when `mcp-dev lock --file github.lock.json ..` wrote it: one whose
    /// description, schemas or annotations differ is left out, and so is a new one. A line of the log says what differs. The
    /// file is read by `build()`, which fails without it.
    pub fn pinned(mut self, file: impl Into<PathBuf>) -> Self {
        self.pinned = Some(file.into());
        self
    }

    /// Ends its connection, and its process, after this long without a request; a request opens it again. Its items stay. By
    /// default, the connection stays open.
    pub fn idle(mut self, limit: Duration) -> Self {
        self.limits.idle = Some(limit);
        self
    }

    /// Connects when the server opens, in place of when a client first asks for something, and makes the server
    /// [not ready](mcp_runtime::addition::Addition::readiness) until it is connected.
    pub fn required(mut self) -> Self {
        self.limits.is_required = true;
        self
    }

    #[track_caller]
    fn value_of_state<S: ?Sized + 'static, T: Into<String>>(
        &mut self,
        method: &'static str,
        f: impl Fn(&S) -> T + Send + Sync + 'static,
    ) -> FromState {
        self.needs = std::mem::take(&mut self.needs).and(Addition::takes_state::<S>(method));
        Arc::new(move |items: &AddedItems| Some(f(items.state::<S>()?).into()))
    }

    /// What is wrong with it.
    fn error(&self) -> Option<String> {
        let name = &self.names.remote;
        let is_name = (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        if !is_name {
            let shown = name.escape_debug();
            return Some(format!(
                "`{shown}` is not a name of a remote server\nwrite 1 to {MAX_NAME} of `A-Z a-z 0-9 _ . -`"
            ));
        }
        let error = match &self.per_caller {
            Some(_) if !self.target.is_url() => {
                Some("`.per_caller(..)` needs a URL: a process has one environment")
            }
            Some(_) if !self.target.has_headers() => Some(
                "`.per_caller(..)` needs `.bearer(..)` or `.header(name, ..)`, with which lists are read",
            ),
            _ => None,
        };
        self.target.error().or(error).map(|error| format!("the remote server `{name}`: {error}"))
    }
}

impl IntoAddition for Remote {
    fn into_addition(self) -> Addition {
        if let Some(error) = self.error() {
            return Addition::error(error);
        }
        let Self { names, target, limits, per_caller, pinned, needs } = self;
        let pinned = match pinned.map(|path| Pinned::read(&path)).transpose() {
            Ok(pinned) => pinned,
            Err(error) => {
                return Addition::error(format!("the remote server `{}`: {error}", names.remote));
            }
        };
        let (name, is_required) = (names.remote.clone(), limits.is_required);
        let callers = per_caller.map(|credential| Callers::new(credential, limits.idle));
        let upstream = Upstream::new(names, target, limits, callers, pinned);
        let mut addition = needs;
        if is_required {
            let checked = upstream.clone();
            addition = addition.and(Addition::readiness(name.as_str(), move || {
                let is_reached = checked.is_reached();
                async move { is_reached }
            }));
        }
        addition.and(Addition::changing(name, move |items| upstream.follow(items)))
    }
}
