//! `#[mcp_tool]`: its own options, checked, as calls on the runtime's builder.
//!
//! Called through `kind`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Lit, LitStr, ReturnType, Type};

use crate::attr::{Entry, Form};
use crate::errors::Errors;
use crate::item::Function;
use crate::kind::{Kind, Place};
use crate::params::{Param, Role};
use crate::ty::{at, unit};
use crate::ui::{self, Page};

/// The options that only tools have.
#[derive(Default)]
pub(crate) struct Tool {
    /// Hints in the order in which they were written; only those go on the wire.
    hints: Vec<(String, bool, Span)>,
    timeout: Option<(Span, u64)>,
    max_concurrency: Option<TokenStream>,
    blocking: Option<Ident>,
    tags: Vec<LitStr>,
    strict: bool,
    unlisted: bool,
    output: Option<Type>,
    /// What the function returns.
    returned: Option<Type>,
    ui: Page,
    task: Option<(Span, Task)>,
}

/// How calls become tasks; named as the runtime's `TaskMode`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Capable,
    Required,
    Manual,
}

impl Kind for Tool {
    const PLACE: Place = Place::Tool;

    fn option(&mut self, entry: &Entry, errors: &Errors) -> bool {
        match entry.name.as_str() {
            hint @ ("read_only" | "destructive" | "idempotent" | "open_world") => {
                self.hints.extend(entry.flag(errors).map(|value| (hint.to_owned(), value, entry.span())));
            }
            "timeout" => {
                self.timeout = entry.milliseconds(errors).map(|limit| (entry.span(), limit));
            }
            "max_concurrency" => self.max_concurrency = limit(entry, errors),
            "blocking" => {
                self.blocking = entry.flag(errors).filter(|&on| on).map(|_| entry.key.clone());
            }
            "tags" => self.tags = entry.strings(errors).unwrap_or_default(),
            "strict" => self.strict = entry.flag(errors).unwrap_or_default(),
            "unlisted" => self.unlisted = entry.flag(errors).unwrap_or_default(),
            "ui" => self.ui = ui::of_tool(entry, errors),
            "task" => self.task = task(entry, errors).map(|mode| (entry.span(), mode)),
            "output" => match &entry.form {
                Form::Type(ty) => self.output = Some(ty.clone()),
                _ => entry.wrong("a type", errors),
            },
            _ => return false,
        }
        true
    }

    fn check(&mut self, function: &Function, params: &[Param], errors: &Errors) {
        self.returned = match &function.sig.output {
            ReturnType::Type(_, ty) => Some((**ty).clone()),
            ReturnType::Default => None,
        };
        let claims = |hint: &str| self.hints.iter().find(|(name, value, _)| *value && name == hint);
        if let (Some(_), Some((_, _, key))) = (claims("read_only"), claims("destructive")) {
            errors.at_span(*key, "a tool that is `read_only` destroys nothing\nkeep one of them");
        }
        if let Some((span, mode)) = self.task
            && !function.is_async()
            && (self.blocking.is_none() || mode == Task::Manual)
        {
            let text = match mode {
                Task::Manual => "`task = manual` needs to wait for `ctx.start_task()`\nmake it an `async fn`",
                _ => "`task` cannot let go of a plain `fn`\nmake it an `async fn`, or add `blocking`",
            };
            errors.at_span(span, text);
        }
        if let Some(blocking) = &self.blocking {
            if function.is_async() {
                errors.at(blocking, "`blocking` is for a plain `fn`\nremove it, or the `async`");
            } else if params.iter().any(|param| matches!(param.role, Role::Made)) {
                errors.at(
                    blocking,
                    "`blocking` cannot wait for a parameter with `inject`\nmake it an `async fn`, or take `&T`",
                );
            }
        } else if let Some((key, _)) = self.timeout
            && !function.is_async()
        {
            errors.at_span(
                key,
                "`timeout` cannot interrupt a plain `fn`\nmake it an `async fn`, or add `blocking`",
            );
        }
    }

    fn calls(&self) -> TokenStream {
        let mut calls = TokenStream::new();
        for (hint, value, _) in &self.hints {
            let hint = Ident::new(hint, Span::mixed_site());
            calls.extend(quote!(.#hint(#value)));
        }
        if let Some((_, limit)) = self.timeout {
            calls.extend(quote!(.timeout_ms(#limit)));
        }
        if let Some(limit) = &self.max_concurrency {
            calls.extend(quote!(.max_concurrency(#limit)));
        }
        if !self.tags.is_empty() {
            let tags = &self.tags;
            calls.extend(quote!(.tags(&[#(#tags),*])));
        }
        if self.strict {
            calls.extend(quote!(.strict()));
        }
        if self.unlisted {
            calls.extend(quote!(.unlisted()));
        }
        if let Some(page) = &self.ui.resource {
            calls.extend(quote!(.ui(#page)));
        }
        if !self.ui.visibility.is_empty() {
            let visibility = &self.ui.visibility;
            calls.extend(quote!(.visibility(&[#(#visibility),*])));
        }
        if let Some((_, mode)) = self.task {
            let mode = match mode {
                Task::Capable => "Capable",
                Task::Required => "Required",
                Task::Manual => "Manual",
            };
            let mode = Ident::new(mode, Span::mixed_site());
            calls.extend(quote_spanned!(Span::mixed_site()=> .task(__rt::TaskMode::#mode)));
        }
        if let Some(output) = &self.output {
            let returned = self.returned.clone().unwrap_or_else(|| unit(output.span()));
            calls.extend(
                quote_spanned!(at(output.span())=> .output_type(__rt::OutputType::of::<#output, #returned>())),
            );
        }
        calls
    }

    fn is_blocking(&self) -> bool {
        self.blocking.is_some()
    }

    fn starts_task(&self) -> bool {
        self.task.is_some_and(|(_, mode)| mode != Task::Manual)
    }
}

/// `task`, `task = required` or `task = manual`.
fn task(entry: &Entry, errors: &Errors) -> Option<Task> {
    match &entry.form {
        Form::Word => return Some(Task::Capable),
        Form::Value(Expr::Lit(ExprLit { lit: Lit::Bool(on), .. })) => {
            return on.value.then_some(Task::Capable);
        }
        Form::Value(Expr::Path(path)) if path.path.is_ident("required") => return Some(Task::Required),
        Form::Value(Expr::Path(path)) if path.path.is_ident("manual") => return Some(Task::Manual),
        _ => {}
    }
    entry.wrong("nothing, `required` or `manual`", errors);
    None
}

fn limit(entry: &Entry, errors: &Errors) -> Option<TokenStream> {
    if let Form::Value(Expr::Path(path)) = &entry.form {
        return Some(path.to_token_stream());
    }
    let Form::Value(Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) = &entry.form else {
        entry.wrong("a whole number or a constant", errors);
        return None;
    };
    match number.base10_parse::<usize>() {
        Ok(0) => {
            errors.at(number, "`max_concurrency` of 0 would let no call run\nwrite at least 1, or remove it");
        }
        Ok(_) => return Some(number.to_token_stream()),
        Err(error) => errors.add(error),
    }
    None
}
