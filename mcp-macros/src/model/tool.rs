//! The options of a tool. They do not contradict each other or the function's signature.

use proc_macro2::{Ident, Span, TokenStream};
use syn::{Expr, ExprLit, Lit, LitStr, Type};

use crate::diagnostics::Errors;
use crate::model::item::{CommonOptions, ItemOptions};
use crate::model::kind::Kind;
use crate::model::params::Param;
use crate::model::ui::{self, ToolUi};
use crate::options::entry::{Entry, Form};
use crate::options::known;
use crate::syntax::function::Function;

#[derive(Default)]
pub(crate) struct ToolOptions {
    /// In source order. Hints that are not set are not sent.
    pub(crate) hints: Vec<Hint>,
    pub(crate) timeout: Option<Timeout>,
    pub(crate) max_concurrency: Option<TokenStream>,
    pub(crate) tags: Vec<LitStr>,
    pub(crate) strict: bool,
    pub(crate) unregistered: bool,
    pub(crate) output: Option<Type>,
    pub(crate) ui: ToolUi,
    pub(crate) task: Option<ToolTask>,
}

/// `read_only`, `destructive`, `idempotent` or `open_world`.
pub(crate) struct Hint {
    pub(crate) key: Ident,
    pub(crate) name: String,
    pub(crate) value: bool,
}

pub(crate) struct Timeout {
    key: Span,
    pub(crate) milliseconds: u64,
}

/// `task`, with what it says.
#[derive(Clone, Copy)]
pub(crate) struct ToolTask {
    pub(crate) key: Span,
    pub(crate) mode: TaskMode,
    /// The word `restart`.
    pub(crate) restart: Option<Span>,
}

/// How a call becomes a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskMode {
    Capable,
    Required,
    Manual,
}

impl ItemOptions for ToolOptions {
    const KIND: Kind = Kind::Tool;

    fn read_option(&mut self, entry: &Entry, errors: &Errors) -> bool {
        match entry.name.as_str() {
            "read_only" | "destructive" | "idempotent" | "open_world" => {
                let (key, name) = (entry.key.clone(), entry.name.clone());
                self.hints.extend(entry.flag(errors).map(|value| Hint { key, name, value }));
            }
            "timeout" => {
                let key = entry.span();
                self.timeout = entry.milliseconds(errors).map(|milliseconds| Timeout { key, milliseconds });
            }
            "max_concurrency" => self.max_concurrency = entry.count(errors),
            "tags" => self.tags = entry.strings(errors).unwrap_or_default(),
            "strict" => self.strict = entry.flag(errors).unwrap_or_default(),
            "unregistered" => self.unregistered = entry.flag(errors).unwrap_or_default(),
            "ui" => self.ui = ui::read_tool_ui(entry, errors),
            "task" => self.task = read_task(entry, errors),
            "output" => match &entry.form {
                Form::Type(ty) => self.output = Some(ty.clone()),
                _ => entry.report_value("a type", errors),
            },
            _ => return false,
        }
        true
    }

    fn check(&self, common: &CommonOptions, function: &Function, _: &[Param], errors: &Errors) {
        let find_hint = |name: &str| self.hints.iter().find(|hint| hint.value && hint.name == name);
        if let (Some(_), Some(destructive)) = (find_hint("read_only"), find_hint("destructive")) {
            errors.at(
                &destructive.key,
                "a tool cannot be both `read_only` and `destructive`\nremove one of them",
            );
        }
        if let Some(ToolTask { restart: Some(restart), .. }) = self.task
            && find_hint("idempotent").is_none()
        {
            errors.at_span(
                restart,
                "`restart` runs the function again if its server has stopped, and the tool is not `idempotent`\n\
                 add `idempotent` if a second run changes nothing more, or remove `restart`",
            );
        }
        if let Some(ToolTask { key, mode, .. }) = self.task
            && !function.is_async()
            && (common.blocking.is_none() || mode == TaskMode::Manual)
        {
            let message = match mode {
                TaskMode::Manual => "`task = manual` has to await `ctx.start_task()`\nmake it an `async fn`",
                _ => {
                    "`task` cannot continue a plain `fn` in the background\nmake it an `async fn`, or add `blocking`"
                }
            };
            errors.at_span(key, message);
        }
        if let Some(Timeout { key, .. }) = &self.timeout
            && common.blocking.is_none()
            && !function.is_async()
        {
            errors.at_span(
                *key,
                "`timeout` cannot interrupt a plain `fn`\nmake it an `async fn`, or add `blocking`",
            );
        }
    }

    fn is_unregistered(&self) -> bool {
        self.unregistered
    }

    fn starts_task(&self) -> bool {
        self.task.is_some_and(|task| task.mode != TaskMode::Manual)
    }
}

/// `task`, `task = required`, `task = manual`, or `task(..)` with `restart` and perhaps one of these words.
fn read_task(entry: &Entry, errors: &Errors) -> Option<ToolTask> {
    let task = |mode| Some(ToolTask { key: entry.span(), mode, restart: None });
    match &entry.form {
        Form::Bare => return task(TaskMode::Capable),
        Form::Value(Expr::Lit(ExprLit { lit: Lit::Bool(on), .. })) => {
            return if on.value { task(TaskMode::Capable) } else { None };
        }
        Form::Value(Expr::Path(path)) if path.path.is_ident("required") => return task(TaskMode::Required),
        Form::Value(Expr::Path(path)) if path.path.is_ident("manual") => return task(TaskMode::Manual),
        Form::List(_) => {
            let words = entry.spanned_words(known::TASK, errors);
            let find = |word: &str| words.iter().find(|(known, _)| *known == word).map(|(_, span)| *span);
            let (required, manual, restart) = (find("required"), find("manual"), find("restart"));
            let mode = match (required, manual) {
                (Some(_), Some(manual)) => {
                    let text = "a task is either `required` or `manual`\nremove one of them";
                    errors.at_span(manual, text);
                    return None;
                }
                (Some(_), None) => TaskMode::Required,
                (None, Some(_)) => TaskMode::Manual,
                (None, None) if restart.is_some() => TaskMode::Capable,
                // reported above
                (None, None) => return None,
            };
            if let (TaskMode::Manual, Some(restart)) = (mode, restart) {
                errors.at_span(
                    restart,
                    "a task that is `manual` begins in the call, which is over when its server has stopped\nwrite `task(restart)`",
                );
                return None;
            }
            return Some(ToolTask { key: entry.span(), mode, restart });
        }
        _ => {}
    }
    entry.report_value("nothing, `required` or `manual`", errors);
    None
}
