//! The marker of an item: the type that names it in `.tool::<name>()`.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Expr;

use crate::diagnostics::Errors;
use crate::options::entry::{Entry, Form};
use crate::syntax::function::Function;

/// The types that every module has without an import.
const PRIMITIVES: [&str; 17] = [
    "bool", "char", "str", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize", "f32", "f64",
];

/// The name of the marker type.
#[derive(Default)]
pub(crate) enum Marker {
    /// The name of the function. Not of one whose name a primitive type has, or whose own tokens use it as the first
    /// segment of a path: those are resolved to `Omitted`.
    #[default]
    Function,
    Named(Ident),
    /// Only discovery finds the item.
    Omitted,
}

impl Marker {
    /// Reads `marker = Name` or `marker = none`.
    pub(crate) fn read(entry: &Entry, errors: &Errors) -> Self {
        if let Form::Value(Expr::Path(value)) = &entry.form
            && let Some(name) = value.path.get_ident()
        {
            return if name == "none" { Self::Omitted } else { Self::Named(name.clone()) };
        }
        entry.report_value("a name or `none`", errors);
        Self::default()
    }

    /// Omits the type of its function's name if the function needs that name for something else.
    pub(crate) fn resolve(self, function: &Function) -> Self {
        let ident = &function.sig.ident;
        let is_path = || {
            starts_path(ident, function.sig.to_token_stream()) || starts_path(ident, function.body.clone())
        };
        match self {
            // imported by a glob, it would still shadow a primitive type
            Self::Function if PRIMITIVES.iter().any(|name| ident == name) || is_path() => Self::Omitted,
            marker => marker,
        }
    }
}

/// Whether `tokens` have a path that starts with `ident::`, which would resolve to the marker instead of a crate. A name
/// with generic arguments is a function or a type, such as `ctx.emit::<T>` in a function `emit`.
fn starts_path(ident: &Ident, tokens: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_punct = |at: Option<usize>, character| {
        let token = at.and_then(|at| tokens.get(at));
        matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
    };
    let is_colon = |at| is_punct(at, ':');
    tokens.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Group(group) => starts_path(ident, group.stream()),
        TokenTree::Ident(found) => {
            let follows_colons = || is_colon(at.checked_sub(1)) && is_colon(at.checked_sub(2));
            // names last: comparing them costs most
            is_colon(Some(at + 1))
                && is_colon(Some(at + 2))
                && !is_punct(Some(at + 3), '<')
                && !follows_colons()
                && found == ident
        }
        _ => false,
    })
}
