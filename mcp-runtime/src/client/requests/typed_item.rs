//! Uses of annotated functions through a client: the compiler checks the types of the arguments, the function's own
//! schema their values before they are sent, and the result is the function's `Ok` type.

use std::{any::type_name, borrow::Cow, fmt, marker::PhantomData};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::uri_expansion::expand;
use crate::{
    capability::{prompts::PromptDescriptor, resources::ResourceDescriptor},
    client::{
        CallResult, Client, Error, PendingCall, ReadResult, RenderedPrompt,
        connect::shared_client::CallOptions, operation::OperationKind,
    },
    core::{
        arguments::AnyArg,
        content::{Bytes, Content, Json},
        item::{ItemDescriptor, Signature, Typed},
        tool::{InputSchema, ToolDescriptor, input_schema},
    },
};

/// A tool, resource, prompt or event that is an annotated function of this program, or of a crate that it depends on; see
/// [`Client::typed`](crate::client::Client::typed).
///
/// Arguments are a tuple of what the client sends, `(a,)` for one and `()` for none: injected references are left out, and
/// a parameter that `#[cfg]` removes is not there. All of them are given: a `default` of the server counts for `None` of an
/// `Option` only. Arguments with `header` are sent as headers, an argument with `flatten` as the whole object; variables
/// of a resource's template go into its URI, and the arguments of a prompt are sent as text. A method of a service is named
/// in the module of `#[mcp_service(markers = ..)]`. Functions with more than 16 arguments and functions without a marker have
/// no typed calls.
///
/// Arguments of another type do not compile, nor does reading a result back that has no such value:
///
/// ```compile_fail,E0271
/// # use mcp_runtime::{client::Client, prelude::*};
/// /// Adds two numbers.
/// #[mcp_tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// async fn call(client: Client) {
///     let _ = client.typed::<add>().call(("one", 2)).await;
/// }
/// # fn main() {}
/// ```
pub struct TypedItem<T> {
    pub(in crate::client) client: Client,
    name: Option<String>,
    item: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for TypedItem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedItem").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T> TypedItem<T> {
    pub(super) fn new(client: Client) -> Self {
        Self { client, name: None, item: PhantomData }
    }

    /// Uses a tool or a prompt by another name, or a resource by another URI or template, such as those that they are
    /// mounted under.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(in crate::client) fn name_or(&self, name: &str) -> String {
        self.name.clone().unwrap_or_else(|| name.to_owned())
    }

    /// Continues with what an async function makes of the prepared request.
    fn request<P, R, F, Fut>(&self, prepared: Result<P, Error>, send: F) -> PendingCall<R>
    where
        P: Send + 'static,
        F: FnOnce(Client, P, CallOptions) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let client = self.client.clone();
        PendingCall::new(self.client.shared(), OperationKind::Call, move |_, options| async move {
            send(client, prepared?, options).await
        })
    }
}

impl<T> TypedItem<T> {
    /// Calls a tool. The result is what the function returns: of `Json<T>` the `T`, of `Result<T, E>` the `T`.
    pub fn call<S: TypedSignature>(
        &self,
        arguments: S::Arguments,
    ) -> PendingCall<<S::Output as FromResult<CallResult>>::Value>
    where
        T: Typed<ToolDescriptor> + Signature<S>,
        S::Output: FromResult<CallResult>,
    {
        let prepared = self.prepare_call::<S>(arguments);
        self.request(prepared, |client, (name, arguments), options| async move {
            S::Output::read(client.call(name, arguments).with_options(options).await.and_then(CallResult::ok))
        })
    }

    /// Calls a tool whose result cannot be read back as a value.
    pub fn call_for_result<S: TypedSignature>(&self, arguments: S::Arguments) -> PendingCall<CallResult>
    where
        T: Typed<ToolDescriptor> + Signature<S>,
    {
        let prepared = self.prepare_call::<S>(arguments);
        self.request(prepared, |client, (name, arguments), options| async move {
            client.call(name, arguments).with_options(options).await
        })
    }

    fn prepare_call<S: TypedSignature>(&self, arguments: S::Arguments) -> Result<(String, Value), Error>
    where
        T: Typed<ToolDescriptor>,
    {
        let item = &T::TYPED.item;
        let name = self.name_or(item.name);
        let (arguments, schema) = check(&name, item, S::write(arguments, item.args)?)?;
        // for its headers; the server's own definition is better
        self.client.add_known_tools([serde_json::json!({ "name": name, "inputSchema": schema })])?;
        Ok((name, arguments.into()))
    }
}

impl<T> TypedItem<T> {
    /// Reads a resource, with values for the variables of its template. The result is what the function returns: of
    /// `Json<T>` the `T`, and of an `Option` `None` for a resource that does not exist.
    pub fn read<S: TypedSignature>(
        &self,
        variables: S::Arguments,
    ) -> PendingCall<<S::Output as FromResult<ReadResult>>::Value>
    where
        T: Typed<ResourceDescriptor> + Signature<S>,
        S::Output: FromResult<ReadResult>,
    {
        self.request(self.uri(variables), |client, uri, options| async move {
            S::Output::read(client.read(uri).with_options(options).await)
        })
    }

    /// Reads a resource whose contents cannot be read back as a value.
    pub fn read_for_result<S: TypedSignature>(&self, variables: S::Arguments) -> PendingCall<ReadResult>
    where
        T: Typed<ResourceDescriptor> + Signature<S>,
    {
        self.request(self.uri(variables), |client, uri, options| async move {
            client.read(uri).with_options(options).await
        })
    }

    /// The URI of a resource with these values for its variables, for subscriptions and links.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a value breaks the function's rules, or does not fit into the template.
    pub fn uri<S: TypedSignature>(&self, variables: S::Arguments) -> Result<String, Error>
    where
        T: Typed<ResourceDescriptor> + Signature<S>,
    {
        let descriptor = T::TYPED;
        let template = self.name_or(descriptor.uri.unwrap_or_default());
        let (variables, _) = check(&template, &descriptor.item, S::write(variables, descriptor.item.args)?)?;
        let is_raw =
            |name: &str| descriptor.item.args.iter().any(|arg| arg.name() == name && arg.options().raw);
        expand(&template, &variables, is_raw).map_err(Error::invalid)
    }
}

impl<T> TypedItem<T> {
    /// Fills in a prompt.
    pub fn prompt<S: TypedSignature>(&self, arguments: S::Arguments) -> PendingCall<RenderedPrompt>
    where
        T: Typed<PromptDescriptor> + Signature<S>,
    {
        let item = &T::TYPED.item;
        let name = self.name_or(item.name);
        let prepared = S::write(arguments, item.args).and_then(|arguments| check(&name, item, arguments));
        self.request(prepared, move |client, (arguments, _), options| async move {
            client.prompt(name, arguments).with_options(options).await
        })
    }
}

/// The arguments, after the function's own schema has checked them, and the schema.
pub(in crate::client) fn check(
    name: &str,
    item: &ItemDescriptor,
    arguments: Map<String, Value>,
) -> Result<(Map<String, Value>, Value), Error> {
    let InputSchema { published: schema, validator, .. } =
        input_schema(item, false).map_err(Error::invalid)?;
    let arguments = Value::Object(arguments);
    let problems = validator.map(|validator| validator.validate(&arguments)).unwrap_or_default();
    if let Some(problem) = problems.first() {
        return Err(Error::invalid(format!("`{name}` does not accept these arguments: {problem}")));
    }
    match arguments {
        Value::Object(arguments) => Ok((arguments, schema)),
        _ => unreachable!("it was made an object above"),
    }
}

/// The types of an annotated function: `fn(A, B) -> R`.
#[diagnostic::on_unimplemented(
    message = "this function has no typed calls",
    note = "its arguments must implement `serde::Serialize`, and be at most 16"
)]
pub trait TypedSignature {
    /// The arguments as a tuple.
    type Arguments;
    /// The return type of the function.
    type Output;

    #[doc(hidden)]
    fn write(arguments: Self::Arguments, declared: &[&dyn AnyArg]) -> Result<Map<String, Value>, Error>;
}

/// Return types of functions that a client can read back from an `R`: a [`CallResult`] or a [`ReadResult`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read back from a `{R}`",
    label = "not text, a number, a bool, `Json<T>`, nor an `Option` or `Result` of these",
    note = "a tool may also return `()`, and a resource bytes",
    note = "call `call_for_result` for the content blocks, or `read_for_result` for the contents"
)]
pub trait FromResult<R: TypedResult> {
    /// The value that a request returns.
    type Value: Send + 'static;

    #[doc(hidden)]
    fn read(result: Result<R, Error>) -> Result<Self::Value, Error>;

    /// Whether it is the result of a `None` of this type.
    #[doc(hidden)]
    fn is_none(result: &Result<R, Error>) -> bool {
        R::is_none(result)
    }
}

/// The results from which values are read.
#[doc(hidden)]
pub trait TypedResult {
    /// The text, if there is nothing else.
    fn only_text(&self) -> Result<Cow<'_, str>, Error>;

    /// Whether it is the result of a function that has returned `None`.
    fn is_none(result: &Result<Self, Error>) -> bool
    where
        Self: Sized;
}

impl TypedResult for CallResult {
    fn only_text(&self) -> Result<Cow<'_, str>, Error> {
        match &*self.content {
            [Content::Text(block)] => Ok((&*block.text).into()),
            _ => Err(Error::invalid(format!("the result is not one text: {}", self.text()))),
        }
    }

    fn is_none(result: &Result<Self, Error>) -> bool {
        result.as_ref().is_ok_and(|result| result.content.is_empty())
    }
}

impl TypedResult for ReadResult {
    fn only_text(&self) -> Result<Cow<'_, str>, Error> {
        self.text().map(Cow::Owned)
    }

    fn is_none(result: &Result<Self, Error>) -> bool {
        matches!(result, Err(Error::NotFound { .. }))
    }
}

macro_rules! signatures {
    ($($argument:ident)*) => {
        impl<R, $($argument: Serialize),*> TypedSignature for fn($($argument),*) -> R {
            type Arguments = ($($argument,)*);
            type Output = R;

            #[allow(non_snake_case, unused_mut, unused_variables)]
            fn write(
                arguments: Self::Arguments,
                declared: &[&dyn AnyArg],
            ) -> Result<Map<String, Value>, Error> {
                let ($($argument,)*) = arguments;
                let mut object = Map::new();
                let mut declared = declared.iter();
                $(if let Some(argument) = declared.next() {
                    insert(&mut object, *argument, &$argument)?;
                })*
                Ok(object)
            }
        }
    };
}

macro_rules! all_signatures {
    ($first:ident $($rest:ident)*) => {
        signatures!($first $($rest)*);
        all_signatures!($($rest)*);
    };
    () => { signatures!(); };
}
all_signatures!(A0 A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15);

fn insert<A: Serialize>(
    object: &mut Map<String, Value>,
    declared: &dyn AnyArg,
    value: &A,
) -> Result<(), Error> {
    let name = declared.name();
    let value = serde_json::to_value(value)
        .map_err(|error| Error::invalid(format!("the argument `{name}` cannot be written: {error}")))?;
    match value {
        Value::Object(members) if declared.is_flatten() => object.extend(members),
        // `None` is omitted, so that the server's default applies
        Value::Null => {}
        value => drop(object.insert(name.to_owned(), value)),
    }
    Ok(())
}

macro_rules! parsed {
    ($($value:ty)*) => {$(
        impl<R: TypedResult> FromResult<R> for $value {
            type Value = Self;

            fn read(result: Result<R, Error>) -> Result<Self, Error> {
                let result = result?;
                let text = result.only_text()?;
                let ty = type_name::<Self>();
                text.parse().map_err(|_| Error::invalid(format!("the result is not a `{ty}`: {text}")))
            }
        }
    )*};
}
parsed!(bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

macro_rules! texts {
    ($($text:ty)*) => {$(
        impl<R: TypedResult> FromResult<R> for $text {
            type Value = String;

            fn read(result: Result<R, Error>) -> Result<String, Error> {
                Ok(result?.only_text()?.into_owned())
            }
        }
    )*};
}
texts!(String &'static str Cow<'static, str>);

macro_rules! binary_contents {
    ($($bytes:ty)*) => {$(
        impl FromResult<ReadResult> for $bytes {
            type Value = Vec<u8>;

            fn read(result: Result<ReadResult, Error>) -> Result<Vec<u8>, Error> {
                Ok(result?.bytes()?.into_owned())
            }
        }
    )*};
}
binary_contents!(Vec<u8> Bytes &'static [u8]);

impl FromResult<CallResult> for () {
    type Value = ();

    fn read(result: Result<CallResult, Error>) -> Result<(), Error> {
        result.map(drop)
    }
}

impl<T: DeserializeOwned + Send + 'static> FromResult<CallResult> for Json<T> {
    type Value = T;

    fn read(result: Result<CallResult, Error>) -> Result<T, Error> {
        result?.structured()
    }

    fn is_none(result: &Result<CallResult, Error>) -> bool {
        let Ok(result) = result else { return false };
        match &result.structured {
            Some(value) => value.is_null() || value.get("result").is_some_and(Value::is_null),
            None => matches!(&*result.text(), "" | "null"),
        }
    }
}

impl<T: DeserializeOwned + Send + 'static> FromResult<ReadResult> for Json<T> {
    type Value = T;

    fn read(result: Result<ReadResult, Error>) -> Result<T, Error> {
        serde_json::from_str(&result?.text()?)
            .map_err(|error| Error::invalid(format!("the contents of the resource: {error}")))
    }
}

impl<R: TypedResult, T: FromResult<R>> FromResult<R> for Option<T> {
    type Value = Option<T::Value>;

    fn read(result: Result<R, Error>) -> Result<Self::Value, Error> {
        if T::is_none(&result) {
            return Ok(None);
        }
        T::read(result).map(Some)
    }
}

impl<R: TypedResult, T: FromResult<R>, E> FromResult<R> for Result<T, E> {
    type Value = T::Value;

    fn read(result: Result<R, Error>) -> Result<Self::Value, Error> {
        T::read(result)
    }
}
