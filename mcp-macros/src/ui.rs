//! Reads `ui(..)`, of the MCP Apps extension: the page that a tool shows, and what a page asks of its host.
//!
//! Called by `tool` and by `resource`.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Token};

use crate::attr::{self, Entry, Form};
use crate::errors::Errors;
use crate::meta;
use crate::names;
use crate::uri;

/// The MIME type of a page.
pub(crate) const MIME: &str = "text/html;profile=mcp-app";

const PAGE: &str = "write `ui(resource = \"ui://server/page.html\")`";
const SETTINGS: &str = "write `ui(prefers_border)`, `ui(csp(connect(\"https://api.example.org\")))` or `ui(permissions(camera))`";

/// The page of a tool.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) resource: Option<LitStr>,
    /// Who may call the tool; empty if that was not said.
    pub(crate) visibility: Vec<&'static str>,
}

/// Says whether a URI is one that pages have.
pub(crate) fn is_page(uri: &str) -> bool {
    uri.strip_prefix("ui://").is_some_and(|rest| !rest.is_empty())
}

/// `ui(resource = "ui://..", visibility(model, app))` of a tool.
pub(crate) fn of_tool(entry: &Entry, errors: &Errors) -> Page {
    let mut page = Page::default();
    for option in options(entry, PAGE, errors) {
        match option.name.as_str() {
            "resource" => page.resource = option.string(errors).filter(|uri| is_readable(uri, errors)),
            "visibility" => page.visibility = words(&option, names::VISIBILITY, errors),
            _ => names::refuse(&option, "`ui(..)` of a tool", names::TOOL_UI, errors),
        }
    }
    page
}

/// `ui(csp(..), permissions(..), prefers_border, domain = "..")` of a resource, as JSON text.
pub(crate) fn of_resource(entry: &Entry, errors: &Errors) -> Option<String> {
    let mut members = Vec::new();
    for option in options(entry, SETTINGS, errors) {
        match option.name.as_str() {
            "csp" => members.push(member("csp", &csp(&option, errors))),
            "permissions" => {
                let asked = words(&option, names::PERMISSIONS, errors);
                let asked: Vec<_> = asked.iter().map(|word| member(&camel(word), "{}")).collect();
                members.push(member("permissions", &format!("{{{}}}", asked.join(","))));
            }
            "prefers_border" => {
                let value = option.flag(errors).unwrap_or_default();
                members.push(member("prefersBorder", &value.to_string()));
            }
            "domain" => members.extend(domain(&option, errors)),
            _ => names::refuse(&option, "`ui(..)` of a resource", names::RESOURCE_UI, errors),
        }
    }
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

/// The options inside a list that must have some.
fn options(entry: &Entry, usage: &str, errors: &Errors) -> Vec<Entry> {
    match &entry.form {
        Form::List(list) if !list.is_empty() => {
            let mut entries = attr::entries(list.clone(), errors);
            attr::refuse_duplicates(&mut entries, errors);
            return entries;
        }
        Form::Value(value) => errors.at(value, format_args!("`{}` takes a list\n{usage}", entry.name)),
        _ => errors.at(&entry.key, format_args!("`{}` takes a list\n{usage}", entry.name)),
    }
    Vec::new()
}

fn is_readable(uri: &LitStr, errors: &Errors) -> bool {
    let text = uri.value();
    let problem = match uri::variables(&text) {
        _ if !is_page(&text) => format!("`{text}` is no page: its URI starts with `ui://`\n{PAGE}"),
        Err(problem) => problem,
        Ok(variables) if variables.is_empty() => return true,
        Ok(_) => format!("`{text}` is a template\nname one page of it"),
    };
    errors.at(uri, problem);
    false
}

/// A list of known words, as words or as strings.
pub(crate) fn words(entry: &Entry, known: &'static [&'static str], errors: &Errors) -> Vec<&'static str> {
    let parser = |input: ParseStream<'_>| Punctuated::<Word, Token![,]>::parse_terminated(input);
    let written = match &entry.form {
        Form::List(list) => parser.parse2(list.clone()).ok().filter(|words| !words.is_empty()),
        _ => None,
    };
    let Some(written) = written else {
        entry.wrong("a list of words", errors);
        return Vec::new();
    };
    let mut found = Vec::new();
    for Word(word, span) in written {
        match known.iter().find(|known| **known == word) {
            Some(known) if found.contains(known) => {
                errors.at_span(span, format_args!("`{word}` is given twice\nkeep one of them"));
            }
            Some(known) => found.push(*known),
            None => {
                let fix = names::fix(&word, known);
                errors.at_span(span, format_args!("`{word}` is no word of `{}(..)`\n{fix}", entry.name));
            }
        }
    }
    found
}

struct Word(String, Span);

impl syn::parse::Parse for Word {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitStr) {
            let word: LitStr = input.parse()?;
            return Ok(Self(word.value(), word.span()));
        }
        let word = Ident::parse_any(input)?;
        Ok(Self(word.unraw().to_string(), word.span()))
    }
}

/// The origins that a page uses, by what for.
fn csp(entry: &Entry, errors: &Errors) -> String {
    let usage = "write `csp(connect(\"https://api.example.org\"))`";
    let mut members = Vec::new();
    for option in options(entry, usage, errors) {
        let name = option.name.as_str();
        if !names::CSP.contains(&name) {
            names::refuse(&option, "`csp(..)`", names::CSP, errors);
            continue;
        }
        let Some(origins) = option.list_of_strings() else {
            errors.at(
                &option.key,
                format_args!("`{name}` takes origins\nwrite `{name}(\"https://cdn.example.org\")`"),
            );
            continue;
        };
        for origin in origins.iter().filter(|origin| !is_origin(&origin.value())) {
            errors.at(
                origin,
                format_args!(
                    "`{}` is not an origin\nwrite a scheme and a host, such as `https://cdn.example.org` or `https://*.example.org`",
                    origin.value()
                ),
            );
        }
        let origins: Vec<_> = origins.iter().map(|origin| meta::string(&origin.value())).collect();
        members.push(member(&format!("{}Domains", camel(name)), &format!("[{}]", origins.join(","))));
    }
    format!("{{{}}}", members.join(","))
}

/// A source of a content security policy with a host: what hosts put into a header as it is.
fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let name = host.strip_prefix("*.").unwrap_or(host);
    let name = name.strip_prefix('[').and_then(|address| address.strip_suffix(']')).unwrap_or(name);
    let is_address = name.len() < host.len() && host.starts_with('[');
    uri::has_scheme(text)
        && !scheme.is_empty()
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b) || (is_address && b == b':'))
        && port.is_none_or(|port| port == "*" || port.parse::<u16>().is_ok())
}

fn domain(entry: &Entry, errors: &Errors) -> Option<String> {
    let domain = entry.string(errors)?;
    let text = domain.value();
    // what a host accepts is the host's to say, but none has a blank or a path in a name
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:".contains(&b)) {
        errors.at(
            &domain,
            format_args!(
                "`{text}` is not a domain\nwrite its name alone, such as `domain = \"app.example.org\"`"
            ),
        );
    }
    Some(member("domain", &meta::string(&text)))
}

fn member(key: &str, json: &str) -> String {
    format!("\"{key}\":{json}")
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| {
        let (head, tail) = word.split_at_checked(1).unwrap_or((word, ""));
        all + &head.to_ascii_uppercase() + tail
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_have_a_scheme_and_a_host_and_nothing_more() {
        for origin in [
            "https://a.example",
            "wss://*.example.org",
            "https://a.example:8443",
            "http://localhost:*",
            "http://127.0.0.1:80",
            "http://[::1]:80",
            "http://[::1]",
        ] {
            assert!(is_origin(origin), "{origin}");
        }
        for text in [
            "",
            "a.example",
            "https://",
            "://a.example",
            "https:a.example",
            "https://a.example/",
            "https://a.example/x",
            "https://a.example?x",
            "https://a.example:port",
            "https://a.example:",
            "https://*",
            "https://a.*.example",
            "https://a.example https://b.example",
            "https://a.example;script-src *",
            "https://a.example,b",
            "'self'",
            "*",
            "data:",
        ] {
            assert!(!is_origin(text), "{text}");
        }
    }

    #[test]
    fn wire_names_are_in_camel_case() {
        for (name, wire) in
            [("camera", "camera"), ("clipboard_write", "clipboardWrite"), ("base_uri", "baseUri")]
        {
            assert_eq!(camel(name), wire);
        }
    }
}
