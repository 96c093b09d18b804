//! The values of literals, also of those that a `macro_rules!` macro passes on in an invisible group.

use syn::{Expr, ExprLit, ExprUnary, Lit, LitInt, LitStr, UnOp};

pub(crate) fn literal_string(expr: &Expr) -> Option<LitStr> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.clone()),
        Expr::Group(group) => literal_string(&group.expr),
        _ => None,
    }
}

/// The value of a number without a suffix; it may be negated.
pub(crate) fn literal_number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(value), .. }) if value.suffix().is_empty() => {
            value.base10_parse().ok()
        }
        Expr::Lit(ExprLit { lit: Lit::Float(value), .. }) if value.suffix().is_empty() => {
            value.base10_parse().ok()
        }
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => literal_number(expr).map(|value| -value),
        Expr::Group(group) => literal_number(&group.expr),
        _ => None,
    }
}

/// The value of an integer; it may be negated.
pub(crate) fn literal_integer(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(value), .. }) => LitInt::base10_parse(value).ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => literal_integer(expr)?.checked_neg(),
        Expr::Group(group) => literal_integer(&group.expr),
        _ => None,
    }
}

/// Removes the invisible group that `macro_rules!` puts around a captured expression.
pub(crate) fn ungroup(expr: Expr) -> Expr {
    match expr {
        Expr::Group(group) => ungroup(*group.expr),
        other => other,
    }
}
