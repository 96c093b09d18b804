//! The options of a resource. The variables of its URI template are exactly the function's arguments.

use proc_macro2::{Ident, Span};
use syn::{Expr, ExprLit, Lit, LitStr};

use crate::diagnostics::Errors;
use crate::model::item::{CommonOptions, ItemOptions};
use crate::model::kind::Kind;
use crate::model::params::Param;
use crate::model::{template_syntax, ui};
use crate::options::entry::{self, Entry, Form, NamedFunction};
use crate::options::known;
use crate::syntax::function::Function;

#[derive(Default)]
pub(crate) struct ResourceOptions {
    pub(crate) uri: UriOption,
    pub(crate) mime: Option<LitStr>,
    pub(crate) audience: Vec<LitStr>,
    pub(crate) priority: Option<f32>,
    pub(crate) size: Option<Size>,
    pub(crate) cache: Option<Cache>,
    pub(crate) list: Option<ResourceFunction>,
    pub(crate) subscribe: Option<ResourceFunction>,
    pub(crate) ui: Option<ResourceUi>,
}

#[derive(Default)]
pub(crate) enum UriOption {
    /// The server chooses the URI.
    #[default]
    Absent,
    /// Reported; nothing can be compared with it.
    Malformed,
    Template(UriTemplate),
}

pub(crate) struct UriTemplate {
    pub(crate) text: LitStr,
    /// Empty for the URI of a single resource.
    variables: Vec<String>,
}

pub(crate) struct Size {
    key: Span,
    pub(crate) bytes: u64,
}

pub(crate) struct Cache {
    pub(crate) ttl_ms: u64,
    pub(crate) public: bool,
    /// Of the option `public`, or of `cache` without it.
    key: Span,
}

/// A function that the runtime calls, and the span of its option.
pub(crate) struct ResourceFunction {
    pub(crate) function: NamedFunction,
    pub(crate) key: Span,
}

pub(crate) struct ResourceUi {
    key: Ident,
    /// The settings of the page; absent if none is valid.
    pub(crate) json: Option<String>,
}

impl ItemOptions for ResourceOptions {
    const KIND: Kind = Kind::Resource;

    fn read_option(&mut self, entry: &Entry, errors: &Errors) -> bool {
        let key = entry.span();
        match entry.name.as_str() {
            "uri" => self.uri = read_uri(entry, errors),
            "mime" => self.mime = read_mime(entry, errors),
            "audience" => self.audience = read_audience(entry, errors),
            "priority" => self.priority = read_priority(entry, errors),
            "size" => {
                let bytes = entry.integer(errors).map(|size| size.base10_parse::<u64>());
                let bytes = bytes.and_then(|bytes| bytes.map_err(|error| errors.add(error)).ok());
                self.size = bytes.map(|bytes| Size { key, bytes });
            }
            "cache" => self.cache = read_cache(entry, errors),
            "ui" => {
                let json = ui::read_resource_ui(entry, errors);
                self.ui = Some(ResourceUi { key: entry.key.clone(), json });
            }
            "list" => self.list = read_function(entry, errors),
            "subscribe" => {
                self.subscribe = read_function(entry, errors);
                if self.subscribe.as_ref().is_some_and(|check| check.function.blocking) {
                    let message = "a check of subscriptions returns at once and cannot be `blocking`\nwrite `subscribe = path::to::function`";
                    errors.at(&entry.key, message);
                }
            }
            _ => return false,
        }
        true
    }

    fn check(&self, common: &CommonOptions, function: &Function, params: &[Param], errors: &Errors) {
        self.check_cache(common, errors);
        self.check_ui(errors);
        self.check_instances(params, errors);
        self.check_variables(function, params, errors);
    }
}

impl ResourceOptions {
    /// A resource that only some callers may read must not be in a cache that all callers share.
    fn check_cache(&self, common: &CommonOptions, errors: &Errors) {
        if let Some(Cache { key, public: true, .. }) = &self.cache
            && !common.scopes.is_empty()
        {
            let message =
                "a cache that all callers share cannot keep a resource with `scopes`\nremove `public`";
            errors.at_span(*key, message);
        }
    }

    /// `ui(..)` is for pages, and a page has one MIME type.
    fn check_ui(&self, errors: &Errors) {
        let Some(ResourceUi { key, .. }) = &self.ui else { return };
        match &self.uri {
            UriOption::Template(UriTemplate { text, .. }) if !ui::is_page(&text.value()) => errors.at(
                text,
                "`ui(..)` is for pages, whose URIs start with `ui://`\nwrite `uri = \"ui://server/page.html\"`, or remove `ui`",
            ),
            UriOption::Template(_) | UriOption::Malformed => {}
            UriOption::Absent => {
                errors.at(key, "`ui(..)` is for pages\nadd a URI, such as `uri = \"ui://server/page.html\"`");
            }
        }
        if let Some(mime) = self.mime.as_ref().filter(|mime| mime.value() != ui::MIME) {
            errors.at(
                mime,
                format_args!(
                    "the MIME type of a page is `{}`\nremove `mime`, which defaults to it",
                    ui::MIME
                ),
            );
        }
    }

    /// A template has instances of different sizes; a single resource has one size and no instances.
    fn check_instances(&self, params: &[Param], errors: &Errors) {
        let is_template = match &self.uri {
            UriOption::Template(UriTemplate { variables, .. }) => !variables.is_empty(),
            UriOption::Malformed => return,
            UriOption::Absent => params.iter().any(|param| param.argument().is_some()),
        };
        match (&self.size, &self.list) {
            (Some(Size { key, .. }), _) if is_template => {
                errors.at_span(*key, "`size` is for a single resource, and this is a template\nremove it");
            }
            (_, Some(ResourceFunction { key, .. })) if !is_template => errors.at_span(
                *key,
                "`list` is for the instances of a template, and this is a single resource\nremove it, or add a variable to the URI",
            ),
            _ => {}
        }
    }

    fn check_variables(&self, function: &Function, params: &[Param], errors: &Errors) {
        let UriOption::Template(UriTemplate { text, variables }) = &self.uri else { return };
        let arguments: Vec<_> = params.iter().filter_map(Param::argument).collect();
        // a parameter that is reported is not in `params`
        let all_are_valid =
            params.len() == function.sig.inputs.len() - usize::from(function.sig.receiver().is_some());
        for variable in variables {
            if all_are_valid && !arguments.iter().any(|argument| argument.name == *variable) {
                errors.at(
                    text,
                    format_args!("`{{{variable}}}` names no parameter\nadd `{variable}: String`, or remove it from the template"),
                );
            }
        }
        for argument in arguments {
            let name = &argument.name;
            if !variables.contains(name) {
                errors.at_span(
                    argument.name_span,
                    format_args!("parameter `{name}` is not in the URI\nadd `{{{name}}}` or `{{?{name}}}` to it, or take `&T` from the server's state"),
                );
            }
        }
    }
}

fn read_function(entry: &Entry, errors: &Errors) -> Option<ResourceFunction> {
    entry.function(errors).map(|function| ResourceFunction { function, key: entry.span() })
}

fn read_uri(entry: &Entry, errors: &Errors) -> UriOption {
    let Some(text) = entry.string(errors) else { return UriOption::Malformed };
    match template_syntax::parse_variables(&text.value()) {
        Ok(variables) => {
            let variables = variables.into_iter().map(str::to_owned).collect();
            UriOption::Template(UriTemplate { text, variables })
        }
        Err(message) => {
            errors.at(&text, message);
            UriOption::Malformed
        }
    }
}

fn read_mime(entry: &Entry, errors: &Errors) -> Option<LitStr> {
    let mime = entry.string(errors)?;
    let text = mime.value();
    let essence = text.split(';').next().unwrap_or_default();
    let is_name = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    if !essence.trim_end().split_once('/').is_some_and(|(kind, sub)| is_name(kind) && is_name(sub)) {
        errors.at(
            &mime,
            format_args!(
                "`{text}` is not a media type\nwrite `type/subtype`, such as `mime = \"application/json\"`"
            ),
        );
    }
    Some(mime)
}

fn read_audience(entry: &Entry, errors: &Errors) -> Vec<LitStr> {
    let audience = entry.strings(errors).unwrap_or_default();
    for role in audience.iter().filter(|role| !matches!(role.value().as_str(), "user" | "assistant")) {
        errors.at(role, format_args!("`{}` is not an audience\nwrite `user` or `assistant`", role.value()));
    }
    audience
}

fn read_priority(entry: &Entry, errors: &Errors) -> Option<f32> {
    let number = match &entry.form {
        Form::Value(Expr::Lit(ExprLit { lit: Lit::Float(number), .. })) => number.base10_parse::<f32>().ok(),
        Form::Value(Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) => number.base10_parse::<f32>().ok(),
        _ => None,
    };
    let found = number.filter(|number| (0.0..=1.0).contains(number));
    if found.is_none() {
        entry.report_value("a number from 0 to 1", errors);
    }
    found
}

fn read_cache(entry: &Entry, errors: &Errors) -> Option<Cache> {
    let Form::List(list) = &entry.form else {
        entry.report_value("a list", errors);
        return None;
    };
    let mut ttl_ms = None;
    let mut public = false;
    let mut key = entry.span();
    for option in &entry::read(list.clone(), errors) {
        match option.name.as_str() {
            // after an error, so that the missing `ttl` is not a second one
            "ttl" => ttl_ms = option.milliseconds(errors).or(Some(0)),
            "public" => {
                public = option.flag(errors).unwrap_or_default();
                key = option.span();
            }
            _ => {
                option.report_unknown("`cache(..)`", known::CACHE, errors);
                return None;
            }
        }
    }
    if ttl_ms.is_none() {
        errors.at(&entry.key, "`cache` needs a `ttl`\nwrite `cache(ttl = \"60s\")`");
    }
    ttl_ms.map(|ttl_ms| Cache { ttl_ms, public, key })
}
