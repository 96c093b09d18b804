//! The parameters of an item, each an argument or injected; argument names are unique. `&` alone decides injection,
//! because it is syntax: type names are not interpreted. The attributes that rustc does not know are removed.

use std::collections::HashMap;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Meta, Pat, PatType, Type, TypeReference};

use crate::diagnostics::Errors;
use crate::model::argument::Argument;
use crate::model::kind::Kind;
use crate::options::entry::{self, Entry};
use crate::options::known;
use crate::syntax::docs;
use crate::syntax::function::Function;
use crate::syntax::types::{
    BorrowSyntax, find_borrow, generic_argument, has_placeholder, mentions_self, option_inner, peel,
    replace_self, type_to_string, uses_lifetime,
};

pub(crate) struct Param {
    /// The position in the signature, which numbers the generated variables.
    pub(crate) index: usize,
    /// The predicate of its `#[cfg]`s.
    pub(crate) cfg: Option<TokenStream>,
    /// The type of the parameter; of `&T` and `Option<&T>`, the `T`.
    pub(crate) ty: Type,
    pub(crate) source: Source,
}

/// Where the value of a parameter comes from.
pub(crate) enum Source {
    /// The client sends it.
    Argument(Box<Argument>),
    /// `&T`, from the request or the server's state.
    Reference { optional: bool },
    /// `#[mcp(inject)] name: T`, created for the call.
    Injected,
    /// `#[mcp(payload)] name: &T`, the payload of an event; with the span of the option.
    Payload(Span),
}

impl Param {
    pub(crate) fn argument(&self) -> Option<&Argument> {
        match &self.source {
            Source::Argument(argument) => Some(argument),
            _ => None,
        }
    }

    /// The `#[cfg]` of everything that is generated for the parameter.
    pub(crate) fn cfg_attr(&self) -> Option<TokenStream> {
        let predicate = self.cfg.as_ref()?;
        Some(quote_spanned!(Span::mixed_site()=> #[cfg(#predicate)]))
    }
}

/// Reads the parameters and removes their helper attributes. In a service, `self_ty` replaces `Self`.
pub(crate) fn read(
    function: &mut Function,
    kind: Kind,
    self_ty: Option<&Type>,
    errors: &Errors,
) -> Vec<Param> {
    let mut params = Vec::new();
    let lifetimes = function.lifetimes();
    for (index, input) in function.sig.inputs.iter_mut().enumerate() {
        match input {
            FnArg::Receiver(receiver) => {
                receiver.attrs.retain(|attr| !is_helper(attr));
            }
            FnArg::Typed(param) => {
                params.extend(read_param(index, param, &lifetimes, kind, self_ty, errors));
            }
        }
    }
    check_names(&params, kind, errors);
    check_flatten(&params, errors);
    params
}

fn read_param(
    index: usize,
    param: &mut PatType,
    lifetimes: &[String],
    kind: Kind,
    self_ty: Option<&Type>,
    errors: &Errors,
) -> Option<Param> {
    let description = docs::read(&param.attrs);
    let options = read_options(&param.attrs, self_ty, errors);
    param.attrs.retain(|attr| !is_helper(attr));
    let cfg = combine_cfgs(&param.attrs);
    let without_self = |ty: &Type| match self_ty {
        Some(self_ty) => Type::Verbatim(replace_self(ty.to_token_stream(), self_ty)),
        None => ty.clone(),
    };
    let has_no_self = self_ty.is_none() && mentions_self(param.ty.to_token_stream());
    if has_no_self || is_rejected_by_rustc(&param.ty) {
        errors.leave_to_rustc();
        return None;
    }
    // Before `Self` is replaced, which could hide a reference.
    let shape = match classify(&param.ty) {
        Ok(shape) => shape,
        Err((tokens, message)) => {
            // A lifetime that the function declares is reported at its declaration.
            if !uses_lifetime(&tokens, lifetimes) {
                errors.at(tokens, message);
            }
            return None;
        }
    };
    if let Shape::Reference { target, optional } = shape {
        if !matches!(&*param.pat, Pat::Ident(_) | Pat::Wild(_)) {
            errors.at(&param.pat, "an injected parameter needs a plain name\ndestructure it in the body");
        }
        let payload = options.iter().find(|option| kind == Kind::Event && option.name == "payload");
        let what = if payload.is_some() { "the payload" } else { "`&T`, which is injected" };
        for option in options.iter().filter(|option| payload.is_none() || option.name != "payload") {
            let by_value = match &*option.name {
                "inject" => ", or the `&`: what is made for each call, such as `Claims<T>`, is a value",
                _ => "",
            };
            errors.at(
                &option.key,
                format_args!("`{}` does not apply to {what}\nremove it{by_value}", option.name),
            );
        }
        if let Some(payload) = payload {
            payload.flag(errors);
            if optional {
                let fix = format!("write `&{}`", type_to_string(target));
                errors.at(&param.ty, format_args!("an event always has its payload\n{fix}"));
            }
            let source = Source::Payload(payload.span());
            return Some(Param { index, cfg, ty: without_self(target), source });
        }
        return Some(Param { index, cfg, ty: without_self(target), source: Source::Reference { optional } });
    }
    let ty = without_self(&param.ty);
    if options.iter().any(|option| kind == Kind::Event && option.name == "payload") {
        let fix = format!("write `&{}`", type_to_string(&param.ty));
        errors.at(&param.ty, format_args!("the payload is shared by all subscriptions\n{fix}"));
        return None;
    }
    if let Some(inject) = options.iter().find(|option| option.name == "inject") {
        inject.flag(errors);
        for option in options.iter().filter(|option| option.name != "inject") {
            errors.at(
                &option.key,
                format_args!(
                    "`{}` does not apply to an injected parameter\nremove it, or `inject`",
                    option.name
                ),
            );
        }
        return Some(Param { index, cfg, ty, source: Source::Injected });
    }
    let name = match &*param.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => name.ident.clone(),
        pattern => {
            let fix = match extractor_fix(pattern, &param.ty) {
                Some(fix) => fix,
                None if matches!(pattern, Pat::Wild(_)) => {
                    "name it, or remove it: clients cannot send an argument without a name".to_owned()
                }
                None => "destructure it in the body".to_owned(),
            };
            errors.at(
                pattern,
                format_args!("an argument needs a plain name, because clients pass it by name\n{fix}"),
            );
            return None;
        }
    };
    if !options.iter().any(|option| option.name == "name" || option.name == "flatten") {
        report_underscore(&name, errors);
    }
    let mut argument = Argument::new(name.unraw().to_string(), name.span(), description);
    let is_flat = options.iter().any(|option| option.name == "flatten");
    if is_flat && option_inner(&param.ty).is_some() {
        errors.at(
            &param.ty,
            "`flatten` takes a struct, since the argument object is always present\nmake its fields `Option`s instead",
        );
    }
    for option in &options {
        let name = option.name.as_str();
        if is_flat && name == "secret" {
            errors.at(
                &option.key,
                "`secret` is for one argument, and `flatten` takes all of them\ntake the secret as a separate parameter",
            );
        } else if is_flat && is_option(name) && !matches!(name, "flatten" | "description") {
            errors.at(
                &option.key,
                format_args!(
                    "`{name}` cannot be combined with `flatten`\nput it on the fields of the struct"
                ),
            );
        } else if matches!(name, "optional" | "required") {
            report_presence(option, &param.ty, errors);
        } else if !argument.read_option(option, kind, errors) {
            option.report_unknown("`#[mcp(..)]`", &kind.known_parameter_options(), errors);
        }
    }
    Some(Param { index, cfg, ty, source: Source::Argument(Box::new(argument)) })
}

/// Reports `optional` or `required`, which the type says.
fn report_presence(option: &Entry, ty: &Type, errors: &Errors) {
    let name = option.name.as_str();
    let fix = match (name, option_inner(ty)) {
        ("optional", None) => format!("take `Option<{}>`", type_to_string(ty)),
        ("required", Some(inner)) => format!("take `{}`", type_to_string(inner)),
        _ => format!("remove it: `{}` is {name} already", type_to_string(ty)),
    };
    errors.at(
        &option.key,
        format_args!(
            "whether an argument is {name} depends on its type, and not on an option `{name}`\n{fix}"
        ),
    );
}

/// The fix for an extractor of another framework, such as `State(db): State<Db>`. The names only affect the wording: each
/// of these patterns is an error.
fn extractor_fix(pattern: &Pat, ty: &Type) -> Option<String> {
    let Pat::TupleStruct(pattern) = pattern else { return None };
    let (extractor, inner) = generic_argument(ty)?;
    let Some(Pat::Ident(name)) = pattern.elems.first().filter(|_| pattern.elems.len() == 1) else {
        return None;
    };
    let (name, inner) = (&name.ident, type_to_string(inner));
    match extractor.to_string().as_str() {
        "State" | "Extension" | "Data" => {
            Some(format!("for state, write `{name}: &{inner}`, and register it with `.state(..)`"))
        }
        "Json" | "Parameters" | "Form" | "Query" => {
            Some(format!("write its fields as parameters, or `#[mcp(flatten)] {name}: {inner}`"))
        }
        "Path" => Some(format!("write `{name}: {inner}`")),
        _ => None,
    }
}

/// An argument that clients would have to call `_query` is probably one that the function ignores.
fn report_underscore(name: &Ident, errors: &Errors) {
    let text = name.unraw().to_string();
    let bare = text.trim_start_matches('_');
    if bare != text && !bare.is_empty() {
        errors.at(
            name,
            format_args!(
                "clients would send this argument as `{text}`\n\
                 write `{bare}`, and `let _ = {bare};` in the body, or `#[mcp(name = \"{text}\")]` to keep the name"
            ),
        );
    }
}

/// The kinds of type that a parameter may have.
enum Shape<'a> {
    Owned,
    Reference { target: &'a Type, optional: bool },
}

/// The tokens of an error, and its message.
type TypeError = (TokenStream, String);

/// Whether no function can have a parameter of this type: it has no size, or no name.
fn is_rejected_by_rustc(ty: &Type) -> bool {
    match peel(ty) {
        Type::TraitObject(_) | Type::Slice(_) | Type::Never(_) => true,
        Type::Path(path) if path.path.is_ident("str") => true,
        ty => has_placeholder(ty.to_token_stream()),
    }
}

fn classify(ty: &Type) -> Result<Shape<'_>, TypeError> {
    if let Type::Reference(reference) = peel(ty) {
        return classify_reference(reference, false);
    }
    if let Some(Type::Reference(reference)) = option_inner(ty).map(peel) {
        return classify_reference(reference, true);
    }
    let Some((syntax, tokens)) = find_borrow(ty.to_token_stream()) else { return Ok(Shape::Owned) };
    let message = match syntax {
        BorrowSyntax::Impl => {
            "a parameter cannot be `impl Trait`\nname the type, or take `&dyn Trait` from the server's state"
        }
        BorrowSyntax::Lifetime => "an argument cannot have a lifetime\nwrite a type that owns its data",
        BorrowSyntax::Reference => {
            "an argument cannot hold a reference\nwrite a type that owns its data, such as `String` for `&str`"
        }
    };
    Err((tokens, message.to_owned()))
}

fn classify_reference(reference: &TypeReference, optional: bool) -> Result<Shape<'_>, TypeError> {
    let in_option = |ty: String| if optional { format!("Option<{ty}>") } else { ty };
    let must_own = |ty: String| format!("an argument must own its data\nwrite `{}`", in_option(ty));
    let target = peel(&reference.elem);
    let message = match target {
        Type::Path(path) if path.path.is_ident("str") => Some(must_own("String".to_owned())),
        Type::Slice(slice) => Some(must_own(match peel(&slice.elem) {
            Type::Reference(_) => "Vec<String>".to_owned(),
            elem => format!("Vec<{}>", type_to_string(elem)),
        })),
        Type::ImplTrait(_) => Some(
            "state cannot be `&impl Trait`\nwrite `&dyn Trait`, or `&T` with the name of the type".to_owned(),
        ),
        Type::Path(path)
            if reference.mutability.is_some()
                && path.path.segments.last().is_some_and(|last| last.ident == "Context") =>
        {
            Some(format!("the context is shared\nwrite `&{}`", type_to_string(target)))
        }
        _ if reference.mutability.is_some() => Some(format!(
            "state is shared by all calls and cannot be `&mut`\nwrite `{}`, with a `Mutex` or an atomic inside",
            in_option(format!("&{}", type_to_string(target)))
        )),
        _ => None,
    };
    if let Some(message) = message {
        return Err((reference.to_token_stream(), message));
    }
    if let Some(lifetime) = &reference.lifetime {
        let message = "an injected reference lives as long as the call\nwrite `&T` without a lifetime";
        return Err((lifetime.to_token_stream(), message.to_owned()));
    }
    match find_borrow(target.to_token_stream()) {
        None => Ok(Shape::Reference { target, optional }),
        Some((_, tokens)) => {
            let message = "an injected type cannot itself borrow\nwrite `&T` with a type that owns its data";
            Err((tokens, message.to_owned()))
        }
    }
}

/// The options of all `#[mcp(..)]` attributes of one parameter.
fn read_options(attrs: &[Attribute], self_ty: Option<&Type>, errors: &Errors) -> Vec<Entry> {
    let mut options = Vec::new();
    for attr in attrs {
        options.extend(own_options(attr, "function", self_ty, errors));
        if let Some(option) = option_as_attribute(attr) {
            errors.at(
                attr,
                format_args!(
                    "`{option}` is an option of a parameter, not an attribute\n{} inside `#[mcp(..)]`",
                    known::usage(&option)
                ),
            );
        } else if let Some(name) = type_attribute(attr) {
            let fix = name_option_instead(attr);
            errors.at(attr, format_args!("`#[{name}(..)]` is for fields, and this is a parameter\n{fix}"));
        }
    }
    entry::remove_duplicates(&mut options, errors);
    options
}

/// The options of `#[mcp(..)]`, none of other attributes; `item` would be written twice for two `#[cfg]`s.
pub(crate) fn own_options(
    attr: &Attribute,
    item: &str,
    self_ty: Option<&Type>,
    errors: &Errors,
) -> Vec<Entry> {
    match &attr.meta {
        Meta::List(list) if attr.path().is_ident("mcp") => {
            let tokens = list.tokens.clone();
            let tokens = match self_ty {
                Some(self_ty) => replace_self(tokens, self_ty),
                None => tokens,
            };
            return entry::parse(tokens, |_| Some("description"), errors);
        }
        _ if attr.path().is_ident("mcp") => {
            errors.at(attr, "`#[mcp]` has no options\nwrite `#[mcp(default = 10)]`, or remove it");
        }
        _ if attr.path().is_ident("cfg_attr") && mentions_mcp(attr) => errors.at(
            attr,
            format_args!(
                "`#[mcp(..)]` cannot be inside a `#[cfg_attr]`\nwrite the {item} twice, each under a `#[cfg]`"
            ),
        ),
        _ => {}
    }
    Vec::new()
}

fn is_helper(attr: &Attribute) -> bool {
    attr.path().is_ident("mcp")
        || docs::is_comment(attr)
        || attr.path().is_ident("cfg_attr") && mentions_mcp(attr)
        || option_as_attribute(attr).is_some()
        || type_attribute(attr).is_some()
}

/// The option that is written as a separate attribute, as in `#[description("..")]`.
fn option_as_attribute(attr: &Attribute) -> Option<String> {
    attr.path().get_ident().map(ToString::to_string).filter(|name| is_option(name))
}

/// Whether a parameter has an option of this name.
fn is_option(name: &str) -> bool {
    known::VALUE.contains(&name) || known::PARAMETER.contains(&name)
}

/// The name of an attribute that derives of types read.
fn type_attribute(attr: &Attribute) -> Option<&'static str> {
    let name = attr.path().get_ident()?.to_string();
    ["serde", "schemars", "validate", "garde"].into_iter().find(|other| *other == name)
}

/// The fix for an attribute that only derives read.
fn name_option_instead(attr: &Attribute) -> String {
    let tokens = attr.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default();
    match option_instead(&entry::read_quietly(tokens)) {
        Some(option) => format!("write `#[mcp({option})]`"),
        None => "write an option of `#[mcp(..)]`, or put it on a field of an `#[mcp_type]`".to_owned(),
    }
}

/// The option of `#[mcp(..)]` that says what the first option of an attribute of serde, schemars or a validator says.
pub(crate) fn option_instead(entries: &[Entry]) -> Option<&'static str> {
    entries.first().and_then(|entry| match entry.name.as_str() {
        "rename" => Some("name = \"..\""),
        "default" => Some("default"),
        "flatten" => Some("flatten"),
        "range" => Some("range(1..=100)"),
        "length" => Some("length(1..=200)"),
        "regex" | "pattern" => Some("pattern = \"..\""),
        "title" => Some("title = \"..\""),
        "description" => Some("description = \"..\""),
        "example" => Some("example = .."),
        _ => None,
    })
}

fn mentions_mcp(attr: &Attribute) -> bool {
    let Meta::List(list) = &attr.meta else { return false };
    list.tokens.clone().into_iter().any(|token| token.to_string() == "mcp")
}

/// One predicate that holds if all `#[cfg]`s hold.
fn combine_cfgs(attrs: &[Attribute]) -> Option<TokenStream> {
    let predicates: Vec<&TokenStream> = attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg"))
        .filter_map(|attr| attr.meta.require_list().ok())
        .map(|list| &list.tokens)
        .collect();
    match predicates.as_slice() {
        [] => None,
        [one] => Some(one.to_token_stream()),
        more => Some(quote!(all(#(#more),*))),
    }
}

/// Names of arguments are unique, and so are names of headers, which are case-insensitive.
fn check_names(params: &[Param], kind: Kind, errors: &Errors) {
    let mut seen: HashMap<&str, (bool, &str)> = HashMap::new();
    let mut headers: Vec<String> = Vec::new();
    for param in params {
        let Some(argument) = param.argument() else { continue };
        // Two parameters under `#[cfg]`s may exclude each other.
        let is_conditional = param.cfg.is_some();
        if let Some((other, ident)) = seen.insert(&argument.name, (is_conditional, &argument.ident))
            && !(is_conditional && other)
            // rustc reports parameters of the same name
            && *ident != argument.ident
        {
            errors.at_span(
                argument.name_span,
                format_args!(
                    "two parameters of this {} are named `{}`\nrename one",
                    kind.noun(),
                    argument.name
                ),
            );
        }
        let Some(header) = &argument.header else { continue };
        let lower = header.value().to_ascii_lowercase();
        if headers.contains(&lower) && !is_conditional {
            errors.at(
                header,
                format_args!(
                    "two parameters use the header `{}` (header names are case-insensitive)\nrename one",
                    header.value()
                ),
            );
        }
        headers.push(lower);
    }
}

fn check_flatten(params: &[Param], errors: &Errors) {
    let mut arguments = params.iter().filter_map(Param::argument);
    let total = arguments.clone().count();
    if let Some(flatten) = arguments.find_map(|argument| argument.flatten)
        && total > 1
    {
        errors.at_span(
            flatten,
            "`flatten` makes the parameter the whole argument object, so there can be no other argument\n\
             move the others into its struct",
        );
    }
}
