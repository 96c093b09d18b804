//! The parameters of a function: what is an argument, what is injected, and under which names.
//!
//! Called by `kind`; strips the helper attributes that rustc would not accept.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Meta, Pat, PatType, Type};

use crate::argument::Argument;
use crate::attr::{self, Entry};
use crate::doc;
use crate::errors::Errors;
use crate::item::Function;
use crate::kind::Place;
use crate::names;
use crate::ty::{self, Shape};

/// One parameter, checked.
pub(crate) struct Param {
    /// Its place in the signature, which numbers the generated variables.
    pub(crate) index: usize,
    /// The predicate of its `#[cfg]`s.
    pub(crate) cfg: Option<TokenStream>,
    /// What the function takes; of a reference, what it points to.
    pub(crate) ty: Type,
    pub(crate) role: Role,
}

/// Where the value of a parameter comes from.
pub(crate) enum Role {
    /// The client sends it.
    Argument(Box<Argument>),
    /// `&T`, from the request or the server's state.
    Borrowed { optional: bool },
    /// `#[mcp(inject)] name: T`, made for the call.
    Made,
}

impl Param {
    pub(crate) fn argument(&self) -> Option<&Argument> {
        match &self.role {
            Role::Argument(argument) => Some(argument),
            _ => None,
        }
    }
}

/// Reads and strips the parameters; `this` is the type that `Self` stands for in a service.
pub(crate) fn read(
    function: &mut Function,
    place: Place,
    this: Option<&Type>,
    errors: &Errors,
) -> Vec<Param> {
    let mut found = Vec::new();
    let lifetimes = function.lifetimes();
    for (index, input) in function.sig.inputs.iter_mut().enumerate() {
        match input {
            FnArg::Receiver(receiver) => {
                receiver.attrs.retain(|attr| !is_helper(attr));
            }
            FnArg::Typed(param) => found.extend(param_at(index, param, &lifetimes, place, this, errors)),
        }
    }
    check_names(&found, place, errors);
    check_flatten(&found, errors);
    found
}

fn param_at(
    index: usize,
    param: &mut PatType,
    lifetimes: &[String],
    place: Place,
    this: Option<&Type>,
    errors: &Errors,
) -> Option<Param> {
    let docs = doc::description(&param.attrs);
    let options = options(&param.attrs, this, errors);
    param.attrs.retain(|attr| !is_helper(attr));
    let cfg = predicate(&param.attrs);
    let ty = match this {
        Some(this) => Type::Verbatim(ty::replace_self(param.ty.to_token_stream(), this)),
        None => (*param.ty).clone(),
    };
    // Read what was written, so that `Self` does not hide a reference.
    let shape = match ty::shape(&param.ty) {
        Ok(shape) => shape,
        Err((tokens, message)) => {
            // One that the function declares is refused there.
            if !ty::names_lifetime(&tokens, lifetimes) {
                errors.at(tokens, message);
            }
            return None;
        }
    };
    if let Shape::Borrowed { of, optional } = shape {
        if !matches!(&*param.pat, Pat::Ident(_) | Pat::Wild(_)) {
            errors.at(&param.pat, "an injected parameter needs a plain name\ntake it apart in the body");
        }
        for option in &options {
            errors.at(
                &option.key,
                format_args!("`{}` does not apply to `&T`, which is injected\nremove it", option.name),
            );
        }
        let ty = this.map(|this| Type::Verbatim(ty::replace_self(of.to_token_stream(), this))).unwrap_or(*of);
        return Some(Param { index, cfg, ty, role: Role::Borrowed { optional } });
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
        return Some(Param { index, cfg, ty, role: Role::Made });
    }
    let name = match &*param.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => name.ident.clone(),
        pattern => {
            errors
                .at(pattern, "an argument needs a plain name, which clients send\ntake it apart in the body");
            return None;
        }
    };
    let mut argument = Argument::new(name.unraw().to_string(), name.span(), docs);
    let flat = options.iter().any(|option| option.name == "flatten");
    if flat && ty::held(&param.ty).is_some() {
        errors.at(
            &param.ty,
            "`flatten` takes a struct, since the arguments are always there\nmake its fields `Option`s instead",
        );
    }
    for option in &options {
        let name = option.name.as_str();
        if flat && names::PARAMETER.contains(&name) && !matches!(name, "flatten" | "description") {
            errors.at(
                &option.key,
                format_args!("`{name}` does not apply beside `flatten`\nput it on the fields of the struct"),
            );
        } else if !argument.option(option, place, errors) {
            names::refuse(option, "`#[mcp(..)]`", names::PARAMETER, errors);
        }
    }
    Some(Param { index, cfg, ty, role: Role::Argument(Box::new(argument)) })
}

/// The entries of all `#[mcp(..)]` on one parameter.
fn options(attrs: &[Attribute], this: Option<&Type>, errors: &Errors) -> Vec<Entry> {
    let mut found = Vec::new();
    for attr in attrs {
        if attr.path().is_ident("mcp") {
            match &attr.meta {
                Meta::List(list) => {
                    let tokens = list.tokens.clone();
                    let tokens = this.map_or(tokens.clone(), |this| ty::replace_self(tokens, this));
                    found.extend(attr::entries(tokens, errors));
                }
                _ => errors.at(attr, "`#[mcp]` has no options\nwrite `#[mcp(default = 10)]`, or remove it"),
            }
        } else if attr.path().is_ident("cfg_attr") && mentions_mcp(attr) {
            errors.at(
                attr,
                "`#[mcp(..)]` cannot stand in a `#[cfg_attr]`\nwrite the function twice, each under a `#[cfg]`",
            );
        }
    }
    attr::refuse_duplicates(&mut found, errors);
    found
}

fn is_helper(attr: &Attribute) -> bool {
    attr.path().is_ident("mcp")
        || doc::is_comment(attr)
        || attr.path().is_ident("cfg_attr") && mentions_mcp(attr)
}

fn mentions_mcp(attr: &Attribute) -> bool {
    let Meta::List(list) = &attr.meta else { return false };
    list.tokens.clone().into_iter().any(|token| token.to_string() == "mcp")
}

/// One predicate that holds when all `#[cfg]`s hold.
fn predicate(attrs: &[Attribute]) -> Option<TokenStream> {
    let all: Vec<&TokenStream> = attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg"))
        .filter_map(|attr| attr.meta.require_list().ok())
        .map(|list| &list.tokens)
        .collect();
    match all.as_slice() {
        [] => None,
        [one] => Some(one.to_token_stream()),
        more => Some(quote!(all(#(#more),*))),
    }
}

/// Clients tell arguments apart by name, and headers ignoring case.
fn check_names(params: &[Param], place: Place, errors: &Errors) {
    let mut seen: HashMap<&str, (bool, &str)> = HashMap::new();
    let mut headers: Vec<String> = Vec::new();
    for param in params {
        let Some(argument) = param.argument() else { continue };
        // Two of one name under different `#[cfg]`s may exclude each other.
        let conditional = param.cfg.is_some();
        if let Some((other, ident)) = seen.insert(&argument.name, (conditional, &argument.ident))
            && !(conditional && other)
            // which the compiler refuses itself
            && *ident != argument.ident
        {
            errors.at_span(
                argument.name_span,
                format_args!(
                    "two parameters of this {} are named `{}`\nrename one",
                    place.noun(),
                    argument.name
                ),
            );
        }
        let Some(header) = &argument.header else { continue };
        let lower = header.value().to_ascii_lowercase();
        if headers.contains(&lower) && !conditional {
            errors.at(
                header,
                format_args!(
                    "two parameters use the header `{}` (case does not count)\nrename one",
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
    if let Some(flat) = arguments.find_map(|argument| argument.flatten)
        && total > 1
    {
        errors.at_span(
            flat,
            "`flatten` makes the parameter the whole argument object, so no other argument can stand beside it\n\
             move the others into its struct",
        );
    }
}
