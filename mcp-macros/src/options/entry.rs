//! Options of the forms `key`, `key = value` and `key(list)`, with the spans of key and value.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Ident, Lit, LitInt, LitStr, Path, Token, Type};

use crate::diagnostics::Errors;
use crate::options::{known, rate_syntax, size};
use crate::syntax::literals::{literal_string, ungroup};

/// One option.
pub(crate) struct Entry {
    pub(crate) key: Ident,
    pub(crate) name: String,
    pub(crate) form: Form,
}

/// The part of an option after its key.
pub(crate) enum Form {
    /// Nothing: `key`.
    Bare,
    Value(Expr),
    Type(Type),
    List(TokenStream),
}

/// Parses a list of options in which each name may occur once, except for repeatable ones.
pub(crate) fn read(tokens: TokenStream, errors: &Errors) -> Vec<Entry> {
    let mut entries = parse(tokens, |_| None, errors);
    remove_duplicates(&mut entries, errors);
    entries
}

/// The options of an attribute that is not this crate's, which others report.
pub(crate) fn read_quietly(tokens: TokenStream) -> Vec<Entry> {
    let ignored = Errors::new();
    let entries = read(tokens, &ignored);
    ignored.finish();
    entries
}

/// Parses a list of options. After one that cannot be parsed, parsing resumes with the next. `meant` is the option
/// that a string without a key was probably meant for.
pub(crate) fn parse(
    tokens: TokenStream,
    meant: impl Fn(&str) -> Option<&'static str>,
    errors: &Errors,
) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            if let Ok(text) = input.fork().parse::<LitStr>()
                && let Some(key) = meant(&text.value())
            {
                errors.at(&text, format_args!("expected an option\nwrite `{key} = {}`", text.token()));
                skip_option(input)?;
                continue;
            }
            match Entry::parse(input) {
                Ok(entry) => entries.push(entry),
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
    entries
}

/// Reports and removes every option whose name occurred before, unless it is repeatable.
pub(crate) fn remove_duplicates(entries: &mut Vec<Entry>, errors: &Errors) {
    let mut seen: Vec<String> = Vec::new();
    entries.retain(|entry| {
        let is_kept = !seen.contains(&entry.name) || known::REPEATABLE.contains(&entry.name.as_str());
        if is_kept {
            seen.push(entry.name.clone());
        } else {
            let message = format_args!("option `{}` is duplicated\nremove one of them", entry.name);
            errors.at(&entry.key, message);
        }
        is_kept
    });
}

/// The value of `crate`, for an attribute that has no other option.
pub(crate) fn read_crate(options: TokenStream, attribute: &str, errors: &Errors) -> Option<Path> {
    read_with_crate(options, attribute, known::CRATE, errors, |_| false)
}

/// The value of `crate`, for an attribute whose other options `read_own` reads; it returns false for unknown ones.
pub(crate) fn read_with_crate(
    options: TokenStream,
    attribute: &str,
    known: &[&str],
    errors: &Errors,
    mut read_own: impl FnMut(&Entry) -> bool,
) -> Option<Path> {
    let mut krate = None;
    for entry in read(options, errors) {
        if entry.name == "crate" {
            krate = entry.path(errors);
        } else if !read_own(&entry) {
            entry.report_unknown(attribute, known, errors);
        }
    }
    krate
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

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if !input.peek(Ident::peek_any) {
            return Err(input.error("expected an option\nwrite `key`, `key = value` or `key(..)`"));
        }
        let key = Ident::parse_any(input)?;
        let name = key.unraw().to_string();
        let form = if input.is_empty() || input.peek(Token![,]) {
            Form::Bare
        } else if input.peek(syn::token::Paren) {
            let list;
            syn::parenthesized!(list in input);
            Form::List(list.parse()?)
        } else if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            if input.is_empty() || input.peek(Token![,]) {
                return Err(syn::Error::new(
                    key.span(),
                    format_args!("`{name}` has no value after `=`\n{}", known::usage(&name)),
                ));
            }
            if name == "output" { Form::Type(input.parse()?) } else { Form::Value(ungroup(input.parse()?)) }
        } else {
            return Err(input.error(format_args!("expected `=`, `(` or `,` after `{name}`")));
        };
        Ok(Self { key, name, form })
    }
}

impl Entry {
    pub(crate) fn span(&self) -> Span {
        self.key.span()
    }

    /// Reports that `owner`, an attribute or an option, has no such option.
    pub(crate) fn report_unknown(&self, owner: &str, known: &[&str], errors: &Errors) {
        let name = self.name.as_str();
        let fix = known::suggest_option(name, known);
        errors.at(&self.key, format_args!("unknown option `{name}` of {owner}\n{fix}"));
    }

    /// Reports that the value is not what the option takes.
    pub(crate) fn report_value(&self, expected: &str, errors: &Errors) {
        let message = format!("`{}` takes {expected}\n{}", self.name, known::usage(&self.name));
        match &self.form {
            Form::Value(value) => errors.at(value, message),
            Form::Type(ty) => errors.at(ty, message),
            Form::Bare | Form::List(_) => errors.at(&self.key, message),
        }
    }

    pub(crate) fn string(&self, errors: &Errors) -> Option<LitStr> {
        let text = match &self.form {
            Form::Value(value) => literal_string(value),
            _ => None,
        };
        if text.is_none() {
            self.report_value("a string literal", errors);
        }
        text
    }

    /// A string literal that is not empty, or an expression, which the compiler type-checks.
    pub(crate) fn text(&self, errors: &Errors) -> Option<TokenStream> {
        match &self.form {
            Form::Value(value) if literal_string(value).is_some_and(|text| text.value().is_empty()) => {
                errors.at(value, format_args!("`{}` is empty\nadd text, or remove it", self.name));
                None
            }
            Form::Value(value) if literal_string(value).is_some() || !matches!(value, Expr::Lit(_)) => {
                Some(value.to_token_stream())
            }
            _ => {
                self.report_value("a string", errors);
                None
            }
        }
    }

    /// `key`, `key = true` or `key = false`.
    pub(crate) fn flag(&self, errors: &Errors) -> Option<bool> {
        match &self.form {
            Form::Bare => Some(true),
            Form::Value(Expr::Lit(ExprLit { lit: Lit::Bool(value), .. })) => Some(value.value),
            _ => {
                self.report_value("`true` or `false`", errors);
                None
            }
        }
    }

    /// What `key(a, b)` lists; `None` for another form, for an empty list, and for one that cannot be parsed.
    pub(crate) fn list<T: Parse>(&self) -> Option<Vec<T>> {
        let Form::List(list) = &self.form else { return None };
        let list = Punctuated::<T, Token![,]>::parse_terminated.parse2(list.clone()).ok()?;
        (!list.is_empty()).then(|| list.into_iter().collect())
    }

    /// `key = "a"`, `key = ["a", "b"]` or `key("a", "b")`.
    pub(crate) fn strings(&self, errors: &Errors) -> Option<Vec<LitStr>> {
        let found = self.parse_strings();
        if found.is_none() {
            self.report_value("string literals", errors);
        }
        found
    }

    /// Like [`strings`](Self::strings), but without reporting an error.
    pub(crate) fn parse_strings(&self) -> Option<Vec<LitStr>> {
        let found: Option<Vec<LitStr>> = match &self.form {
            Form::Value(Expr::Array(array)) => array.elems.iter().map(literal_string).collect(),
            Form::Value(value) => literal_string(value).map(|one| vec![one]),
            Form::List(_) => self.list::<Expr>()?.iter().map(literal_string).collect(),
            Form::Bare | Form::Type(_) => None,
        };
        found.filter(|found| !found.is_empty())
    }

    /// `key(a, f(b))`: expressions that are not literals, which the compiler type-checks.
    pub(crate) fn expressions(&self, expected: &str, errors: &Errors) -> Vec<Expr> {
        let list = match &self.form {
            Form::List(list) if !list.is_empty() => {
                Punctuated::<Expr, Token![,]>::parse_terminated.parse2(list.clone())
            }
            _ => {
                self.report_value(&format!("a list of {expected}"), errors);
                return Vec::new();
            }
        };
        match list {
            Ok(list) => {
                let list: Vec<Expr> = list.into_iter().map(ungroup).collect();
                for literal in list.iter().filter(|expr| matches!(expr, Expr::Lit(_))) {
                    let usage = known::usage(&self.name);
                    errors.at(
                        literal,
                        format_args!("`{}` takes {expected}, not a literal\n{usage}", self.name),
                    );
                }
                list
            }
            Err(error) => {
                errors.add(error);
                Vec::new()
            }
        }
    }

    /// `key(a, b)` or `key("a", "b")`, where each word is one of `known`.
    pub(crate) fn words(&self, known: &'static [&'static str], errors: &Errors) -> Vec<&'static str> {
        self.spanned_words(known, errors).into_iter().map(|(word, _)| word).collect()
    }

    /// The same, with their spans.
    pub(crate) fn spanned_words(
        &self,
        known: &'static [&'static str],
        errors: &Errors,
    ) -> Vec<(&'static str, Span)> {
        let Some(words) = self.list::<Word>() else {
            self.report_value("a list of words", errors);
            return Vec::new();
        };
        let mut found = Vec::new();
        for Word { text, span } in words {
            match known.iter().find(|known| **known == text) {
                Some(word) if found.iter().any(|(known, _)| known == word) => {
                    errors.at_span(span, format_args!("`{text}` is duplicated\nremove one of them"));
                }
                Some(word) => found.push((*word, span)),
                None => {
                    let fix = known::suggest(&text, known);
                    errors
                        .at_span(span, format_args!("unknown value `{text}` of `{}(..)`\n{fix}", self.name));
                }
            }
        }
        found
    }

    /// The options of `key(..)`, which must have some; `usage` is the second line of the message otherwise.
    pub(crate) fn nested(&self, usage: &str, errors: &Errors) -> Vec<Entry> {
        let message = format!("`{}` takes a list\n{usage}", self.name);
        match &self.form {
            Form::List(list) if !list.is_empty() => return read(list.clone(), errors),
            Form::Value(value) => errors.at(value, message),
            _ => errors.at(&self.key, message),
        }
        Vec::new()
    }

    pub(crate) fn path(&self, errors: &Errors) -> Option<Path> {
        match &self.form {
            Form::Value(Expr::Path(path)) if path.qself.is_none() => Some(path.path.clone()),
            _ => {
                self.report_value("a path", errors);
                None
            }
        }
    }

    /// `key = path`, or `key(a, b)` for several.
    pub(crate) fn paths(&self, errors: &Errors) -> Vec<Path> {
        if !matches!(self.form, Form::List(_)) {
            return self.path(errors).into_iter().collect();
        }
        let paths = self.list();
        if paths.is_none() {
            self.report_value("a path", errors);
        }
        paths.unwrap_or_default()
    }

    /// The path of a function, which may be an associated one: `<T>::function`; or `blocking(path)`.
    pub(crate) fn function(&self, errors: &Errors) -> Option<NamedFunction> {
        let found = self.parse_function();
        if found.is_none() {
            self.report_value("a path", errors);
        }
        found
    }

    /// Like [`function`](Self::function), but without reporting an error.
    pub(crate) fn parse_function(&self) -> Option<NamedFunction> {
        let (path, blocking) = match &self.form {
            Form::Value(path @ Expr::Path(_)) => (path, false),
            Form::Value(Expr::Call(call)) if is_word(&call.func, "blocking") && call.args.len() == 1 => {
                (call.args.first().filter(|path| matches!(path, Expr::Path(_)))?, true)
            }
            _ => return None,
        };
        Some(NamedFunction { path: path.to_token_stream(), span: path.span(), blocking })
    }

    pub(crate) fn integer(&self, errors: &Errors) -> Option<LitInt> {
        match &self.form {
            Form::Value(Expr::Lit(ExprLit { lit: Lit::Int(value), .. })) => Some(value.clone()),
            _ => {
                self.report_value("an integer literal", errors);
                None
            }
        }
    }

    /// A duration such as `"5s"`, in milliseconds.
    pub(crate) fn milliseconds(&self, errors: &Errors) -> Option<u64> {
        let expected = "a duration\nwrite a whole number above zero and a unit: \
                        \"250ms\", \"5s\", \"2m\" or \"1h\"";
        self.quantity(rate_syntax::parse_milliseconds, expected, errors)
    }

    /// A rate such as `"60/1m"`: how many times, and in how many milliseconds.
    pub(crate) fn rate(&self, errors: &Errors) -> Option<(u32, u64)> {
        let expected = "a rate\nwrite how often in which time: \"5/1s\", \"60/1m\" or \"1000/24h\"";
        self.quantity(rate_syntax::parse_rate, expected, errors)
    }

    /// A size such as `"50KB"`, in bytes.
    pub(crate) fn bytes(&self, errors: &Errors) -> Option<u64> {
        let expected = "a size\nwrite a whole number above zero and a unit: \
                        \"500B\", \"50KB\", \"64KiB\", \"2MB\" or \"1MiB\"";
        self.quantity(size::parse_bytes, expected, errors)
    }

    /// Parses the string literal of the entry; `expected` describes a valid value and how to write it.
    fn quantity<T>(&self, parse: fn(&str) -> Option<T>, expected: &str, errors: &Errors) -> Option<T> {
        let literal = self.string(errors)?;
        let text = literal.value();
        let found = parse(&text);
        if found.is_none() {
            errors.at(&literal, format_args!("`{text}` is not {expected}"));
        }
        found
    }

    /// How many of something may run at once: a whole number above zero, or a constant.
    pub(crate) fn count(&self, errors: &Errors) -> Option<TokenStream> {
        if let Form::Value(Expr::Path(path)) = &self.form {
            return Some(path.to_token_stream());
        }
        let Form::Value(Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) = &self.form else {
            self.report_value("a whole number or a constant", errors);
            return None;
        };
        match number.base10_parse::<usize>() {
            Ok(0) => {
                let name = &self.name;
                let message =
                    format_args!("`{name} = 0` would block every call\nwrite at least 1, or remove it");
                errors.at(number, message);
            }
            Ok(_) => return Some(number.to_token_stream()),
            Err(error) => errors.add(error),
        }
        None
    }
}

/// A function that an option names.
pub(crate) struct NamedFunction {
    pub(crate) path: TokenStream,
    pub(crate) span: Span,
    /// Whether it is named as `blocking(path)`.
    pub(crate) blocking: bool,
}

fn is_word(expr: &Expr, word: &str) -> bool {
    matches!(expr, Expr::Path(path) if path.path.is_ident(word))
}

struct Word {
    text: String,
    span: Span,
}

impl Parse for Word {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitStr) {
            let word: LitStr = input.parse()?;
            return Ok(Self { text: word.value(), span: word.span() });
        }
        let word = Ident::parse_any(input)?;
        Ok(Self { text: word.unraw().to_string(), span: word.span() })
    }
}
