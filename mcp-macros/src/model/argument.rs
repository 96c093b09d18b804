//! An argument that the client sends, with its options checked.

use proc_macro2::{Span, TokenStream};
use syn::{Expr, LitStr};

use crate::diagnostics::Errors;
use crate::model::kind::Kind;
use crate::model::rule::{self, Rule};
use crate::options::entry::{Entry, Form, NamedFunction};
use crate::syntax::literals::literal_string;

pub(crate) struct Argument {
    pub(crate) name: String,
    /// The name of the parameter.
    pub(crate) ident: String,
    /// The span of the option `name`, or of the parameter.
    pub(crate) name_span: Span,
    pub(crate) header: Option<LitStr>,
    /// The span of the option `flatten`.
    pub(crate) flatten: Option<Span>,
    pub(crate) title: Option<TokenStream>,
    /// Parts that the compiler concatenates.
    pub(crate) description: Vec<TokenStream>,
    pub(crate) default: Option<ArgumentValue>,
    pub(crate) example: Option<ArgumentValue>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) completion: Option<Completion>,
    pub(crate) raw: bool,
    /// Whether its value is left out of traces and the audit log.
    pub(crate) secret: bool,
}

/// The value of `default` or `example`.
pub(crate) struct ArgumentValue {
    pub(crate) key: Span,
    pub(crate) source: ValueSource,
}

pub(crate) enum ValueSource {
    /// `Default::default()` of the parameter's type.
    TypeDefault,
    /// Converts into the parameter's type, or into the `T` of its `Option<T>`.
    String(LitStr),
    Expr(Expr),
}

pub(crate) enum Completion {
    Function(NamedFunction),
    List(Vec<LitStr>),
}

impl Argument {
    pub(crate) fn new(name: String, name_span: Span, description: Vec<TokenStream>) -> Self {
        Self {
            ident: name.clone(),
            name,
            name_span,
            header: None,
            flatten: None,
            title: None,
            description,
            default: None,
            example: None,
            rules: Vec::new(),
            completion: None,
            raw: false,
            secret: false,
        }
    }

    /// Reads one option; false if no option has that name.
    pub(crate) fn read_option(&mut self, entry: &Entry, kind: Kind, errors: &Errors) -> bool {
        match entry.name.as_str() {
            "name" => {
                if let Some(name) = entry.string(errors) {
                    if name.value().is_empty() {
                        errors.at(
                            &name,
                            "the name of an argument cannot be empty\nwrite one, or remove `name`",
                        );
                    }
                    self.name_span = name.span();
                    self.name = name.value();
                }
            }
            "title" if kind == Kind::Resource => errors.at(
                &entry.key,
                "`title` is for tools and prompts: MCP does not list the variables of a URI\nremove it",
            ),
            "title" => self.title = entry.text(errors),
            "description" => self.description = entry.text(errors).into_iter().collect(),
            "default" if matches!(entry.form, Form::Bare) => {
                self.default = Some(ArgumentValue { key: entry.span(), source: ValueSource::TypeDefault });
            }
            "default" => self.default = read_value(entry, errors),
            "example" => self.example = read_value(entry, errors),
            "range" => self.rules.extend(rule::read_range(entry, errors)),
            "length" => self.rules.extend(rule::read_length(entry, errors)),
            "pattern" => self.rules.extend(rule::read_pattern(entry, errors)),
            "one_of" => self.rules.extend(rule::read_one_of(entry, errors)),
            "header" => self.header = read_header(entry, kind, errors),
            "complete" => self.completion = read_completion(entry, kind, errors),
            "flatten" if kind.has_json_arguments() => {
                self.flatten = entry.flag(errors).filter(|&on| on).map(|_| entry.span());
            }
            "flatten" => errors.at(
                &entry.key,
                format_args!("`flatten` is for tools\nmake the fields parameters of the {}", kind.noun()),
            ),
            "secret" => self.secret = entry.flag(errors).unwrap_or_default(),
            "raw" if kind == Kind::Resource => self.raw = entry.flag(errors).unwrap_or_default(),
            "raw" => errors.at(&entry.key, "`raw` is for the path of a resource\nremove it"),
            _ => return false,
        }
        true
    }
}

fn read_value(entry: &Entry, errors: &Errors) -> Option<ArgumentValue> {
    let Form::Value(value) = &entry.form else {
        entry.report_value("a value", errors);
        return None;
    };
    let source = match literal_string(value) {
        Some(text) => ValueSource::String(text),
        None => ValueSource::Expr(value.clone()),
    };
    Some(ArgumentValue { key: entry.span(), source })
}

fn read_header(entry: &Entry, kind: Kind, errors: &Errors) -> Option<LitStr> {
    if kind != Kind::Tool {
        errors.at(&entry.key, "`header` is for tools\nremove it");
        return None;
    }
    let name = entry.string(errors)?;
    let text = name.value();
    // RFC 9110, section 5.6.2.
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if text.is_empty() || !text.bytes().all(is_token) {
        errors.at(
            &name,
            format_args!(
                "`{text}` is not valid in a header name\nuse letters, digits and `-`: `header = \"Region\"`"
            ),
        );
        return None;
    }
    Some(name)
}

fn read_completion(entry: &Entry, kind: Kind, errors: &Errors) -> Option<Completion> {
    if kind.has_json_arguments() {
        errors.at(
            &entry.key,
            format_args!(
                "`complete` is for prompts and resources: MCP does not complete the arguments of {}s\n\
                 use `one_of(..)` or an enum to publish the values",
                kind.noun()
            ),
        );
        return None;
    }
    if matches!(entry.form, Form::List(_)) {
        return entry.strings(errors).map(Completion::List);
    }
    let function = entry.parse_function();
    if function.is_none() {
        errors.at(
            &entry.key,
            "`complete` takes a function or a list\nwrite `complete = path::to::function` or `complete(\"a\", \"b\")`",
        );
    }
    function.map(Completion::Function)
}
