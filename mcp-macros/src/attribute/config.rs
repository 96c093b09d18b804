//! `#[mcp_config]`: a struct whose fields are settings. The struct is emitted without the helper attributes, whether or not
//! it is valid.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, Fields, ItemStruct, LitStr, Path, Token, parse_quote};

use crate::attribute::{misplaced, type_, type_attributes};
use crate::diagnostics::Errors;
use crate::expand::settings::ConfigStruct;
use crate::model::setting::{self, Setting};
use crate::options::{entry, known};

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    let mut name = None;
    let krate = entry::read_with_crate(options, "`#[mcp_config]`", known::CONFIG, &errors, |entry| {
        let is_known = entry.name == "name";
        if is_known {
            name = entry.string(&errors).filter(|name| is_name(name, &errors));
        }
        is_known
    });
    if misplaced::find_keyword(item).is_none_or(|keyword| keyword != "struct") {
        let message = "`#[mcp_config]` belongs to a `struct` with named fields\nput `#[mcp_type]` on an `enum` that is the type of a field";
        misplaced::report_at_keyword(item, message, &errors);
        return stripped(item, errors);
    }
    let mut item: ItemStruct = match syn::parse2(item.clone()) {
        Ok(item) => item,
        Err(error) => {
            errors.add(error);
            return stripped(item, errors);
        }
    };
    if !item.generics.params.is_empty() {
        errors.at(&item.generics, "settings cannot be generic\nwrite the types instead of parameters");
    }
    report_attributes(&mut item.attrs, &errors);
    let mut settings: Vec<Setting> = Vec::new();
    match &mut item.fields {
        Fields::Named(fields) => {
            settings.extend(fields.named.iter_mut().filter_map(|field| setting::read(field, &errors)));
        }
        Fields::Unnamed(fields) => {
            errors.at(
                &*fields,
                "settings have names, and these fields have none\nwrite `{ name: T }` instead of `(T)`",
            );
            fields
                .unnamed
                .iter_mut()
                .for_each(|field| field.attrs.retain(|attr| !attr.path().is_ident("mcp")));
        }
        Fields::Unit => {
            errors.at(&item.ident, "settings need fields\nadd some: `{ name: T }`");
        }
    }
    setting::check_names(&settings, &errors);
    let config = ConfigStruct {
        attrs: &item.attrs,
        vis: &item.vis,
        ident: &item.ident,
        name: name.as_ref(),
        krate: krate.as_ref(),
    };
    let generated = if errors.is_empty() {
        Some(config.expand(&settings))
    } else {
        item.generics.params.is_empty().then(|| config.expand_invalid())
    };
    let errors = errors.finish();
    quote!(#item #generated #errors)
}

/// An item that cannot have settings, without the helper attributes.
fn stripped(item: &TokenStream, errors: Errors) -> TokenStream {
    let ignored = Errors::new();
    let item = type_attributes::take_mcp(item.clone(), &ignored);
    ignored.finish();
    let errors = errors.finish();
    quote!(#item #errors)
}

/// Reports what the attribute does by itself, and what it does not read.
fn report_attributes(attrs: &mut Vec<Attribute>, errors: &Errors) {
    let present = type_::report_derives(attrs, "mcp_config", errors);
    for attr in attrs.iter_mut().filter(|attr| !present.is_empty() && attr.path().is_ident("derive")) {
        // each would be a separate impl
        let parse = Punctuated::<Path, Token![,]>::parse_terminated;
        let Ok(paths) = attr.parse_args_with(parse) else { continue };
        let is_own = |path: &Path| {
            path.segments.last().is_some_and(|last| present.iter().any(|name| last.ident == name))
        };
        let others = paths.iter().filter(|path| !is_own(path));
        *attr = parse_quote!(#[derive(#(#others),*)]);
    }
    let is_helper =
        |attr: &mut Attribute| ["serde", "schemars", "mcp"].iter().any(|name| attr.path().is_ident(name));
    for attr in attrs.extract_if(.., is_helper) {
        let name = attr.path().to_token_stream();
        errors.at(
            &attr,
            format_args!(
                "`#[{name}(..)]` has no effect on settings\nwrite options of a field in `#[mcp(..)]` on it, and `#[mcp_config(name = \"..\")]` for the names of variables and file"
            ),
        );
    }
}

/// Whether a name can be that of a folder and the start of variables.
fn is_name(name: &LitStr, errors: &Errors) -> bool {
    let text = name.value();
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts && text.chars().all(is_valid) {
        return true;
    }
    errors.at(
        name,
        format_args!(
            "`{text}` cannot name variables and a file\nuse letters, digits, `-` and `_`: `name = \"ledger\"`"
        ),
    );
    false
}
