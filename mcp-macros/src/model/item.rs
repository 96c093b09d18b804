//! An item: its options, parameters and signature, each checked, so that all errors are reported together.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{Expr, FnArg, GenericParam, LitStr, Path, ReturnType, Safety, Type};

use crate::diagnostics::Errors;
use crate::model::icon::{self, Icon};
use crate::model::kind::{self, Kind};
use crate::model::marker::Marker;
use crate::model::params::{self, Param};
use crate::options::entry::{self, Entry};
use crate::options::known;
use crate::options::meta::{self, MetaObject};
use crate::syntax::docs;
use crate::syntax::function::{Function, last_segment};
use crate::syntax::types::{
    BorrowSyntax, contains_lifetime, find_borrow, future_output, make_static, mentions_self, peel,
    replace_self, type_to_string, uses_lifetime,
};

/// The options that only one kind of item has.
pub(crate) trait ItemOptions: Default {
    const KIND: Kind;

    /// Reads one option; false if no option has that name.
    fn read_option(&mut self, entry: &Entry, errors: &Errors) -> bool;

    /// Compares the options with each other and with the function.
    fn check(&self, common: &CommonOptions, function: &Function, params: &[Param], errors: &Errors);

    /// Whether the warning about items that no builder registers leaves this one out.
    fn is_unregistered(&self) -> bool {
        false
    }

    /// Whether a call becomes a task before the function runs.
    fn starts_task(&self) -> bool {
        false
    }
}

/// The options that all kinds of item have.
#[derive(Default)]
pub(crate) struct CommonOptions {
    pub(crate) krate: Option<Path>,
    name: Option<LitStr>,
    pub(crate) marker: Marker,
    pub(crate) title: Option<TokenStream>,
    /// Parts that the compiler concatenates.
    pub(crate) description: Vec<TokenStream>,
    pub(crate) icons: Vec<Icon>,
    pub(crate) meta: Option<MetaObject>,
    pub(crate) scopes: Vec<LitStr>,
    /// The features that the client must support, of [`known::FEATURES`].
    pub(crate) requires: Vec<&'static str>,
    /// The expressions that make its layers, outermost first.
    pub(crate) layers: Vec<Expr>,
    /// The rules over its arguments.
    pub(crate) validate: Vec<Path>,
    /// Whether the function runs on a blocking thread.
    pub(crate) blocking: Option<Ident>,
    /// How many times, and in how many milliseconds.
    pub(crate) rate: Option<(u32, u64)>,
    pub(crate) max_concurrency_per_caller: Option<TokenStream>,
    /// Bytes.
    pub(crate) max_result: Option<u64>,
}

impl CommonOptions {
    fn read_option(&mut self, entry: &Entry, errors: &Errors) -> bool {
        match entry.name.as_str() {
            "crate" => self.krate = entry.path(errors),
            "name" => self.name = entry.string(errors),
            "marker" => self.marker = Marker::read(entry, errors),
            "title" => self.title = entry.text(errors),
            "description" => self.description = entry.text(errors).into_iter().collect(),
            "icon" => self.icons.extend(icon::read(entry, errors)),
            "meta" => self.meta = meta::read(entry, errors),
            "scopes" => self.scopes = read_scopes(entry, errors),
            "layers" => self.layers = entry.expressions("layers", errors),
            "validate" => self.validate = entry.paths(errors),
            "requires" => self.requires = entry.words(known::FEATURES, errors),
            "rate" => self.rate = entry.rate(errors),
            "max_concurrency_per_caller" => self.max_concurrency_per_caller = entry.count(errors),
            "max_result" => self.max_result = entry.bytes(errors),
            "blocking" => {
                self.blocking = entry.flag(errors).filter(|&on| on).map(|_| entry.key.clone());
            }
            _ => return false,
        }
        true
    }

    /// A thread of the pool runs a plain function.
    fn check_blocking(&self, function: &Function, errors: &Errors) {
        let Some(blocking) = &self.blocking else { return };
        if function.is_async() {
            errors.at(blocking, "`blocking` is for a plain `fn`\nremove it, or the `async`");
        }
    }

    /// `ui(..)` and `tags(..)` are sent as members of `_meta`, so `meta(..)` cannot have the same keys.
    fn check_meta(&self, entries: &[Entry], errors: &Errors) {
        let Some(meta) = &self.meta else { return };
        for name in ["ui", "tags"] {
            if let Some(entry) = entries.iter().find(|entry| entry.name == name)
                && meta.keys.iter().any(|key| key == name)
            {
                errors
                    .at(&entry.key, format_args!("`{name}` is also a key of `meta(..)`\nremove one of them"));
            }
        }
    }
}

/// An item. After an error it is incomplete, and code generated from it has to be discarded.
pub(crate) struct Item<O> {
    pub(crate) options: O,
    pub(crate) common: CommonOptions,
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    /// `None` if the signature has no `->`.
    pub(crate) output: Option<Type>,
    /// The type whose method this is.
    pub(crate) self_ty: Option<Type>,
    /// Whether the method takes `&self`.
    pub(crate) takes_self: bool,
    pub(crate) is_async: bool,
    pub(crate) ident: Ident,
}

impl<O: ItemOptions> Item<O> {
    /// Reads and checks options and function, and removes from the function what rustc would not accept.
    pub(crate) fn read(
        options: TokenStream,
        function: &mut Function,
        self_ty: Option<&Type>,
        errors: &Errors,
    ) -> Self {
        let kind = O::KIND;
        let mut own = O::default();
        let mut common = CommonOptions::default();
        let mut entries = entry::parse(options, |text| kind.positional_option(text), errors);
        entry::remove_duplicates(&mut entries, errors);
        let known = kind.known_options();
        for entry in &entries {
            let is_known = known.contains(&entry.name.as_str())
                && (common.read_option(entry, errors) || own.read_option(entry, errors));
            if !is_known {
                entry.report_unknown(&format!("`#[{}]`", kind.attribute()), &known, errors);
            }
        }
        common.check_meta(&entries, errors);
        if self_ty.is_some()
            && let Some(entry) = entries.iter().find(|entry| entry.name == "marker")
        {
            let message = "`marker` is for free functions, and this is a method of a service\n\
                           remove it; `#[mcp_service(markers = shop)]` gives all methods a marker for typed calls";
            errors.at(&entry.key, message);
        }
        if common.description.is_empty() {
            common.description = docs::read(&function.attrs);
        }
        remove_stray_attributes(function, kind, errors);
        check_signature(function, kind, errors);
        let params = params::read(function, kind, self_ty, errors);
        common.check_blocking(function, errors);
        own.check(&common, function, &params, errors);
        let name = check_name(kind, common.name.as_ref(), function, errors);
        if self_ty.is_none() {
            common.marker = std::mem::take(&mut common.marker).resolve(function);
        }
        if let (ReturnType::Type(_, output), None) = (&function.sig.output, self_ty)
            && mentions_self(output.to_token_stream())
        {
            errors.leave_to_rustc();
        }
        let output = match (&function.sig.output, self_ty) {
            (ReturnType::Default, _) => None,
            (ReturnType::Type(_, output), None) => Some((**output).clone()),
            (ReturnType::Type(_, output), Some(self_ty)) => {
                Some(Type::Verbatim(replace_self(output.to_token_stream(), self_ty)))
            }
        };
        Self {
            options: own,
            common,
            name,
            params,
            output,
            self_ty: self_ty.cloned(),
            takes_self: function.sig.receiver().is_some(),
            is_async: function.is_async(),
            ident: function.sig.ident.clone(),
        }
    }
}

/// The scopes of an item. A token cannot carry a malformed one, so the item would be hidden from all callers.
fn read_scopes(entry: &Entry, errors: &Errors) -> Vec<LitStr> {
    // RFC 6749, section 3.3.
    let is_scope = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
    };
    let scopes = entry.strings(errors).unwrap_or_default();
    for scope in scopes.iter().filter(|scope| !is_scope(&scope.value())) {
        errors.at(
            scope,
            format_args!(
                "`{}` is not a valid scope\nlist each scope separately: `scopes(\"read\", \"write\")`",
                scope.value()
            ),
        );
    }
    scopes
}

fn check_name(kind: Kind, given: Option<&LitStr>, function: &Function, errors: &Errors) -> String {
    let name = given.map_or_else(|| function.name(), LitStr::value);
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let message = if name.is_empty() {
        "is empty\nwrite 1 to 128 characters".to_owned()
    } else if !kind.has_json_arguments() {
        return name;
    } else if name.chars().count() > 128 {
        "is longer than 128 characters\nshorten it".to_owned()
    } else if !name.chars().all(is_legal) {
        let one = kind.one();
        format!(
            "has a character that is not allowed in the name of {one}\nuse letters, digits, `_`, `-` and `.`"
        )
    } else {
        return name;
    };
    match given {
        Some(given) => errors.at(given, format_args!("the name `{name}` {message}")),
        None => {
            errors.at(&function.sig.ident, format_args!("the name `{name}` {message}, with `name = \"..\"`"));
        }
    }
    name
}

/// Reports `#[mcp(..)]` and further item attributes on the function, and prevents their expansion.
fn remove_stray_attributes(function: &mut Function, kind: Kind, errors: &Errors) {
    let attribute = kind.attribute();
    function.attrs.retain_mut(|attr| {
        if last_segment(attr).is_some_and(|name| name == "mcp") {
            errors.at(
                attr,
                format_args!(
                    "`#[mcp(..)]` belongs to a parameter\nput the options into `#[{attribute}(..)]`"
                ),
            );
            return false;
        }
        let Some(other) = Kind::of(attr).filter(|_| !kind::is_expanded(attr)) else { return true };
        let message = if other == kind {
            format!("`#[{attribute}]` is duplicated\nremove one of them")
        } else {
            format!(
                "`#[{}]` and `#[{attribute}]` are on the same function\nremove one of them",
                other.attribute()
            )
        };
        errors.at(&*attr, message);
        kind::mark_expanded(attr);
        true
    });
}

/// Checks the signature except for the parameters, and removes what rustc would also report.
fn check_signature(function: &mut Function, kind: Kind, errors: &Errors) {
    let one = kind.one();
    if let Safety::Unsafe(token) = &function.sig.safety {
        errors.at(
            token,
            format_args!(
                "{one} is called by clients and cannot be `unsafe`\nuse an `unsafe` block in the body"
            ),
        );
    }
    if let Some(abi) = &function.sig.abi {
        errors.at(abi, format_args!("{one} is an ordinary Rust function\nremove the `extern`"));
    }
    if let Some(variadic) = function.sig.variadic.take() {
        errors.at(variadic, format_args!("{one} cannot be variadic\ntake a `Vec<T>`"));
    }
    check_generics(function, one, errors);
    // the method of a trait is reported at its receiver
    if !function.has_body() && function.sig.receiver().is_none() {
        errors.at(&function.sig, format_args!("{one} needs a body\nadd one"));
        function.body = quote!({ loop {} });
        function.attrs.push(syn::parse_quote!(#[allow(unused_variables)]));
    }
    check_output(function, kind, errors);
}

fn check_generics(function: &Function, one: &str, errors: &Errors) {
    let generics = &function.sig.generics;
    if generics.params.iter().any(|param| !matches!(param, GenericParam::Lifetime(_))) {
        errors.at(
            &generics.params,
            format_args!("{one} cannot be generic, since clients call it by name alone\nname the types"),
        );
    } else if !generics.params.is_empty() {
        errors.at(
            &generics.params,
            format_args!(
                "{one} cannot have lifetime parameters\nremove them: take owned arguments, `&self`, and state as `&T`"
            ),
        );
    } else if let Some(clause) = &generics.where_clause {
        errors.at(clause, format_args!("{one} cannot have a `where` clause\nname the types"));
    }
}

fn check_output(function: &mut Function, kind: Kind, errors: &Errors) {
    let one = kind.one();
    let has_elided_lifetime = function.sig.inputs.iter().any(|input| match input {
        FnArg::Typed(param) => contains_lifetime(&param.ty),
        FnArg::Receiver(_) => true,
    });
    let lifetimes = function.lifetimes();
    let ReturnType::Type(_, output) = &mut function.sig.output else { return };
    if let Type::Never(never) = peel(output) {
        errors.at(never, format_args!("{one} must return\nremove the `-> !`"));
        return;
    }
    if let Some(inner) = future_output(output) {
        let inner = type_to_string(inner);
        errors.at(
            &**output,
            format_args!(
                "{one} that is asynchronous is an `async fn`, and does not return a future\nwrite `async fn .. -> {inner}`"
            ),
        );
        return;
    }
    match find_borrow(output.to_token_stream()) {
        None => {}
        // A lifetime that the function declares is reported at its declaration.
        Some((_, tokens)) if uses_lifetime(&tokens, &lifetimes) => {}
        Some((BorrowSyntax::Impl, tokens)) if kind == Kind::Event => errors.at(
            tokens,
            "an event cannot return `impl Trait`\nname the type: `bool`, `Option<T>`, or a `Result` of these",
        ),
        Some((BorrowSyntax::Impl, tokens)) => errors.at(
            tokens,
            format_args!(
                "{one} cannot return `impl Trait`\nname the type: `String`, `Json<T>`, `Vec<Content>`"
            ),
        ),
        Some((_, tokens)) => {
            errors.at(
                tokens,
                format_args!(
                    "{one} cannot return a borrowed value\nreturn an owned one: `String`, `Vec<T>`, `Json<T>`"
                ),
            );
            // Otherwise rustc would report a missing lifetime specifier.
            if !has_elided_lifetime {
                **output = Type::Verbatim(make_static(output.to_token_stream()));
            }
        }
    }
}
