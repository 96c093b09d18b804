//! `#[mcp_resource]`: its own options, and its URI template compared with the parameters.
//!
//! Called through `kind`.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprLit, Lit, LitStr};

use crate::attr::{self, Entry, Form};
use crate::errors::Errors;
use crate::item::Function;
use crate::kind::{Kind, Place};
use crate::names;
use crate::params::Param;
use crate::ty::at;
use crate::ui;
use crate::uri;

/// The options that only resources have.
#[derive(Default)]
pub(crate) struct Resource {
    uri: Option<Uri>,
    mime: Option<LitStr>,
    audience: Vec<LitStr>,
    priority: Option<f32>,
    size: Option<(u64, Span)>,
    cache: Option<Cache>,
    list: Option<(TokenStream, Span)>,
    subscribe: Option<(TokenStream, Span)>,
    /// The key, and JSON text of what a page asks of its host.
    ui: Option<(Ident, Option<String>)>,
    /// Whether there is a URI, be it malformed.
    has_uri: bool,
}

struct Uri {
    text: LitStr,
    variables: Vec<String>,
}

struct Cache {
    ttl: u64,
    public: bool,
}

impl Kind for Resource {
    const PLACE: Place = Place::Resource;

    fn option(&mut self, entry: &Entry, errors: &Errors) -> bool {
        match entry.name.as_str() {
            "uri" => {
                self.has_uri = true;
                self.uri = read_uri(entry, errors);
            }
            "mime" => self.mime = mime(entry, errors),
            "audience" => self.audience = audience(entry, errors),
            "priority" => self.priority = priority(entry, errors),
            "size" => {
                let size = entry.integer(errors).map(|size| size.base10_parse::<u64>());
                let size = size.and_then(|size| size.map_err(|error| errors.add(error)).ok());
                self.size = size.map(|size| (size, entry.span()));
            }
            "cache" => self.cache = cache(entry, errors),
            "ui" => self.ui = Some((entry.key.clone(), ui::of_resource(entry, errors))),
            "list" => self.list = entry.function(errors).map(|path| (path, entry.span())),
            "subscribe" => self.subscribe = entry.function(errors).map(|path| (path, entry.span())),
            _ => return false,
        }
        true
    }

    fn check(&mut self, _: &Function, params: &[Param], errors: &Errors) {
        self.check_ui(errors);
        self.check_instances(params, errors);
        let Some(Uri { text, variables }) = &self.uri else { return };
        let arguments: Vec<_> = params.iter().filter_map(Param::argument).collect();
        for variable in variables {
            if !arguments.iter().any(|argument| argument.name == *variable) {
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

    fn calls(&self) -> TokenStream {
        let mut calls = TokenStream::new();
        if let Some(Uri { text, .. }) = &self.uri {
            calls.extend(quote!(.uri(#text)));
        }
        if let Some(mime) = &self.mime {
            calls.extend(quote!(.mime(#mime)));
        }
        if !self.audience.is_empty() {
            let audience = &self.audience;
            calls.extend(quote!(.audience(&[#(#audience),*])));
        }
        if let Some(priority) = self.priority {
            let priority = Literal::f32_unsuffixed(priority);
            calls.extend(quote!(.priority(#priority)));
        }
        if let Some((size, _)) = self.size {
            calls.extend(quote!(.size(#size)));
        }
        if let Some(Cache { ttl, public }) = self.cache {
            calls.extend(quote!(.cache(#ttl, #public)));
        }
        if let Some((_, Some(ui))) = &self.ui {
            calls.extend(quote!(.ui(#ui)));
        }
        if let Some((list, key)) = &self.list {
            calls.extend(quote_spanned!(at(*key)=> .list(|__x| __rt::list(#list, __x))));
        }
        if let Some((check, key)) = &self.subscribe {
            calls.extend(quote_spanned!(at(*key)=> .subscribe(|__x| __rt::subscribe(#check, __x))));
        }
        calls
    }
}

impl Resource {
    /// A template has instances, each of a size of its own; a plain resource has one size, and no instances.
    fn check_instances(&self, params: &[Param], errors: &Errors) {
        let is_template = match &self.uri {
            Some(Uri { variables, .. }) => !variables.is_empty(),
            None if self.has_uri => return,
            None => params.iter().any(|param| param.argument().is_some()),
        };
        match (&self.size, &self.list) {
            (Some((_, key)), _) if is_template => {
                errors.at_span(*key, "`size` is of one resource, and this is a template of many\nremove it");
            }
            (_, Some((_, key))) if !is_template => errors.at_span(
                *key,
                "`list` gives the instances of a template, and this is one resource\nremove it, or add a variable to the URI",
            ),
            _ => {}
        }
    }

    /// Only pages have `ui(..)`, and only one MIME type.
    fn check_ui(&self, errors: &Errors) {
        let Some((key, _)) = &self.ui else { return };
        match &self.uri {
            Some(Uri { text, .. }) if !ui::is_page(&text.value()) => errors.at(
                text,
                "`ui(..)` is for pages, whose URIs start with `ui://`\nwrite `uri = \"ui://server/page.html\"`, or remove `ui`",
            ),
            Some(_) => {}
            None if self.has_uri => {}
            None => {
                errors.at(key, "`ui(..)` is for pages\nadd a URI, such as `uri = \"ui://server/page.html\"`");
            }
        }
        if let Some(mime) = self.mime.as_ref().filter(|mime| mime.value() != ui::MIME) {
            errors.at(mime, format_args!("a page is `{}`\nremove `mime`: it is that by itself", ui::MIME));
        }
    }
}

fn read_uri(entry: &Entry, errors: &Errors) -> Option<Uri> {
    let text = entry.string(errors)?;
    match uri::variables(&text.value()) {
        Ok(variables) => Some(Uri { text, variables }),
        Err(message) => {
            errors.at(&text, message);
            None
        }
    }
}

fn mime(entry: &Entry, errors: &Errors) -> Option<LitStr> {
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

fn audience(entry: &Entry, errors: &Errors) -> Vec<LitStr> {
    let audience = entry.strings(errors).unwrap_or_default();
    for role in audience.iter().filter(|role| !matches!(role.value().as_str(), "user" | "assistant")) {
        errors.at(role, format_args!("`{}` is not an audience\nwrite `user` or `assistant`", role.value()));
    }
    audience
}

fn priority(entry: &Entry, errors: &Errors) -> Option<f32> {
    let number = match &entry.form {
        Form::Value(Expr::Lit(ExprLit { lit: Lit::Float(number), .. })) => number.base10_parse::<f32>().ok(),
        Form::Value(Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) => number.base10_parse::<f32>().ok(),
        _ => None,
    };
    let found = number.filter(|number| (0.0..=1.0).contains(number));
    if found.is_none() {
        entry.wrong("a number from 0 to 1", errors);
    }
    found
}

fn cache(entry: &Entry, errors: &Errors) -> Option<Cache> {
    let Form::List(list) = &entry.form else {
        entry.wrong("a list", errors);
        return None;
    };
    let mut entries = attr::entries(list.clone(), errors);
    attr::refuse_duplicates(&mut entries, errors);
    let mut ttl = None;
    let mut public = false;
    for option in &entries {
        match option.name.as_str() {
            "ttl" => ttl = option.milliseconds(errors).or(Some(0)),
            "public" => public = option.flag(errors).unwrap_or_default(),
            _ => {
                names::refuse(option, "`cache(..)`", names::CACHE, errors);
                return None;
            }
        }
    }
    if ttl.is_none() {
        errors.at(&entry.key, "`cache` needs a `ttl`\nwrite `cache(ttl = \"60s\")`");
    }
    ttl.map(|ttl| Cache { ttl, public })
}
