//! Reads `key`, `key = value` and `key(list)` options, keeping their spans.
//!
//! Called for the arguments of every attribute and for each parameter's `#[mcp(..)]`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Ident, Lit, LitInt, LitStr, Path, Token, Type};

use crate::errors::Errors;
use crate::names;

/// One option as it was written.
pub(crate) struct Entry {
    pub(crate) key: Ident,
    pub(crate) name: String,
    pub(crate) form: Form,
}

/// What follows the key of an option.
pub(crate) enum Form {
    Word,
    Value(Expr),
    Type(Type),
    List(TokenStream),
}

/// Reads a comma-separated list of options; one that cannot be read does not hide those after it.
pub(crate) fn entries(tokens: TokenStream, errors: &Errors) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            match Entry::parse(input) {
                Ok(entry) => found.push(entry),
                Err(error) => {
                    errors.add(error);
                    skip_option(input)?;
                    continue;
                }
            }
            if !input.is_empty() && !input.peek(Token![,]) {
                errors.add(input.error("expected `,` between options"));
                skip_option(input)?;
            } else if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        errors.add(error);
    }
    found
}

/// Drops the second of two options of one name, and reports it, unless the option may be repeated.
pub(crate) fn refuse_duplicates(entries: &mut Vec<Entry>, errors: &Errors) {
    let mut seen: Vec<String> = Vec::new();
    entries.retain(|entry| {
        let first = !seen.contains(&entry.name) || names::REPEATABLE.contains(&entry.name.as_str());
        if first {
            seen.push(entry.name.clone());
        } else {
            errors.at(&entry.key, format_args!("option `{}` is given twice\nkeep one of them", entry.name));
        }
        first
    });
}

/// The options of an attribute that takes `crate` and nothing else.
pub(crate) fn crate_option(options: TokenStream, place: &str, errors: &Errors) -> Option<Path> {
    let mut entries = entries(options, errors);
    refuse_duplicates(&mut entries, errors);
    let mut found = None;
    for entry in &entries {
        if entry.name == "crate" {
            found = entry.path(errors);
        } else {
            names::refuse(entry, place, names::CRATE, errors);
        }
    }
    found
}

fn skip_option(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() {
        if let TokenTree::Punct(punct) = input.parse()?
            && punct.as_char() == ','
        {
            break;
        }
    }
    Ok(())
}

impl Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if !input.peek(Ident::peek_any) {
            return Err(input.error("expected an option\nwrite `key`, `key = value` or `key(..)`"));
        }
        let key = Ident::parse_any(input)?;
        let name = key.unraw().to_string();
        let form = if input.is_empty() || input.peek(Token![,]) {
            Form::Word
        } else if input.peek(syn::token::Paren) {
            let list;
            syn::parenthesized!(list in input);
            Form::List(list.parse()?)
        } else if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            if input.is_empty() || input.peek(Token![,]) {
                return Err(syn::Error::new(
                    key.span(),
                    format_args!("`{name}` has no value after `=`\n{}", names::usage(&name)),
                ));
            }
            if name == "output" { Form::Type(input.parse()?) } else { Form::Value(ungroup(input.parse()?)) }
        } else {
            return Err(input.error(format_args!("expected `=`, `(` or `,` after `{name}`")));
        };
        Ok(Self { key, name, form })
    }

    pub(crate) fn span(&self) -> Span {
        self.key.span()
    }

    /// Reports that the value is not of the kind that the option takes.
    pub(crate) fn wrong(&self, wanted: &str, errors: &Errors) {
        let message = format!("`{}` takes {wanted}\n{}", self.name, names::usage(&self.name));
        match &self.form {
            Form::Value(value) => errors.at(value, message),
            Form::Type(ty) => errors.at(ty, message),
            Form::Word | Form::List(_) => errors.at(&self.key, message),
        }
    }

    pub(crate) fn string(&self, errors: &Errors) -> Option<LitStr> {
        let found = match &self.form {
            Form::Value(value) => literal_string(value),
            _ => None,
        };
        if found.is_none() {
            self.wrong("a string literal", errors);
        }
        found
    }

    /// A string literal, or a constant expression that the compiler checks.
    pub(crate) fn text(&self, errors: &Errors) -> Option<TokenStream> {
        match &self.form {
            Form::Value(value) if literal_string(value).is_some_and(|text| text.value().is_empty()) => {
                errors.at(value, format_args!("`{}` is empty\nwrite something, or remove it", self.name));
                None
            }
            Form::Value(value) if literal_string(value).is_some() || !matches!(value, Expr::Lit(_)) => {
                Some(value.to_token_stream())
            }
            _ => {
                self.wrong("a string", errors);
                None
            }
        }
    }

    /// `key` alone means true; `key = true` and `key = false` say it.
    pub(crate) fn flag(&self, errors: &Errors) -> Option<bool> {
        match &self.form {
            Form::Word => Some(true),
            Form::Value(Expr::Lit(ExprLit { lit: Lit::Bool(value), .. })) => Some(value.value),
            _ => {
                self.wrong("`true` or `false`", errors);
                None
            }
        }
    }

    /// `key = "a"`, `key = ["a", "b"]` or `key("a", "b")`.
    pub(crate) fn strings(&self, errors: &Errors) -> Option<Vec<LitStr>> {
        let found = self.list_of_strings();
        if found.is_none() {
            self.wrong("string literals", errors);
        }
        found
    }

    /// The same, for callers that say themselves what is wrong.
    pub(crate) fn list_of_strings(&self) -> Option<Vec<LitStr>> {
        let found: Option<Vec<LitStr>> = match &self.form {
            Form::Value(Expr::Array(array)) => array.elems.iter().map(literal_string).collect(),
            Form::Value(value) => literal_string(value).map(|one| vec![one]),
            Form::List(list) => Punctuated::<Expr, Token![,]>::parse_terminated
                .parse2(list.clone())
                .ok()
                .and_then(|list| list.iter().map(literal_string).collect()),
            Form::Word | Form::Type(_) => None,
        };
        found.filter(|found| !found.is_empty())
    }

    pub(crate) fn path(&self, errors: &Errors) -> Option<Path> {
        match &self.form {
            Form::Value(Expr::Path(path)) if path.qself.is_none() => Some(path.path.clone()),
            _ => {
                self.wrong("a path", errors);
                None
            }
        }
    }

    /// The path of a function, also of one that belongs to a type.
    pub(crate) fn function(&self, errors: &Errors) -> Option<TokenStream> {
        match &self.form {
            Form::Value(path @ Expr::Path(_)) => Some(path.to_token_stream()),
            _ => {
                self.wrong("a path", errors);
                None
            }
        }
    }

    pub(crate) fn integer(&self, errors: &Errors) -> Option<LitInt> {
        match &self.form {
            Form::Value(Expr::Lit(ExprLit { lit: Lit::Int(value), .. })) => Some(value.clone()),
            _ => {
                self.wrong("an integer literal", errors);
                None
            }
        }
    }

    /// A duration such as `"5s"`, in milliseconds.
    pub(crate) fn milliseconds(&self, errors: &Errors) -> Option<u64> {
        let text = self.string(errors)?;
        let found = milliseconds(&text.value());
        if found.is_none() {
            errors.at(
                &text,
                format_args!(
                    "`{}` is not a duration\nwrite a whole number above zero and a unit: \
                     \"250ms\", \"5s\", \"2m\" or \"1h\"",
                    text.value()
                ),
            );
        }
        found
    }
}

/// The string of a literal, also of one that a `macro_rules!` macro passed on.
pub(crate) fn literal_string(value: &Expr) -> Option<LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.clone()),
        Expr::Group(group) => literal_string(&group.expr),
        _ => None,
    }
}

/// Removes the invisible group that `macro_rules!` puts around a captured expression.
pub(crate) fn ungroup(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => ungroup(*group.expr),
        other => other,
    }
}

fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|&found| found > 0)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn durations_have_a_whole_number_and_a_unit() {
        for (text, found) in [("250ms", 250), ("5s", 5_000), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(milliseconds(text), Some(found), "{text}");
        }
        for text in ["", "5", "s", "0s", "5 s", "1.5s", "-1s", "5d", "5S", "99999999999999999999s", "é"] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
        assert_eq!(milliseconds("18446744073709551615h"), None);
    }
}
