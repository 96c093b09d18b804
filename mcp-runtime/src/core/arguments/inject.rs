//! Parameters that the server provides: `&T` from state or from the request, and `FromContext` values.

use std::{
    any::{Any, TypeId, type_name},
    convert::Infallible,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
};

use super::Claims;
use crate::core::{
    connection::Principal,
    context::Context,
    error::{Failure, IntoFailure, ResultExt as _, ToolError},
    extensions::Extensions,
    server::Open,
};

/// Types whose values can be state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be state, which all calls share",
    label = "must be `Send + Sync`",
    note = "for `Rc` write `Arc`, for `Cell` and `RefCell` a `Mutex` or an atomic, for `dyn Repo` declare `trait Repo: Send + Sync`"
)]
pub trait StateValue: Any + Send + Sync {}
#[diagnostic::do_not_recommend]
impl<T: Any + Send + Sync> StateValue for T {}

/// Opens the capability that a parameter names.
#[derive(Debug, Clone, Copy)]
pub struct Opens(pub(crate) Option<Open>);

impl Opens {
    /// Opens none.
    pub const NONE: Self = Self(None);
}

/// The keys of [`Extensions`] under which the values for one type are.
type KeysFn = fn() -> [TypeId; 2];

/// An injected parameter, as generated code declares it.
#[derive(Debug, Clone, Copy)]
pub struct Inject {
    /// The type as written in the source; `None` for parameters of functions that an attribute names.
    source_name: Option<&'static str>,
    type_name: fn() -> &'static str,
    /// Whether it is an `Option<&T>`.
    pub(crate) optional: bool,
    /// For an `Arc<U>`, the name of `U`, and the keys that would provide it.
    pointee: Option<(&'static str, KeysFn)>,
    /// The keys of [`Extensions`] that provide it.
    keys: KeysFn,
    target: fn() -> TypeId,
    /// Opens the capability that a function which takes it may use.
    pub(crate) opens: Option<Open>,
}

impl Inject {
    /// A parameter `&T`.
    #[must_use]
    pub const fn of<T: ?Sized + 'static>(name: &'static str, opens: Opens) -> Self {
        Self { source_name: Some(name), opens: opens.0, ..Self::of_attribute_fn::<T>() }
    }

    /// A parameter `&T` of a function that an attribute names.
    pub(crate) const fn of_attribute_fn<T: ?Sized + 'static>() -> Self {
        Self {
            source_name: None,
            type_name: type_name::<T>,
            optional: false,
            pointee: None,
            keys: || [TypeId::of::<Arc<T>>(), TypeId::of::<Arc<Arc<T>>>()],
            target: TypeId::of::<T>,
            opens: None,
        }
    }

    /// The same as a parameter `Option<&T>`.
    pub(crate) const fn or_none(self) -> Self {
        Self { optional: true, ..self }
    }

    /// The type's name, for messages.
    pub(crate) fn name(&self) -> &'static str {
        self.source_name.unwrap_or_else(self.type_name)
    }

    /// A parameter `Option<&T>`.
    #[must_use]
    pub const fn optional<T: ?Sized + 'static>(name: &'static str, opens: Opens) -> Self {
        Self::of::<T>(name, opens).or_none()
    }

    /// The `U` of a parameter `&Arc<U>`, for messages.
    #[must_use]
    pub const fn pointing_to<U: ?Sized + 'static>(self, name: &'static str) -> Self {
        let keys: KeysFn = || [TypeId::of::<Arc<U>>(), TypeId::of::<Arc<Arc<U>>>()];
        Self { pointee: Some((name, keys)), ..self }
    }

    /// The fix if nothing provides it.
    pub(crate) fn fix(&self, state: &Extensions) -> String {
        let ty = self.name();
        match self.pointee {
            Some((pointee, keys)) if state.contains_any(&keys()) => {
                return format!("`{pointee}` is registered: write `&{pointee}`, or register `{ty}`");
            }
            _ => {}
        }
        if is_claims((self.type_name)()) {
            return format!("claims are made for each call: write `#[mcp(inject)] claims: {ty}`");
        }
        if ty.starts_with("dyn ") {
            return format!(
                "register it as `Arc<{ty}>`: `let value: Arc<{ty}> = Arc::new(..);`, then `.state(value)`"
            );
        }
        let middleware = format!("or `.http(|http| http.from_request::<{ty}>())` if middleware provides it");
        let by_value =
            if self.source_name.is_some() { "\nif the client should send it, take it by value" } else { "" };
        format!("add `.state(..)` to the server, {middleware}{by_value}")
    }

    /// The type that the reference points to.
    pub(crate) fn target(&self) -> TypeId {
        (self.target)()
    }

    /// Whether it is a `&T`.
    pub(crate) fn is<T: 'static>(&self) -> bool {
        self.target() == TypeId::of::<T>()
    }

    /// Whether state has it, so that no request has to.
    pub(crate) fn is_provided_by_state(&self, state: &Extensions) -> bool {
        state.contains_any(&(self.keys)())
    }

    /// Whether state, or one of the request types that middleware provides, has it.
    pub(crate) fn is_provided(&self, state: &Extensions, requested: &[TypeId]) -> bool {
        let target = self.target();
        self.optional
            || target == TypeId::of::<Context>()
            || target == TypeId::of::<Principal>()
            || requested.contains(&target)
            || state.contains_any(&(self.keys)())
    }
}

/// Whether a type's full name is that of some [`Claims`].
fn is_claims(name: &str) -> bool {
    let claims = type_name::<Claims<()>>();
    claims.split('<').next().zip(name.split('<').next()).is_some_and(|(claims, own)| claims == own)
}

/// Finds the value for `&T`; a sized type may be the context itself.
#[derive(Debug)]
pub struct Probe<T: ?Sized>(PhantomData<fn() -> *const T>);

impl<T: ?Sized> Probe<T> {
    /// A probe for `T`.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// The failure of a function that needs a caller, of a request that has none; the log gets the cause.
pub(super) fn no_caller(cause: &str) -> ToolError {
    match Err::<Infallible, _>(cause).public_context("needs a caller who is authenticated") {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

fn missing_value<T: ?Sized + 'static>(context: &Context) -> Failure {
    if let Some(reason) = context.inner().state.unmade::<T>() {
        return ToolError::new(reason.to_string()).into();
    }
    if TypeId::of::<T>() == TypeId::of::<Principal>() {
        return no_caller(
            "the request has no authenticated caller\n\
             take `Option<&Principal>` to serve such requests; on stdio `.stdio(|stdio| stdio.caller(..))` says who calls, and in a shell `--as SUBJECT`",
        )
        .into();
    }
    Failure::private(format!(
        "no value of type `{}` exists for this request\nregister it with `.state(..)`, or have middleware put it into the request's extensions",
        type_name::<T>()
    ))
}

impl<T: 'static> Probe<T> {
    /// The value.
    ///
    /// # Errors
    /// None was registered, or none came with the request.
    pub fn find<'c>(&self, context: &'c Context) -> Result<&'c T, Failure> {
        self.find_optional(context).ok_or_else(|| missing_value::<T>(context))
    }

    /// The value, if one exists.
    #[must_use]
    pub fn find_optional<'c>(&self, context: &'c Context) -> Option<&'c T> {
        context.as_any::<T>().or_else(|| context.find::<T>())
    }
}

/// [`Probe`] for `&dyn Trait`: for sized types, its inherent methods take precedence.
pub trait ProbeDyn<T: ?Sized> {
    /// A parameter of this type names no capability; for those that do, an inherent constant takes precedence.
    const OPENS: Opens = Opens::NONE;

    /// The value.
    ///
    /// # Errors
    /// None was registered.
    fn find<'c>(&self, context: &'c Context) -> Result<&'c T, Failure>;

    /// The value, if one exists.
    fn find_optional<'c>(&self, context: &'c Context) -> Option<&'c T>;
}

impl<T: ?Sized + 'static> ProbeDyn<T> for Probe<T> {
    fn find<'c>(&self, context: &'c Context) -> Result<&'c T, Failure> {
        context.find::<T>().ok_or_else(|| missing_value::<T>(context))
    }

    fn find_optional<'c>(&self, context: &'c Context) -> Option<&'c T> {
        context.find::<T>()
    }
}

/// Values made for each call from its context: `#[mcp(inject)] tx: Tx`.
///
/// ```
/// use mcp_runtime::{Context, FromContext, ToolError};
///
/// struct Revision(String);
///
/// impl FromContext for Revision {
///     type Error = ToolError;
///
///     async fn from_context(ctx: &Context) -> Result<Self, ToolError> {
///         Ok(Self(ctx.revision().to_string()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from a request",
    label = "does not implement `FromContext`",
    note = "implement `mcp_runtime::FromContext` for it, or remove `#[mcp(inject)]` if the client sends it"
)]
pub trait FromContext: Sized + Send {
    /// Why it cannot be made.
    type Error: IntoFailure;

    /// Makes the value for one call.
    ///
    /// # Errors
    /// It cannot be made; the call fails as if the function had returned this error.
    fn from_context(context: &Context) -> impl Future<Output = Result<Self, Self::Error>> + Send;
}

/// How an owned parameter is made, as generated code declares it.
#[allow(missing_debug_implementations)] // a function pointer
pub struct FromContextFn<T>(for<'c> fn(&'c Context) -> MakeFuture<'c, T>);

type MakeFuture<'c, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'c>>;

/// How `T` is made. Its bound is checked here alone, so that a type which cannot be made is one error.
#[must_use]
pub const fn from_context_fn<T: FromContext>() -> FromContextFn<T> {
    FromContextFn(|context| {
        Box::pin(async move {
            T::from_context(context).await.map_err(|error| Failure::from(error.into_failure()))
        })
    })
}

impl<T> FromContextFn<T> {
    /// Makes the value for one call.
    ///
    /// # Errors
    /// As [`FromContext::from_context`].
    pub async fn make(&self, context: &Context) -> Result<T, Failure> {
        (self.0)(context).await
    }
}
