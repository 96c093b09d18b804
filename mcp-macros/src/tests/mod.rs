//! Expansions: what a mistake reports, what stays of the function, how large the result is.

mod header;
mod option;
mod whole;

use proc_macro2::{TokenStream, TokenTree};

use crate::kind::free_function;
use crate::{prompt::Prompt, resource::Resource, tool::Tool};

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

fn tool(options: &str, item: &str) -> TokenStream {
    free_function::<Tool>(tokens(options), tokens(item))
}

fn resource(options: &str, item: &str) -> TokenStream {
    free_function::<Resource>(tokens(options), tokens(item))
}

fn prompt(options: &str, item: &str) -> TokenStream {
    free_function::<Prompt>(tokens(options), tokens(item))
}

/// Checks that there is exactly one mistake, and that its message says it and how to put it right.
#[track_caller]
fn one_mistake(expansion: &TokenStream, part: &str) {
    let found = messages(expansion);
    assert!(matches!(&found[..], [one] if one.contains(part)), "`{part}`: {found:#?}\n{expansion}");
}

/// The same for many: what is written, and a part of the message.
#[track_caller]
fn mistakes(cases: &[(&str, &str)], expand: impl Fn(&str) -> TokenStream) {
    for (written, part) in cases {
        one_mistake(&expand(written), part);
    }
}

#[track_caller]
fn no_mistake(expansion: &TokenStream) {
    assert_eq!(messages(expansion), Vec::<String>::new());
}

/// The tokens without any space.
fn flat(expansion: &TokenStream) -> String {
    expansion.to_string().split_whitespace().collect()
}
