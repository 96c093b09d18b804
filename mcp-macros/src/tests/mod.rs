//! Expansions as tokens: every invalid input is exactly one error, and the function is always emitted.

mod config;
mod error_types;
mod events;
mod expansion;
mod options;
mod signature;

use proc_macro2::{TokenStream, TokenTree};

use crate::attribute::{error_, item};
use crate::model::{prompt::PromptOptions, resource::ResourceOptions, tool::ToolOptions};

/// The messages of all `compile_error!`s in an expansion.
fn messages(tokens: &TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    let mut after_name = false;
    for token in tokens.clone() {
        match token {
            TokenTree::Ident(name) => after_name = name == "compile_error",
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            TokenTree::Group(group) if after_name => {
                found.push(syn::parse2::<syn::LitStr>(group.stream()).unwrap().value());
                after_name = false;
            }
            TokenTree::Group(group) => found.extend(messages(&group.stream())),
        }
    }
    found
}

fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap()
}

fn tool(options: &str, function: &str) -> TokenStream {
    item::expand::<ToolOptions>(tokens(options), tokens(function))
}

fn resource(options: &str, function: &str) -> TokenStream {
    item::expand::<ResourceOptions>(tokens(options), tokens(function))
}

fn error(options: &str, item: &str) -> TokenStream {
    error_::expand(tokens(options), &tokens(item))
}

fn prompt(options: &str, function: &str) -> TokenStream {
    item::expand::<PromptOptions>(tokens(options), tokens(function))
}

/// Asserts that there is exactly one error, whose message contains `part`.
#[track_caller]
fn assert_one_error(expansion: &TokenStream, part: &str) {
    let found = messages(expansion);
    assert!(matches!(&found[..], [one] if one.contains(part)), "`{part}`: {found:#?}\n{expansion}");
}

/// Like [`assert_one_error`], for pairs of input and part of the message.
#[track_caller]
fn assert_errors(cases: &[(&str, &str)], expand: impl Fn(&str) -> TokenStream) {
    for (input, part) in cases {
        assert_one_error(&expand(input), part);
    }
}

#[track_caller]
fn assert_no_error(expansion: &TokenStream) {
    assert_eq!(messages(expansion), Vec::<String>::new());
}

/// The tokens without whitespace.
fn flat(expansion: &TokenStream) -> String {
    expansion.to_string().split_whitespace().collect()
}
