//! State that is made when the server opens: inside of the runtime, before the first message is answered. Commands that call
//! nothing do not open it. A value that cannot be made is tried again when the server is opened again; one that needs
//! settings which are missing is not made, and functions that take it answer with the reason.

use std::{
    any::{Any, TypeId, type_name},
    future::ready,
    panic::Location as Caller,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{Addition, Error, Result, Server, ServerBuilder};
#[cfg(feature = "config")]
use crate::core::secret_texts::SecretTexts;
use crate::core::{
    arguments::StateValue,
    build_error::BuildError,
    client_error::error_chain,
    error::BoxError,
    extensions::{AnyValue, Extensions},
    single_flight::SingleFlight,
    sync::Mutex,
};
use tokio::task::JoinHandle;

/// A future that may borrow the value of which something is made.
type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The parameters of a [`StateFn`]: none, or a reference to other state.
pub trait StateParams: 'static {
    /// What it takes.
    type Source: StateValue;
}

impl StateParams for fn() {
    type Source = ();
}

impl<S: StateValue> StateParams for fn(&S) {
    type Source = S;
}

/// An async function of no state, or of one value of it. `A` are its parameters, and `T` is what its future returns.
#[diagnostic::on_unimplemented(
    message = "this is not an async function of state with a `Send` future that returns a `{T}`",
    label = "not such a function",
    note = "name an `async fn open(settings: &Settings) -> Result<Pool, Error>`, or write `async |settings: &Settings| ..`; without settings, `async fn open()` or `async || ..`",
    note = "a closure that uses variables around it clones them: `move || {{ let url = url.clone(); async move {{ .. }} }}`"
)]
pub trait StateFn<'a, T, A: StateParams>: Send + Sync + 'static {
    #[doc(hidden)]
    fn call(&self, source: &'a A::Source) -> SourceFuture<'a, T>;
}

#[diagnostic::do_not_recommend]
impl<'a, F, R> StateFn<'a, R::Output, fn()> for F
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future + Send + 'a,
{
    fn call(&self, (): &'a ()) -> SourceFuture<'a, R::Output> {
        Box::pin(self())
    }
}

#[diagnostic::do_not_recommend]
impl<'a, F, R, S> StateFn<'a, R::Output, fn(&S)> for F
where
    F: Fn(&'a S) -> R + Send + Sync + 'static,
    R: Future + Send + 'a,
    S: StateValue,
{
    fn call(&self, source: &'a S) -> SourceFuture<'a, R::Output> {
        Box::pin(self(source))
    }
}

impl ServerBuilder {
    /// Registers [state](Self::state) that a plain function makes of other state when the server opens: of
    /// `config` (feature `config`), or of what was registered with `state`, `state_from` or `state_async` before.
    ///
    /// It runs inside of the runtime, before the first message is answered; see [`state_async`](Self::state_async) for
    /// what happens if it fails.
    ///
    /// ```
    /// use std::num::ParseIntError;
    ///
    /// use mcp_runtime::{prelude::*, serde_json::json, testing::TestServer};
    ///
    /// struct Limit(usize);
    ///
    /// /// The first letters of a text.
    /// #[mcp_tool]
    /// fn start(text: String, limit: &Limit) -> String {
    ///     text.chars().take(limit.0).collect()
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let builder = mcp_runtime::server!()
    ///     .state("3".to_owned())
    ///     .state_from(|text: &String| Ok::<_, ParseIntError>(Limit(text.parse()?)))
    ///     .tool::<start>();
    /// TestServer::new(builder)?.call("start", json!({ "text": "letters" })).await.expect_text("let");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn state_from<S: StateValue, T: StateValue, E: Into<BoxError>>(
        mut self,
        make: impl Fn(&S) -> Result<T, E> + Send + Sync + 'static,
    ) -> Self {
        let maker =
            Maker::new("state_from", move |source: &S| Box::pin(ready(make(source).map_err(Into::into))));
        self.state_fns.makers.push(maker);
        self
    }

    /// Registers [state](Self::state) that an async function makes when the server opens: `async fn open()`, or
    /// `async fn open(settings: &Settings)` with other state as in [`state_from`](Self::state_from).
    ///
    /// It runs inside of the runtime, before the first message is answered, and never for the commands `list`, `schema`,
    /// `config`, `install`, `--help` and `--version`. If it fails, [`run`](Self::run) and the `serve` functions end with
    /// its error. A service or router answers `503` and calls it again at the next request; `/readyz` is `503` as well.
    /// A [`TestServer`](crate::testing::TestServer) replies with the error.
    ///
    /// If the settings that it needs are missing, it is not called: see [the guide](crate::guide::settings).
    ///
    /// ```
    /// use std::io;
    ///
    /// use mcp_runtime::{prelude::*, serde_json::json, testing::TestServer};
    ///
    /// struct Pool(String);
    ///
    /// async fn connect() -> io::Result<Pool> {
    ///     // ... awaits a connection
    ///     Ok(Pool("orders".to_owned()))
    /// }
    ///
    /// /// The name of the database.
    /// #[mcp_tool]
    /// async fn database(pool: &Pool) -> String {
    ///     pool.0.clone()
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let builder = mcp_runtime::server!().state_async(connect).tool::<database>();
    /// TestServer::new(builder)?.call("database", json!({})).await.expect_text("orders");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("lifespan", "on_start", "startup", "async_state"))]
    #[track_caller]
    pub fn state_async<T: StateValue, E: Into<BoxError> + 'static, A: StateParams>(
        mut self,
        make: impl for<'a> StateFn<'a, Result<T, E>, A>,
    ) -> Self {
        let maker = Maker::new("state_async", move |source: &A::Source| {
            let made = make.call(source);
            Box::pin(async move { made.await.map_err(Into::into) })
        });
        self.state_fns.makers.push(maker);
        self
    }

    /// Awaits the end of a value of the state after the last call, such as
    /// `.end_state(async |pool: &PgPool| pool.close().await)`: before [`run`](Self::run) or a `serve` function returns,
    /// within the [shutdown timeout](crate::config::Limits::shutdown_timeout), in the reverse order of registration.
    ///
    /// Values without such a function are dropped after the last call. A service, a router and a
    /// [`TestServer`](crate::testing::TestServer) start the function in a task when the last clone of the server is
    /// dropped. A value that was not made has no end.
    #[doc(alias("on_stop", "shutdown", "cleanup"))]
    #[track_caller]
    pub fn end_state<T: StateValue>(mut self, end: impl for<'a> StateFn<'a, (), fn(&T)>) -> Self {
        self.state_fns.ends.push(EndOfState {
            source: Source::of::<T>("end_state"),
            end: Box::new(move |state| Some(end.call(state.get::<T>()?))),
        });
        self
    }
}

impl Addition {
    /// Adds an error unless the builder has state of this type, which a function takes that was given to `method` of the
    /// addition.
    ///
    /// ```
    /// use mcp_runtime::addition::Addition;
    ///
    /// struct Token(String);
    ///
    /// let builder = || mcp_runtime::server!().add(Addition::takes_state::<Token>("bearer"));
    /// assert!(builder().build().is_err());
    /// assert!(builder().state(Token("..".to_owned())).build().is_ok());
    /// ```
    #[track_caller]
    pub fn takes_state<S: ?Sized + 'static>(method: &'static str) -> Self {
        let source = Source::of::<S>(method);
        Self::of(|builder| builder.state_fns.takes.push(source))
    }
}

/// The value that a function of state, or of an addition, takes.
struct Source {
    /// The method of the builder that registered the function, and where.
    method: &'static str,
    caller: &'static Caller<'static>,
    name: &'static str,
    /// The keys that provide it; none if the function takes nothing.
    keys: Vec<TypeId>,
}

impl Source {
    #[track_caller]
    fn of<S: ?Sized + 'static>(method: &'static str) -> Self {
        let takes_nothing = TypeId::of::<S>() == TypeId::of::<()>();
        let keys = [TypeId::of::<Arc<S>>(), TypeId::of::<Arc<Arc<S>>>()];
        let keys = if takes_nothing { Vec::new() } else { keys.to_vec() };
        Self { method, caller: Caller::caller(), name: type_name::<S>(), keys }
    }

    /// The error if nothing provides it.
    fn check(&self, state: &Extensions) -> Option<BuildError> {
        let Self { method, caller, name, keys } = self;
        let is_missing = !keys.is_empty() && !state.contains_any(keys);
        is_missing.then(|| {
            BuildError::new(format!(
                "`.{method}(..)` takes `&{name}`, and no state of that type is registered before it\n  --> {caller}\nadd `.config::<{name}>()` or `.state(..)`"
            ))
        })
    }
}

/// Makes a value of other state; `Err` has the reason why that does not exist.
type MakeFn = Box<
    dyn for<'a> Fn(&'a Extensions) -> Result<SourceFuture<'a, Result<AnyValue, BoxError>>, Arc<str>>
        + Send
        + Sync,
>;

/// Makes a value of the state.
struct Maker {
    source: Source,
    name: &'static str,
    /// The key of the value, and those of values that would be a second one.
    keys: [TypeId; 3],
    make: MakeFn,
}

impl Maker {
    #[track_caller]
    fn new<S: StateValue, T: StateValue>(
        method: &'static str,
        make: impl for<'a> Fn(&'a S) -> SourceFuture<'a, Result<T, BoxError>> + Send + Sync + 'static,
    ) -> Self {
        let make: MakeFn = Box::new(move |state| {
            let nothing: &'static dyn Any = &();
            let source = nothing.downcast_ref::<S>().or_else(|| state.get());
            let made = make(source.ok_or_else(|| state.unmade::<S>().unwrap_or_default())?);
            Ok(Box::pin(async move { Ok(Arc::new(Arc::new(made.await?)) as AnyValue) }))
        });
        Self {
            source: Source::of::<S>(method),
            name: type_name::<T>(),
            keys: Extensions::keys_like::<T>(),
            make,
        }
    }

    /// Reserves the place of the value in the state.
    ///
    /// # Errors
    /// There is such a value, or none of which it is made.
    fn declare(&self, state: &mut Extensions) -> Result<(), BuildError> {
        if state.contains_any(&self.keys) {
            let (name, caller) = (self.name, self.source.caller);
            return Err(BuildError::new(format!(
                "two values of type `{name}` are registered\n  --> {caller}\nregister one, or give each a type of its own"
            )));
        }
        let error = self.source.check(state);
        state.reserve(self.keys[0]);
        error.map_or(Ok(()), Err)
    }

    /// Makes the value, unless it is made.
    ///
    /// # Errors
    /// The user's function fails.
    async fn run(&self, state: &Extensions) -> Result<(), Arc<str>> {
        let key = self.keys[0];
        if state.is_filled(key) {
            return Ok(());
        }
        let made = match (self.make)(state) {
            Ok(making) => Ok(making.await.map_err(|error| self.report(&*error))?),
            Err(reason) => Err(reason),
        };
        state.fill(key, made);
        Ok(())
    }

    fn report(&self, error: &(dyn std::error::Error + 'static)) -> Arc<str> {
        let text = error_chain(error);
        // it may quote what it could not use
        #[cfg(feature = "config")]
        let text = SecretTexts::mask_error(&text);
        format!("the state `{}` cannot be made: {text}", short_name(self.name)).into()
    }
}

/// Ends a value, if it was made.
type EndFn = Box<dyn for<'a> Fn(&'a Extensions) -> Option<SourceFuture<'a, ()>> + Send + Sync>;

/// Ends a value of the state.
struct EndOfState {
    source: Source,
    end: EndFn,
}

/// The functions that make and end the state of a builder.
#[derive(Default)]
pub(super) struct StateFns {
    makers: Vec<Maker>,
    ends: Vec<EndOfState>,
    /// What additions take.
    takes: Vec<Source>,
    /// Those of builders that are mounted.
    mounted: Vec<BoundFns>,
}

/// The functions of one builder, with its state.
struct BoundFns {
    state: Arc<Extensions>,
    makers: Vec<Maker>,
    ends: Vec<EndOfState>,
}

impl StateFns {
    /// Reserves the places of what is made in the builder's state.
    pub(super) fn declare(&self, state: &mut Extensions, errors: &mut Vec<BuildError>) {
        for maker in &self.makers {
            errors.extend(maker.declare(state).err());
        }
        let sources = self.ends.iter().map(|end| &end.source).chain(&self.takes);
        errors.extend(sources.filter_map(|source| source.check(state)));
    }

    /// Adds the functions of a builder that is mounted.
    pub(super) fn mount(&mut self, other: Self, state: &Arc<Extensions>) {
        let Self { makers, ends, mounted, takes: _ } = other;
        self.mounted.push(BoundFns { state: state.clone(), makers, ends });
        self.mounted.extend(mounted);
    }

    /// Lets builders that are mounted see the settings of the program.
    #[cfg(feature = "config")]
    pub(super) fn show_settings(&self, settings: &Arc<Extensions>) {
        self.mounted.iter().for_each(|builder| builder.state.see_settings(settings));
    }

    pub(super) fn bind(self, state: &Arc<Extensions>) -> Arc<MadeState> {
        let mut bound = Self::default();
        bound.mount(self, state);
        let builders = bound.mounted;
        Arc::new(MadeState {
            is_made: AtomicBool::new(builders.iter().all(|builder| builder.makers.is_empty())),
            has_end: builders.iter().any(|builder| !builder.ends.is_empty()),
            has_ended: AtomicBool::new(false),
            serving: Arc::default(),
            changing: tokio::sync::Mutex::default(),
            runs: SingleFlight::default(),
            begin: Mutex::default(),
            begun: Mutex::default(),
            builders,
        })
    }
}

/// The state of a server that is made when it opens.
pub(crate) struct MadeState {
    builders: Vec<BoundFns>,
    is_made: AtomicBool,
    has_end: bool,
    has_ended: AtomicBool,
    serving: Serving,
    /// Held while values are made, or ended: what is being made when the server ends is made first.
    changing: tokio::sync::Mutex<()>,
    /// A request that waits for the state and is cancelled does not end the attempt.
    runs: SingleFlight<Result<(), Arc<str>>>,
    /// What begins once all of it is made, and ends with the server.
    begin: Mutex<Vec<BeginFn>>,
    begun: Mutex<Vec<JoinHandle<()>>>,
}

/// Spawns a task.
type BeginFn = Box<dyn FnOnce() -> JoinHandle<()> + Send>;

impl Drop for MadeState {
    fn drop(&mut self) {
        self.end_begun();
    }
}

/// Held while a transport serves a server that is open.
pub(crate) type Serving = Arc<()>;

impl MadeState {
    /// Whether all of it is made.
    pub(crate) fn is_made(&self) -> bool {
        self.is_made.load(Ordering::Acquire)
    }

    /// Begins a task once the state is made.
    pub(super) fn begin_when_made(&self, begin: BeginFn) {
        self.is_made.store(false, Ordering::Release);
        self.begin.lock().push(begin);
    }

    fn end_begun(&self) {
        self.begun.lock().drain(..).for_each(|task| task.abort());
    }

    /// Makes what is not made. All who wait for an attempt get its outcome.
    ///
    /// # Errors
    /// A value cannot be made.
    pub(crate) async fn make(self: &Arc<Self>) -> Result<(), Arc<str>> {
        if self.is_made() {
            return Ok(());
        }
        let state = self.clone();
        let run = self.runs.join(|| async move { state.make_all().await });
        run.outcome().await.unwrap_or_else(|| Err("the function that makes the state has panicked".into()))
    }

    async fn make_all(&self) -> Result<(), Arc<str>> {
        let _changing = self.changing.lock().await;
        if self.has_ended.load(Ordering::Acquire) {
            return Err(
                "the state has ended with the server that was served before\nbuild another one".into()
            );
        }
        for BoundFns { state, makers, .. } in &self.builders {
            for maker in makers {
                maker.run(state).await?;
            }
        }
        let begin = std::mem::take(&mut *self.begin.lock());
        self.begun.lock().extend(begin.into_iter().map(|begin| begin()));
        self.is_made.store(true, Ordering::Release);
        Ok(())
    }

    /// Ends the state, once.
    async fn end(&self) {
        if !self.has_end || self.has_ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let _changing = self.changing.lock().await;
        self.is_made.store(false, Ordering::Release);
        for BoundFns { state, ends, .. } in &self.builders {
            // what was made last may use what was made first
            for end in ends.iter().rev() {
                if let Some(ending) = (end.end)(state) {
                    ending.await;
                }
            }
        }
    }

    /// Ends the state in a task: nothing is left that could wait for it.
    pub(super) fn end_later(self: &Arc<Self>) {
        self.end_begun();
        if self.has_end
            && !self.has_ended.load(Ordering::Acquire)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let state = self.clone();
            let _ends = crate::core::spawn::spawn_on(&runtime, async move { state.end().await });
        }
    }
}

impl Server {
    /// The state that is made when the server opens.
    pub(crate) fn made_state(&self) -> &Arc<MadeState> {
        &self.0.made_state
    }

    /// Opens the server: makes its state, and connects to the store that replicas share, if there is one. Transports do
    /// this before they answer the first message.
    ///
    /// # Errors
    /// The state cannot be made, or the store refuses this server, or the server has no keys, or other keys than the
    /// replicas.
    pub(crate) async fn open(&self) -> Result<Serving> {
        let serving = self.open_state().await?;
        self.open_store().await?;
        Ok(serving)
    }

    /// Makes the state alone.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) async fn open_state(&self) -> Result<Serving> {
        let state = self.made_state();
        let serving = state.serving.clone();
        state.make().await.map_err(|error| Error::serve(&*error))?;
        Ok(serving)
    }

    /// Ends the state after the last call of a transport, unless another one still serves.
    pub(crate) async fn end_state(&self, serving: Serving, limit: std::time::Duration) {
        drop(serving);
        let state = self.made_state();
        if Arc::strong_count(&state.serving) == 1 && tokio::time::timeout(limit, state.end()).await.is_err() {
            tracing::warn!(?limit, "the state did not end within the shutdown timeout");
        }
    }
}

/// The name of a type without paths of modules.
pub(crate) fn short_name(name: &'static str) -> &'static str {
    let end = name.find('<').unwrap_or(name.len());
    let start = name.get(..end).and_then(|path| path.rfind("::")).map_or(0, |at| at + 2);
    name.get(start..).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::atomic::AtomicUsize};

    use tokio::{sync::Semaphore, task::yield_now};

    use super::*;

    #[tokio::test]
    async fn a_value_that_is_being_made_when_its_server_ends_is_ended_once_it_is_made() {
        let (gate, ended) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let (opens, counts) = (gate.clone(), ended.clone());
        let make = move || {
            let gate = opens.clone();
            async move {
                drop(gate.acquire().await);
                Ok::<_, Infallible>(7_u64)
            }
        };
        let end = move |_: &u64| {
            counts.fetch_add(1, Ordering::SeqCst);
            ready(())
        };
        let settle = async || {
            for _ in 0..100 {
                yield_now().await;
            }
        };
        let server = Server::builder("ends", "1").state_async(make).end_state(end).build().unwrap();
        let state = server.made_state().clone();
        let made = tokio::spawn(async move { state.make().await });
        settle().await;
        drop(server);
        settle().await;
        assert_eq!(ended.load(Ordering::SeqCst), 0, "it is not made yet");
        gate.add_permits(1);
        settle().await;
        assert!(made.await.unwrap().is_ok());
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }
}
