//! The constraints of an argument, as calls that publish and enforce them.
//!
//! Called by `argument`. Each call is spanned at its key, so that one which does not suit the type is an
//! error there.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, ExprRange, ExprUnary, Lit, LitInt, RangeLimits, Token, UnOp};

use crate::attr::{Entry, Form, ungroup};
use crate::errors::Errors;
use crate::ty::at;

/// The largest integer that a double carries exactly.
const EXACT: i128 = (1 << 53) - 1;

pub(crate) struct Range {
    pub(crate) check: TokenStream,
    pub(crate) exact: bool,
}

pub(crate) fn range(entry: &Entry, errors: &Errors) -> Option<Range> {
    let Some(Bounds { start, end, inclusive }) = bounds(entry) else {
        entry.wrong("a range with at least one bound", errors);
        return None;
    };
    let numbers = (start.as_ref().and_then(number), end.as_ref().and_then(number));
    if let (Some(low), Some(high)) = numbers
        && (low > high || !inclusive && low >= high)
    {
        refuse_empty(entry, errors);
        return None;
    }
    let is_exact = |bound: &Option<Expr>| bound.as_ref().and_then(integer).is_some_and(|n| n.abs() <= EXACT);
    let exact = is_exact(&start) && is_exact(&end);
    let span = at(entry.span());
    let method = Ident::new("range", span);
    let start = bound(start.as_ref(), true, span);
    let end = bound(end.as_ref(), inclusive, span);
    Some(Range { check: quote_spanned!(span=> __c.#method(__v, #start, #end);), exact })
}

pub(crate) fn length(entry: &Entry, errors: &Errors) -> Option<TokenStream> {
    let found = match &entry.form {
        Form::List(list) => match syn::parse2::<Expr>(list.clone()).ok().map(ungroup) {
            Some(Expr::Range(_)) => bounds(entry).and_then(|bounds| limits(&bounds)),
            Some(Expr::Lit(ExprLit { lit: Lit::Int(exact), .. })) => {
                exact.base10_parse::<usize>().ok().map(|exact| (Some(exact), Some(exact)))
            }
            _ => None,
        },
        _ => None,
    };
    let Some((min, max)) = found else {
        errors.at(
            &entry.key,
            "`length` takes a number or a range of numbers\nwrite `length(1..=200)`, `length(1..)` or `length(8)`",
        );
        return None;
    };
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        refuse_empty(entry, errors);
        return None;
    }
    let span = at(entry.span());
    let method = Ident::new("length", span);
    let (min, max) = (option(min, span), option(max, span));
    Some(quote_spanned!(span=> __c.#method(__v, #min, #max);))
}

pub(crate) fn pattern(entry: &Entry, errors: &Errors) -> Option<TokenStream> {
    let pattern = entry.string(errors)?;
    let span = at(entry.span());
    let method = Ident::new("pattern", span);
    Some(quote_spanned! {span=>
        {
            static __P: __rt::Pattern = __rt::Pattern::new(#pattern);
            __c.#method(__v, &__P);
        }
    })
}

pub(crate) fn one_of(entry: &Entry, errors: &Errors) -> Option<TokenStream> {
    let choices: Option<Vec<Expr>> = match &entry.form {
        Form::Value(Expr::Array(array)) => Some(array.elems.iter().cloned().collect()),
        Form::List(list) => {
            let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
            parser.parse2(list.clone()).ok().map(|list| list.into_iter().collect())
        }
        _ => None,
    };
    let choices = choices.filter(|choices| !choices.is_empty() && choices.iter().all(is_choice));
    let Some(choices) = choices else {
        entry.wrong("a list of literals", errors);
        return None;
    };
    let texts: Vec<String> = choices.iter().map(|choice| choice.to_token_stream().to_string()).collect();
    for (index, (choice, text)) in choices.iter().zip(&texts).enumerate() {
        if texts.iter().take(index).any(|other| other == text) {
            errors.at(choice, format_args!("`{text}` is listed twice\nremove one"));
        }
    }
    let span = at(entry.span());
    let method = Ident::new("one_of", span);
    Some(quote_spanned!(span=> __c.#method(__v, &[#(#choices),*]);))
}

fn is_choice(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(_) | Lit::Char(_), .. }) => true,
        Expr::Group(group) => is_choice(&group.expr),
        other => integer(other).is_some(),
    }
}

struct Bounds {
    start: Option<Expr>,
    end: Option<Expr>,
    inclusive: bool,
}

fn bounds(entry: &Entry) -> Option<Bounds> {
    let Form::List(list) = &entry.form else { return None };
    let Expr::Range(ExprRange { start, end, limits, .. }) = ungroup(syn::parse2(list.clone()).ok()?) else {
        return None;
    };
    let (start, end) = (start.map(|start| ungroup(*start)), end.map(|end| ungroup(*end)));
    let inclusive = matches!(limits, RangeLimits::Closed(_));
    (start.is_some() || end.is_some()).then_some(Bounds { start, end, inclusive })
}

fn limits(bounds: &Bounds) -> Option<(Option<usize>, Option<usize>)> {
    let whole = |bound: &Option<Expr>| match bound {
        None => Some(None),
        Some(expr) => usize::try_from(integer(expr)?).ok().map(Some),
    };
    let (min, max) = (whole(&bounds.start)?, whole(&bounds.end)?);
    match max {
        Some(max) if !bounds.inclusive => Some((min, Some(max.checked_sub(1)?))),
        _ => Some((min, max)),
    }
}

fn refuse_empty(entry: &Entry, errors: &Errors) {
    errors.at(
        &entry.key,
        format_args!("no value fits into this `{}`\nput the smaller bound first", entry.name),
    );
}

fn bound(expr: Option<&Expr>, inclusive: bool, span: Span) -> TokenStream {
    let Some(expr) = expr else { return quote_spanned!(span=> __rt::Bound::Unbounded) };
    let side = Ident::new(if inclusive { "Included" } else { "Excluded" }, span);
    quote_spanned!(span=> __rt::Bound::#side(#expr))
}

fn option(value: Option<usize>, span: Span) -> TokenStream {
    match value {
        None => quote_spanned!(span=> __rt::Option::None),
        Some(value) => quote_spanned!(span=> __rt::Option::Some(#value)),
    }
}

/// The value of a literal without a suffix, perhaps negated.
fn number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(value), .. }) if value.suffix().is_empty() => {
            value.base10_parse().ok()
        }
        Expr::Lit(ExprLit { lit: Lit::Float(value), .. }) if value.suffix().is_empty() => {
            value.base10_parse().ok()
        }
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(|value| -value),
        Expr::Group(group) => number(&group.expr),
        _ => None,
    }
}

fn integer(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(value), .. }) => LitInt::base10_parse(value).ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => integer(expr)?.checked_neg(),
        Expr::Group(group) => integer(&group.expr),
        _ => None,
    }
}
