//! The constraints of an argument: `range`, `length`, `pattern` and `one_of`. No rule rejects every value.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Expr, ExprLit, ExprRange, Lit, LitStr, RangeLimits};

use crate::diagnostics::Errors;
use crate::options::entry::{Entry, Form};
use crate::syntax::literals::{literal_integer, literal_number, ungroup};

/// The largest integer up to which an `f64`, and so every JSON implementation, represents all integers.
const MAX_EXACT_INTEGER: i128 = (1 << 53) - 1;

pub(crate) struct Rule {
    /// The span of the option's key.
    pub(crate) key: Span,
    pub(crate) constraint: Constraint,
}

pub(crate) enum Constraint {
    Range(Box<Bounds>),
    Length { min: Option<usize>, max: Option<usize> },
    Pattern(LitStr),
    OneOf(Vec<Expr>),
}

pub(crate) struct Bounds {
    pub(crate) start: Option<Expr>,
    pub(crate) end: Option<Expr>,
    pub(crate) inclusive: bool,
}

impl Rule {
    /// Cheap rules are checked first: a pattern is not matched against a text that another rule refuses.
    pub(crate) fn cost(&self) -> u8 {
        match &self.constraint {
            Constraint::Range(_) => 0,
            Constraint::OneOf(_) => 1,
            Constraint::Length { .. } => 2,
            Constraint::Pattern(_) => 3,
        }
    }

    /// Whether this is a range of integers that every JSON implementation represents exactly.
    pub(crate) fn is_exact_range(&self) -> bool {
        let Constraint::Range(bounds) = &self.constraint else { return false };
        [&bounds.start, &bounds.end].into_iter().all(|bound| {
            bound.as_ref().and_then(literal_integer).is_some_and(|n| n.abs() <= MAX_EXACT_INTEGER)
        })
    }
}

pub(crate) fn read_range(entry: &Entry, errors: &Errors) -> Option<Rule> {
    let Some(bounds) = parse_bounds(entry) else {
        entry.report_value("a range with at least one bound", errors);
        return None;
    };
    let value = |bound: &Option<Expr>| bound.as_ref().and_then(literal_number);
    if let (Some(low), Some(high)) = (value(&bounds.start), value(&bounds.end))
        && (low > high || !bounds.inclusive && low >= high)
    {
        report_unsatisfiable(entry, errors);
        return None;
    }
    Some(Rule { key: entry.span(), constraint: Constraint::Range(Box::new(bounds)) })
}

pub(crate) fn read_length(entry: &Entry, errors: &Errors) -> Option<Rule> {
    let limits = match &entry.form {
        Form::List(list) => match syn::parse2::<Expr>(list.clone()).ok().map(ungroup) {
            Some(Expr::Range(_)) => parse_bounds(entry).and_then(|bounds| whole_limits(&bounds)),
            Some(Expr::Lit(ExprLit { lit: Lit::Int(exact), .. })) => {
                exact.base10_parse::<usize>().ok().map(|exact| (Some(exact), Some(exact)))
            }
            _ => None,
        },
        _ => None,
    };
    let Some((min, max)) = limits else {
        errors.at(
            &entry.key,
            "`length` takes a number or a range of numbers\nwrite `length(1..=200)`, `length(1..)` or `length(8)`",
        );
        return None;
    };
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        report_unsatisfiable(entry, errors);
        return None;
    }
    Some(Rule { key: entry.span(), constraint: Constraint::Length { min, max } })
}

pub(crate) fn read_pattern(entry: &Entry, errors: &Errors) -> Option<Rule> {
    let pattern = entry.string(errors)?;
    Some(Rule { key: entry.span(), constraint: Constraint::Pattern(pattern) })
}

pub(crate) fn read_one_of(entry: &Entry, errors: &Errors) -> Option<Rule> {
    let choices: Option<Vec<Expr>> = match &entry.form {
        Form::Value(Expr::Array(array)) => Some(array.elems.iter().cloned().collect()),
        _ => entry.list(),
    };
    let choices = choices.filter(|choices| !choices.is_empty() && choices.iter().all(is_choice));
    let Some(choices) = choices else {
        entry.report_value("a list of literals", errors);
        return None;
    };
    let texts: Vec<String> = choices.iter().map(|choice| choice.to_token_stream().to_string()).collect();
    for (index, (choice, text)) in choices.iter().zip(&texts).enumerate() {
        if texts.iter().take(index).any(|other| other == text) {
            errors.at(choice, format_args!("`{text}` is duplicated\nremove one of them"));
        }
    }
    Some(Rule { key: entry.span(), constraint: Constraint::OneOf(choices) })
}

fn is_choice(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(_) | Lit::Char(_), .. }) => true,
        Expr::Group(group) => is_choice(&group.expr),
        other => literal_integer(other).is_some(),
    }
}

fn parse_bounds(entry: &Entry) -> Option<Bounds> {
    let Form::List(list) = &entry.form else { return None };
    let Expr::Range(ExprRange { start, end, limits, .. }) = ungroup(syn::parse2(list.clone()).ok()?) else {
        return None;
    };
    let (start, end) = (start.map(|start| ungroup(*start)), end.map(|end| ungroup(*end)));
    let inclusive = matches!(limits, RangeLimits::Closed(_));
    (start.is_some() || end.is_some()).then_some(Bounds { start, end, inclusive })
}

/// The smallest and the largest length.
fn whole_limits(bounds: &Bounds) -> Option<(Option<usize>, Option<usize>)> {
    let whole = |bound: &Option<Expr>| match bound {
        None => Some(None),
        Some(expr) => usize::try_from(literal_integer(expr)?).ok().map(Some),
    };
    let (min, max) = (whole(&bounds.start)?, whole(&bounds.end)?);
    match max {
        Some(max) if !bounds.inclusive => Some((min, Some(max.checked_sub(1)?))),
        _ => Some((min, max)),
    }
}

fn report_unsatisfiable(entry: &Entry, errors: &Errors) {
    errors.at(
        &entry.key,
        format_args!("no value satisfies this `{}`\nput the smaller bound first", entry.name),
    );
}
