//! `meta(..)` is rendered as JSON text at compile time.

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, ExprUnary, Ident, Lit, LitStr, Token, UnOp};

use crate::diagnostics::Errors;
use crate::options::entry::{Entry, Form};

const VALUES: &str = "a value is a string, a number, a boolean, a list `[..]` or nested `key(..)`";

/// A JSON object.
pub(crate) struct MetaObject {
    pub(crate) json: String,
    /// The names of its top-level members.
    pub(crate) keys: Vec<String>,
}

pub(crate) fn read(entry: &Entry, errors: &Errors) -> Option<MetaObject> {
    let Form::List(list) = &entry.form else {
        entry.report_value("a list of keys and values", errors);
        return None;
    };
    parse_object(list.clone()).map_err(|error| errors.add(error)).ok()
}

fn parse_object(tokens: TokenStream) -> syn::Result<MetaObject> {
    let members = Punctuated::<MetaMember, Token![,]>::parse_terminated.parse2(tokens)?;
    let mut text = String::from("{");
    let mut seen: Vec<&str> = Vec::new();
    for MetaMember { name, key, value } in &members {
        if seen.contains(&name.as_str()) {
            return Err(syn::Error::new(
                *key,
                format_args!("key `{name}` is duplicated\nremove one of them"),
            ));
        }
        if !seen.is_empty() {
            text.push(',');
        }
        push_string(name, &mut text);
        text.push(':');
        text.push_str(value);
        seen.push(name);
    }
    text.push('}');
    Ok(MetaObject { json: text, keys: members.iter().map(|member| member.name.clone()).collect() })
}

struct MetaMember {
    name: String,
    key: Span,
    value: String,
}

impl Parse for MetaMember {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        // Keys with a prefix, such as `"org.example/kind"`, are not identifiers.
        let (name, key) = if input.peek(LitStr) {
            let name: LitStr = input.parse()?;
            (name.value(), name.span())
        } else if input.peek(Ident::peek_any) {
            let name = Ident::parse_any(input)?;
            (name.unraw().to_string(), name.span())
        } else {
            return Err(input.error("expected a key\nwrite `key = value` or `\"org.example/key\" = value`"));
        };
        let value = if input.peek(syn::token::Paren) {
            let nested;
            syn::parenthesized!(nested in input);
            parse_object(nested.parse()?)?.json
        } else if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            value_to_json(&input.parse()?)?
        } else {
            return Err(syn::Error::new(key, format_args!("`{name}` has no value\n{VALUES}")));
        };
        Ok(Self { name, key, value })
    }
}

fn value_to_json(expr: &Expr) -> syn::Result<String> {
    let not_json = || syn::Error::new_spanned(expr, format_args!("this is not a JSON value\n{VALUES}"));
    match expr {
        Expr::Group(group) => value_to_json(&group.expr),
        Expr::Lit(ExprLit { lit, .. }) => literal_to_json(lit).ok_or_else(not_json),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr: inner, .. }) => match &**inner {
            Expr::Lit(ExprLit { lit: lit @ (Lit::Int(_) | Lit::Float(_)), .. }) => {
                literal_to_json(lit).map(|text| format!("-{text}")).ok_or_else(not_json)
            }
            _ => Err(not_json()),
        },
        Expr::Array(array) => {
            let items = array.elems.iter().map(value_to_json).collect::<syn::Result<Vec<_>>>()?;
            Ok(format!("[{}]", items.join(",")))
        }
        _ => Err(not_json()),
    }
}

fn literal_to_json(lit: &Lit) -> Option<String> {
    match lit {
        Lit::Str(text) => Some(json_string(&text.value())),
        Lit::Bool(value) => Some(value.value.to_string()),
        Lit::Int(value) if value.suffix().is_empty() => Some(value.base10_digits().to_owned()),
        Lit::Float(value) if value.suffix().is_empty() => {
            let number: f64 = value.base10_parse().ok()?;
            // `{:?}` keeps the decimal point or the exponent, which are valid JSON.
            number.is_finite().then(|| format!("{number:?}"))
        }
        _ => None,
    }
}

/// A JSON string.
pub(crate) fn json_string(text: &str) -> String {
    let mut json = String::new();
    push_string(text, &mut json);
    json
}

fn push_string(text: &str, json: &mut String) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::parse_object;
    use quote::quote;

    #[test]
    fn values_become_json() {
        let tokens = quote! {
            model = "m", n = 1, less = -2, beta = true, tags = ["a", "b\n\"\\"], nested(x = 1, deep()),
            "org.example/rate" = 1_0.50, r#type = 0xff, tiny = 1e-7,
        };
        assert_eq!(
            parse_object(tokens).unwrap().json,
            r#"{"model":"m","n":1,"less":-2,"beta":true,"tags":["a","b\u000a\"\\"],"nested":{"x":1,"deep":{}},"#
                .to_owned()
                + r#""org.example/rate":10.5,"type":255,"tiny":1e-7}"#
        );
    }

    #[test]
    fn invalid_json_is_an_error() {
        for tokens in [
            quote!(a),
            quote!(a = b),
            quote!(a = 1u8),
            quote!(a = 'c'),
            quote!(a = 1, a = 2),
            quote!(a = -"x"),
            quote!(a = [b]),
            quote!(= 1),
            quote!(a = 1e999),
            quote!(a 1),
        ] {
            assert!(parse_object(tokens.clone()).is_err(), "{tokens}");
        }
    }
}
