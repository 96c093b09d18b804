//! The names that serde gives to the fields and variants of a type. Two of one name cannot both be sent, and neither serde
//! nor schemars reports that.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Fields, Item, ItemEnum, Lit, LitStr, Meta, Token};

use crate::diagnostics::Errors;

/// Reports fields of one name. An item that is not valid Rust is left to rustc.
pub(crate) fn report_duplicates(item: &TokenStream, errors: &Errors) {
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Struct(item)) => {
            report_fields(&item.fields, Names::read(&item.attrs).rename_all.as_deref(), errors);
        }
        Ok(Item::Enum(item)) => {
            let outer = Names::read(&item.attrs).rename_all_fields;
            for variant in &item.variants {
                let own = Names::read(&variant.attrs).rename_all;
                report_fields(&variant.fields, own.as_deref().or(outer.as_deref()), errors);
            }
            report_variants(&item, errors);
        }
        _ => {}
    }
}

fn report_fields(fields: &Fields, rule: Option<&str>, errors: &Errors) {
    let mut names: Vec<String> = Vec::new();
    for field in fields {
        let (Some(ident), names_of) = (&field.ident, Names::read(&field.attrs)) else { continue };
        if names_of.is_hidden {
            continue;
        }
        let name = match names_of.rename {
            Some(rename) => rename.value(),
            None => rename_field(&ident.unraw().to_string(), rule),
        };
        let aliases = aliases(&field.attrs).iter().map(LitStr::value).collect();
        report_known(&mut names, name, aliases, |name| {
            errors.at(ident, format_args!("two fields are named `{name}`\nrename one of them"));
        });
    }
}

/// Reports variants of one name, as far as the names are written: a rule for all of them keeps different names different.
fn report_variants(item: &ItemEnum, errors: &Errors) {
    let has_rule = Names::read(&item.attrs).rename_all.is_some();
    let is_untagged = |attrs: &[Attribute]| {
        let words = attrs.iter().filter(|attr| attr.path().is_ident("serde")).flat_map(options);
        words.into_iter().any(|word| word.path().is_ident("untagged"))
    };
    if is_untagged(&item.attrs) {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    for variant in &item.variants {
        let names_of = Names::read(&variant.attrs);
        if names_of.is_hidden || is_untagged(&variant.attrs) {
            continue;
        }
        let mut all: Vec<String> = aliases(&variant.attrs).iter().map(LitStr::value).collect();
        match names_of.rename {
            Some(rename) => all.push(rename.value()),
            None if !has_rule => all.push(variant.ident.unraw().to_string()),
            None => {}
        }
        let Some(name) = all.pop() else { continue };
        report_known(&mut names, name, all, |name| {
            errors.at(&variant.ident, format_args!("two variants are named `{name}`\nrename one of them"));
        });
    }
}

/// Adds the names of one field or variant to those of others, and reports the first that is known already.
fn report_known(names: &mut Vec<String>, name: String, aliases: Vec<String>, report: impl FnOnce(&str)) {
    let mut own = vec![name];
    for alias in aliases {
        // an alias may repeat the name itself
        if !own.contains(&alias) {
            own.push(alias);
        }
    }
    if let Some(known) = own.iter().find(|name| names.contains(name)) {
        report(known);
    }
    names.extend(own);
}

/// The other names of a field or a variant: the values of `#[serde(alias = "..")]`.
pub(crate) fn aliases(attrs: &[Attribute]) -> Vec<LitStr> {
    let options = attrs.iter().filter(|attr| attr.path().is_ident("serde")).flat_map(options);
    options.filter(|option| option.path().is_ident("alias")).filter_map(|option| read_name(&option)).collect()
}

/// The value of `#[serde(tag = "..")]`.
pub(crate) fn tag(attrs: &[Attribute]) -> Option<String> {
    let mut options = attrs.iter().filter(|attr| attr.path().is_ident("serde")).flat_map(options);
    options
        .find(|option| option.path().is_ident("tag"))
        .and_then(|tag| read_name(&tag))
        .map(|tag| tag.value())
}

/// The options of an attribute; none if they cannot be parsed.
fn options(attr: &Attribute) -> Punctuated<Meta, Token![,]> {
    attr.parse_args_with(Punctuated::parse_terminated).unwrap_or_default()
}

/// The names that the `#[serde(..)]` attributes of a type, a variant or a field set.
#[derive(Default)]
struct Names {
    rename: Option<LitStr>,
    rename_all: Option<String>,
    rename_all_fields: Option<String>,
    /// Whether the field has no separate name in JSON that is read.
    is_hidden: bool,
}

impl Names {
    fn read(attrs: &[Attribute]) -> Self {
        let mut names = Self::default();
        for attr in attrs {
            if attr.path().is_ident("cfg") {
                // it may not exist
                names.is_hidden = true;
            }
            if !attr.path().is_ident("serde") {
                continue;
            }
            for option in &options(attr) {
                let key = option.path().get_ident().map(ToString::to_string).unwrap_or_default();
                match key.as_str() {
                    "rename" => names.rename = read_name(option),
                    "rename_all" => names.rename_all = read_name(option).map(|name| name.value()),
                    "rename_all_fields" => {
                        names.rename_all_fields = read_name(option).map(|name| name.value());
                    }
                    "skip" | "skip_deserializing" | "flatten" => names.is_hidden = true,
                    _ => {}
                }
            }
        }
        names
    }
}

/// The string of `key = ".."` or `key(deserialize = "..")`.
fn read_name(option: &Meta) -> Option<LitStr> {
    match option {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.clone()),
            _ => None,
        },
        Meta::List(list) => {
            let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
            let options = list.parse_args_with(parse).ok()?;
            options.iter().find(|option| option.path().is_ident("deserialize")).and_then(read_name)
        }
        Meta::Path(_) => None,
    }
}

/// A field's name by serde's rules for `rename_all`.
fn rename_field(name: &str, rule: Option<&str>) -> String {
    match rule {
        Some("UPPERCASE" | "SCREAMING_SNAKE_CASE") => name.to_ascii_uppercase(),
        Some("PascalCase") => to_pascal_case(name),
        Some("camelCase") => to_camel_case(name),
        Some("kebab-case") => name.replace('_', "-"),
        Some("SCREAMING-KEBAB-CASE") => name.to_ascii_uppercase().replace('_', "-"),
        _ => name.to_owned(),
    }
}

/// `ClipboardWrite` of `clipboard_write`.
pub(crate) fn to_pascal_case(name: &str) -> String {
    name.split('_').map(|word| change_first(word, char::to_ascii_uppercase)).collect()
}

/// `clipboardWrite` of `clipboard_write`.
pub(crate) fn to_camel_case(name: &str) -> String {
    change_first(&to_pascal_case(name), char::to_ascii_lowercase)
}

fn change_first(word: &str, change: fn(&char) -> char) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| change(&first).to_string() + letters.as_str())
}
