//! `#[mcp(..)]` on a type's fields and variants is reported with what serde and schemars call the same, and removed.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Expr, ExprRange, RangeLimits};

use crate::attribute::misplaced::remove_attributes;
use crate::diagnostics::Errors;
use crate::options::entry::{self, Entry, Form};
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
