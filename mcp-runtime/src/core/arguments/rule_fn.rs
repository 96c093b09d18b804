//! Rules over several arguments: functions that `validate` names. They take arguments by name and what the server provides
//! by type; they run once all of these are decoded, and before the function of the item.

use std::{
    any::{Any, TypeId},
    future::Future,
    pin::Pin,
    task::{Context as TaskContext, Poll, Waker},
};

use super::{
    BoxFuture,
    arg::AnyArg,
    call::{Call, InvalidArgument},
    inject::Inject,
};
use crate::{
    core::{
        context::Context,
        error::{Failure, IntoFailure},
        maybe_ready::MaybeReady,
    },
    schema::nearest,
};

/// Functions that `validate` accepts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a rule over arguments",
    label = "cannot be used with `validate`",
    note = "put `#[mcp_rule]` on the function"
)]
pub trait ArgumentRule {
    #[doc(hidden)]
    const DESCRIPTOR: &'static RuleDescriptor;
}

/// One rule, as generated code declares it.
#[derive(Debug)]
pub struct RuleDescriptor {
    /// The name of its function.
    pub name: &'static str,
    /// The doc comment of its function.
    pub description: Option<&'static str>,
    /// The parameters of its function.
    pub params: &'static [RuleParam],
    /// Calls its function.
    pub check: fn(RuleValues) -> RuleFuture,
}

impl RuleDescriptor {
    /// That of a function with errors.
    pub const EMPTY: Self =
        Self { name: "", description: None, params: &[], check: |_| Box::pin(async { Ok(()) }) };
}

/// The verdict of a rule on the arguments.
type RuleFuture = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// A parameter of a rule.
#[derive(Debug, Clone, Copy)]
pub struct RuleParam {
    name: &'static str,
    /// The type that an argument of this name has; none of what only the server provides.
    argument: Option<fn() -> TypeId>,
    inject: Inject,
}

impl RuleParam {
    /// A `&T`.
    #[must_use]
    pub const fn required<T: RuleArgument + ?Sized>(name: &'static str, inject: Inject) -> Self {
        Self { name, argument: Some(TypeId::of::<T::Owned>), inject }
    }

    /// An `Option<&T>`.
    #[must_use]
    pub const fn optional<T: RuleArgument + ?Sized>(name: &'static str, inject: Inject) -> Self {
        Self { name, argument: Some(TypeId::of::<Option<T::Owned>>), inject }
    }

    /// A `&dyn Trait`.
    #[must_use]
    pub const fn provided(name: &'static str, inject: Inject) -> Self {
        Self { name, argument: None, inject }
    }
}

/// The forms in which a rule can borrow an argument.
pub trait RuleArgument {
    /// The type of the argument.
    type Owned: Any + Send;
    /// The argument, borrowed.
    fn borrow(owned: &Self::Owned) -> &Self;
}

impl<T: Any + Send> RuleArgument for T {
    type Owned = T;
    fn borrow(owned: &T) -> &T {
        owned
    }
}

impl RuleArgument for str {
    type Owned = String;
    fn borrow(owned: &String) -> &str {
        owned
    }
}

impl<T: Any + Send> RuleArgument for [T] {
    type Owned = Vec<T>;
    fn borrow(owned: &Vec<T>) -> &[T] {
        owned
    }
}

/// The values that a rule takes.
#[allow(missing_debug_implementations)] // values of users' types
pub struct RuleValues {
    /// By parameter; none of what the server provides.
    arguments: Vec<Option<Box<dyn Any + Send>>>,
    context: Context,
}

impl RuleValues {
    /// The argument of a parameter `&T`.
    #[must_use]
    pub fn argument<T: RuleArgument + ?Sized>(&self, param: usize) -> Option<&T> {
        self.arguments.get(param)?.as_ref()?.downcast_ref().map(T::borrow)
    }

    /// The argument of a parameter `Option<&T>`.
    #[must_use]
    pub fn optional_argument<T: RuleArgument + ?Sized>(&self, param: usize) -> Option<Option<&T>> {
        let argument = self.arguments.get(param)?.as_ref()?.downcast_ref::<Option<T::Owned>>()?;
        Some(argument.as_ref().map(T::borrow))
    }

    /// The request.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }
}

/// The result of a rule.
///
/// # Errors
/// That of the rule.
pub fn rule_result<E: IntoFailure>(result: Result<(), E>) -> Result<(), Failure> {
    result.map_err(|error| error.into_failure().0)
}

/// Decodes one argument for a rule.
type DecodeArgument = fn(&Call<'_>) -> Result<Box<dyn Any + Send>, InvalidArgument>;

/// A value that a rule takes.
#[must_use]
pub fn rule_value<T: Any + Send>(value: T) -> Box<dyn Any + Send> {
    Box::new(value)
}

/// The rules of an item, as generated code declares them.
#[derive(Clone, Copy, Debug)]
pub struct ItemRules {
    /// In the order of the attribute.
    pub rules: &'static [&'static RuleDescriptor],
    /// The names of the function's parameters, and how each is decoded, in the order of the slots.
    pub arguments: &'static [(&'static str, DecodeArgument)],
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl ItemRules {
    /// No rules.
    pub const NONE: Self = Self { rules: &[], arguments: &[] };

    fn slot(&self, param: &RuleParam) -> Option<usize> {
        self.arguments.iter().position(|(name, _)| *name == param.name && param.argument.is_some())
    }

    /// The values that its rules take from the server, by rule.
    pub(crate) fn injects(&self) -> impl Iterator<Item = Inject> {
        let params = self.rules.iter().flat_map(|rule| rule.params);
        params.filter(|param| self.slot(param).is_none()).map(|param| param.inject)
    }

    /// The fix for a parameter that is not an argument and that the server does not provide: it may be a misspelt argument.
    pub(crate) fn fix(&self, inject: &Inject) -> Option<String> {
        let mut params = self.rules.iter().flat_map(|rule| rule.params);
        let param =
            params.find(|param| self.slot(param).is_none() && param.inject.target() == inject.target())?;
        let names = || self.arguments.iter().map(|(name, _)| *name);
        let argument = nearest(param.name, names()).map_or_else(
            || format!("no argument is called `{}`; there are {}", param.name, quoted(names())),
            |meant| format!("no argument is called `{}`; did you mean `{meant}`?", param.name),
        );
        Some(format!("{argument}\nif the server provides it, add `.state(..)`"))
    }

    /// The rules with the arguments that they take.
    ///
    /// # Errors
    /// A rule takes none of the arguments, or one of another type.
    pub(crate) fn bind(&self, args: &'static [&'static dyn AnyArg]) -> Result<Vec<BoundRule>, Vec<String>> {
        let mut errors = Vec::new();
        let mut bound = Vec::new();
        for rule in self.rules {
            let slots: Vec<_> = rule.params.iter().map(|param| self.slot(param)).collect();
            let name = rule.name;
            for (param, slot) in rule.params.iter().zip(&slots) {
                let of_rule = param.argument.map(|of| of());
                if let Some(arg) = slot.and_then(|slot| args.get(slot))
                    && of_rule.is_some_and(|of_rule| arg.type_of() != of_rule)
                {
                    let (param, ty) = (param.name, param.inject.name());
                    errors.push(format!(
                        "the rule `{name}` takes `{param}` as `{ty}`, and the argument `{param}` has another type\n\
                         take a reference to the type of the argument; of an `Option<T>`, `Option<&T>`"
                    ));
                }
            }
            if slots.iter().all(Option::is_none) {
                let names = || self.arguments.iter().map(|(name, _)| *name);
                let meant = rule.params.iter().find_map(|param| nearest(param.name, names()));
                let fix = meant.map_or(
                    format!("it takes arguments by name: {}", names().collect::<Vec<_>>().join(", ")),
                    |meant| format!("did you mean `{meant}`?"),
                );
                errors.push(format!("the rule `{name}` takes none of the arguments\n{fix}"));
            }
            let sent = |slot: &Option<usize>| slot.and_then(|slot| args.get(slot)).map(|arg| arg.name());
            let names: Vec<_> = slots.iter().filter_map(sent).collect();
            bound.push(BoundRule { rule, arguments: self.arguments, slots, names });
        }
        if errors.is_empty() { Ok(bound) } else { Err(errors) }
    }
}

/// A rule, and the arguments of an item that it takes.
#[derive(Debug)]
pub(crate) struct BoundRule {
    rule: &'static RuleDescriptor,
    arguments: &'static [(&'static str, DecodeArgument)],
    /// By parameter.
    slots: Vec<Option<usize>>,
    /// The arguments as they are sent.
    names: Vec<&'static str>,
}

/// An argument's rule that is broken: the arguments, and the message.
pub(super) type BrokenRule = (Vec<&'static str>, String);

impl BoundRule {
    /// The first line of its doc comment.
    pub(crate) fn title(&self) -> Option<&'static str> {
        self.rule.description.and_then(|text| text.lines().next()).filter(|line| !line.is_empty())
    }

    /// Calls its function; `None` if an argument that it takes is invalid.
    fn start(&self, call: &Call<'_>) -> Option<RuleFuture> {
        let decode = |slot: &Option<usize>| match slot.and_then(|slot| self.arguments.get(slot)) {
            Some((_, decode)) => decode(call).map(Some),
            None => Ok(None),
        };
        let arguments = self.slots.iter().map(decode).collect::<Result<_, _>>().ok()?;
        Some((self.rule.check)(RuleValues { arguments, context: call.context() }))
    }

    /// Starts rules, those whose arguments are valid.
    pub(super) fn start_all(rules: &[Self], call: &Call<'_>) -> MaybeReady<Result<Vec<BrokenRule>, Failure>> {
        let start = |rule: &Self| Some((rule.names.clone(), rule.start(call)?));
        let started: Vec<_> = rules.iter().filter_map(start).collect();
        let mut running: BoxFuture<_> = Box::pin(async move {
            let mut broken = Vec::new();
            for (names, check) in started {
                match check.await {
                    Ok(()) => {}
                    Err(Failure::Public { message, .. }) => broken.push((names, message.into_owned())),
                    // a private error stays private
                    Err(failure) => return Err(failure),
                }
            }
            Ok(broken)
        });
        match running.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(broken) => MaybeReady::Ready(broken),
            Poll::Pending => MaybeReady::Pending(running),
        }
    }
}
