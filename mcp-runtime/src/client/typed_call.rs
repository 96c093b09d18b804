//! Calls of annotated functions through a client: the compiler checks the types of the arguments, the function's own
//! schema their values before they are sent, and the result is the function's `Ok` type.

use std::{any::type_name, fmt, marker::PhantomData};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{CallResult, Client, Error, PendingCall};
use crate::{
    arguments::AnyArg,
    content::{Content, Json},
    item::Signature,
    schema::Validator,
    tool::{Tool, input_schema},
};

/// A tool that is an annotated function of this program, or of a crate that it depends on; see
/// [`Client::typed`](super::Client::typed).
///
/// Arguments are a tuple, `(a,)` for one and `()` for none. All of them are given: a `default` of the server counts for
/// `None` of an `Option` only. Arguments with `header` are sent as headers, an argument with `flatten` as the whole object.
/// A tool that the server mounts under a prefix is called by [`named`](Self::named). Functions with more than 16 arguments
/// and methods of services have no typed calls.
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
pub struct TypedTool<T> {
    client: Client,
    name: String,
    tool: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for TypedTool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedTool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: Tool> TypedTool<T> {
    pub(super) fn new(client: Client) -> Self {
        Self { client, name: T::DESCRIPTOR.item.name.to_owned(), tool: PhantomData }
    }

    /// Calls it by another name, such as the one it is mounted under.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Calls it. The result is what the function returns: of `Json<T>` the `T`, of `Result<T, E>` the `T`.
    pub fn call<S: TypedSignature>(
        &self,
        arguments: S::Arguments,
    ) -> PendingCall<<S::Output as TypedOutput>::Value>
    where
        T: Signature<S>,
        S::Output: TypedOutput,
    {
        let prepared = self.prepare::<S>(arguments);
        let (client, name) = (self.client.clone(), self.name.clone());
        PendingCall::new(self.client.core(), move |_, options, _| async move {
            let result = client.call(name, prepared?).with_options(options).await?;
            S::Output::read(result.ok()?)
        })
    }

    /// Calls a function whose result cannot be read back as a value.
    pub fn call_for_result<S: TypedSignature>(&self, arguments: S::Arguments) -> PendingCall<CallResult>
    where
        T: Signature<S>,
    {
        let prepared = self.prepare::<S>(arguments);
        let (client, name) = (self.client.clone(), self.name.clone());
        PendingCall::new(self.client.core(), move |_, options, _| async move {
            client.call(name, prepared?).with_options(options).await
        })
    }

    /// The arguments as they are sent, after the function's own schema has checked them.
    fn prepare<S: TypedSignature>(&self, arguments: S::Arguments) -> Result<Value, Error> {
        let item = &T::DESCRIPTOR.item;
        let arguments = S::write(arguments, item.args)?;
        let (schema, _) = input_schema(item, false).map_err(Error::invalid)?;
        let validator = Validator::compile(&schema).map_err(|error| Error::invalid(error.to_string()))?;
        let problems = validator.null_is_absent().validate(&arguments);
        if let Some(problem) = problems.first() {
            return Err(Error::invalid(format!(
                "`{}` does not accept these arguments: {problem}",
                self.name
            )));
        }
        // for its headers; the server's own definition is better
        self.client.add_known_tools([serde_json::json!({ "name": self.name, "inputSchema": schema })])?;
        Ok(arguments)
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
    /// What the function returns.
    type Output;

    #[doc(hidden)]
    fn write(arguments: Self::Arguments, declared: &[&dyn AnyArg]) -> Result<Value, Error>;
}

/// Return types of functions that a client can read back.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read back from a result",
    label = "not text, a number, a bool, `()`, `Json<T>`, nor an `Option` or `Result` of these",
    note = "call `call_for_result` for the content blocks"
)]
pub trait TypedOutput {
    /// What a call returns.
    type Value: Send + 'static;

    #[doc(hidden)]
    fn read(result: CallResult) -> Result<Self::Value, Error>;

    /// Whether it is the result of a `None` of this type.
    #[doc(hidden)]
    fn is_none(result: &CallResult) -> bool {
        result.content.is_empty()
    }
}

macro_rules! signatures {
    ($($argument:ident)*) => {
        impl<R, $($argument: Serialize),*> TypedSignature for fn($($argument),*) -> R {
            type Arguments = ($($argument,)*);
            type Output = R;

            #[allow(non_snake_case, unused_mut, unused_variables)]
            fn write(arguments: Self::Arguments, declared: &[&dyn AnyArg]) -> Result<Value, Error> {
                let ($($argument,)*) = arguments;
                let mut object = Map::new();
                let mut declared = declared.iter();
                $(if let Some(argument) = declared.next() {
                    insert(&mut object, *argument, &$argument)?;
                })*
                Ok(Value::Object(object))
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
        // what is `None` is left out, so that a default of the server counts
        Value::Null => {}
        value => drop(object.insert(name.to_owned(), value)),
    }
    Ok(())
}

macro_rules! parsed {
    ($($number:ty)*) => {$(
        impl TypedOutput for $number {
            type Value = Self;

            fn read(result: CallResult) -> Result<Self, Error> {
                result.text().parse().map_err(|_| unexpected::<Self>(&result))
            }
        }
    )*};
}
parsed!(bool i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

macro_rules! texts {
    ($($text:ty)*) => {$(
        impl TypedOutput for $text {
            type Value = String;

            fn read(result: CallResult) -> Result<String, Error> {
                match &*result.content {
                    [Content::Text(_)] => Ok(result.text()),
                    _ => Err(unexpected::<String>(&result)),
                }
            }
        }
    )*};
}
texts!(String &'static str std::borrow::Cow<'static, str>);

impl TypedOutput for () {
    type Value = ();

    fn read(_: CallResult) -> Result<(), Error> {
        Ok(())
    }
}

impl<T: DeserializeOwned + Send + 'static> TypedOutput for Json<T> {
    type Value = T;

    fn read(result: CallResult) -> Result<T, Error> {
        result.structured()
    }

    fn is_none(result: &CallResult) -> bool {
        match &result.structured {
            Some(value) => value.is_null() || value.get("result").is_some_and(Value::is_null),
            None => matches!(&*result.text(), "" | "null"),
        }
    }
}

impl<T: TypedOutput> TypedOutput for Option<T> {
    type Value = Option<T::Value>;

    fn read(result: CallResult) -> Result<Self::Value, Error> {
        if T::is_none(&result) {
            return Ok(None);
        }
        T::read(result).map(Some)
    }
}

impl<T: TypedOutput, E> TypedOutput for Result<T, E> {
    type Value = T::Value;

    fn read(result: CallResult) -> Result<Self::Value, Error> {
        T::read(result)
    }
}

fn unexpected<T>(result: &CallResult) -> Error {
    Error::invalid(format!("the result is not a `{}`: {}", type_name::<T>(), result.text()))
}
