//! The attributes of a type's fields and variants: `#[mcp(..)]` is reported with what serde and schemars call the same,
//! and removed; a misspelt word of theirs is reported with the right one.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Expr, ExprRange, RangeLimits};

use crate::attribute::misplaced::remove_attributes;
use crate::diagnostics::Errors;
use crate::options::entry::{self, Entry, Form};
use crate::options::known;
use crate::syntax::literals::{literal_integer, ungroup};

/// Reports and removes every `#[mcp(..)]`.
pub(crate) fn take_mcp(tokens: TokenStream, errors: &Errors) -> TokenStream {
    let mut is_mcp = |attribute: &Group, _| {
        let options = options(attribute);
        let is_mcp = options.is_some();
        options.into_iter().for_each(|options| report(attribute, options, errors));
        is_mcp
    };
    remove_attributes(tokens, Delimiter::None, &mut is_mcp)
}

/// The options of `[mcp(..)]`; `None` for every other attribute.
fn options(attribute: &Group) -> Option<TokenStream> {
    let mut tokens = attribute.stream().into_iter();
    match tokens.next() {
        Some(TokenTree::Ident(name)) if name == "mcp" => Some(match tokens.next() {
            Some(TokenTree::Group(options)) => options.stream(),
            _ => TokenStream::new(),
        }),
        _ => None,
    }
}

fn report(attribute: &Group, options: TokenStream, errors: &Errors) {
    let entries = entry::read_quietly(options);
    let instead: Vec<String> = entries.iter().filter_map(instead).collect();
    let fix = if instead.is_empty() || instead.len() < entries.len() {
        "write `#[serde(..)]` or `#[schemars(..)]`".to_owned()
    } else {
        format!("write {}", instead.join(" "))
    };
    let tokens =
        entries.first().map_or_else(|| attribute.to_token_stream(), |entry| entry.key.to_token_stream());
    errors.at(tokens, format_args!("`#[mcp(..)]` is for parameters, and this is a field\n{fix}"));
}

/// The attribute of serde or schemars that replaces an option.
fn instead(entry: &Entry) -> Option<String> {
    let value = || match &entry.form {
        Form::Value(value) => value.to_token_stream().to_string(),
        _ => "..".to_owned(),
    };
    Some(match entry.name.as_str() {
        "range" => format!("`#[schemars(range({}))]`", limits(entry)),
        "length" => format!("`#[schemars(length({}))]`", limits(entry)),
        "pattern" => format!("`#[schemars(regex(pattern = {}))]`", value()),
        "default" if matches!(entry.form, Form::Bare) => "`#[serde(default)]`".to_owned(),
        "default" => {
            format!("`#[serde(default = \"path::to::function\")]`, of a function that returns `{}`", value())
        }
        "name" => format!("`#[serde(rename = {})]`", value()),
        "title" => format!("`#[schemars(title = {})]`", value()),
        "description" => "a doc comment".to_owned(),
        "example" => format!("`#[schemars(example = {})]`", value()),
        "flatten" => "`#[serde(flatten)]`".to_owned(),
        "one_of" => "an enum with `#[mcp_type]` as its type".to_owned(),
        _ => return None,
    })
}

/// The bounds of a range, as schemars takes them.
fn limits(entry: &Entry) -> String {
    let Form::List(list) = &entry.form else { return "..".to_owned() };
    let text = |expr: &Expr| expr.to_token_stream().to_string().replace(' ', "");
    match syn::parse2::<Expr>(list.clone()).map(ungroup) {
        Ok(Expr::Range(ExprRange { start, end, limits, .. })) => {
            let start = start.map(|start| format!("min = {}", text(&start)));
            let end = end.map(|end| match (limits, literal_integer(&end)) {
                (RangeLimits::HalfOpen(_), Some(end)) => format!("max = {}", end.saturating_sub(1)),
                _ => format!("max = {}", text(&end)),
            });
            start.into_iter().chain(end).collect::<Vec<_>>().join(", ")
        }
        Ok(exact) => format!("equal = {}", text(&exact)),
        Err(_) => "..".to_owned(),
    }
}

const SERDE: &[&str] = &[
    "alias",
    "borrow",
    "bound",
    "content",
    "crate",
    "default",
    "deny_unknown_fields",
    "deserialize",
    "deserialize_with",
    "expecting",
    "field_identifier",
    "flatten",
    "from",
    "getter",
    "into",
    "other",
    "remote",
    "rename",
    "rename_all",
    "rename_all_fields",
    "serialize",
    "serialize_with",
    "skip",
    "skip_deserializing",
    "skip_serializing",
    "skip_serializing_if",
    "tag",
    "transparent",
    "try_from",
    "untagged",
    "variant_identifier",
    "with",
];
/// Options of schemars that serde does not have.
const SCHEMARS: &[&str] = &[
    "contains",
    "deprecated",
    "description",
    "email",
    "equal",
    "example",
    "extend",
    "inline",
    "inner",
    "ip",
    "ipv4",
    "ipv6",
    "length",
    "max",
    "min",
    "pattern",
    "range",
    "regex",
    "required",
    "schema_with",
    "title",
    "transform",
    "uri",
    "url",
];

/// Reports misspelt words of `#[serde(..)]` and `#[schemars(..)]` for which the right one is clear; the derives report
/// the others.
pub(crate) fn report_misspelt<'a>(attrs: impl Iterator<Item = &'a Attribute>, errors: &Errors) {
    for attr in attrs {
        let known: Vec<&str> = if attr.path().is_ident("serde") {
            SERDE.to_vec()
        } else if attr.path().is_ident("schemars") {
            SERDE.iter().chain(SCHEMARS).copied().collect()
        } else {
            continue;
        };
        if let Ok(list) = attr.meta.require_list() {
            report_words(&list.tokens, &known, attr, errors);
        }
    }
}

fn report_words(tokens: &TokenStream, known: &[&str], attr: &Attribute, errors: &Errors) {
    let ignored = Errors::new();
    let entries = entry::parse(tokens.clone(), |_| None, &ignored);
    let is_readable = ignored.is_empty();
    ignored.finish();
    for entry in entries.iter().filter(|_| is_readable) {
        if !known.contains(&entry.name.as_str()) {
            let Some(nearest) = known::find_nearest(&entry.name, known) else { continue };
            let name = attr.path().to_token_stream();
            errors.at(
                &entry.key,
                format_args!("unknown option `{}` of `#[{name}(..)]`\ndid you mean `{nearest}`?", entry.name),
            );
        } else if let Form::List(list) = &entry.form
            && matches!(entry.name.as_str(), "range" | "length" | "rename" | "rename_all")
        {
            let inner: &[&str] = match entry.name.as_str() {
                "range" => &["min", "max"],
                "length" => &["min", "max", "equal"],
                _ => &["serialize", "deserialize"],
            };
            report_words(list, inner, attr, errors);
        }
    }
}
