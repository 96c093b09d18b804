//! `ui(..)` of the MCP Apps extension: the page of a tool, and the settings of a page as the extension's JSON.

use syn::LitStr;

use crate::diagnostics::Errors;
use crate::model::template_syntax;
use crate::options::entry::Entry;
use crate::options::known;
use crate::options::meta::json_string;
use crate::syntax::wire_names::to_camel_case;

/// The MIME type of a page.
pub(crate) const MIME: &str = "text/html;profile=mcp-app";

const PAGE: &str = "write `ui(resource = \"ui://server/page.html\")`";
const SETTINGS: &str = "write `ui(prefers_border)`, `ui(csp(connect(\"https://api.example.org\")))` or `ui(permissions(camera))`";

/// `ui(..)` of a tool.
#[derive(Default)]
pub(crate) struct ToolUi {
    /// The URI of the page.
    pub(crate) resource: Option<LitStr>,
    /// The audiences that see the tool, from [`known::VISIBILITY`]; empty if not set.
    pub(crate) visibility: Vec<&'static str>,
}

/// Whether this is the URI of a page.
pub(crate) fn is_page(uri: &str) -> bool {
    uri.strip_prefix("ui://").is_some_and(|rest| !rest.is_empty())
}

/// `ui(resource = "ui://..", visibility(model, app))` of a tool.
pub(crate) fn read_tool_ui(entry: &Entry, errors: &Errors) -> ToolUi {
    let mut ui = ToolUi::default();
    for option in entry.nested(PAGE, errors) {
        match option.name.as_str() {
            "resource" => ui.resource = option.string(errors).filter(|uri| check_page(uri, errors)),
            "visibility" => ui.visibility = option.words(known::VISIBILITY, errors),
            _ => option.report_unknown("`ui(..)` of a tool", known::TOOL_UI, errors),
        }
    }
    ui
}

/// `ui(csp(..), permissions(..), prefers_border, domain = "..")` of a resource, as JSON text.
pub(crate) fn read_resource_ui(entry: &Entry, errors: &Errors) -> Option<String> {
    let mut members = Vec::new();
    for option in entry.nested(SETTINGS, errors) {
        match option.name.as_str() {
            "csp" => members.push(json_member("csp", &csp_to_json(&option, errors))),
            "permissions" => {
                let words = option.words(known::PERMISSIONS, errors);
                let words: Vec<_> =
                    words.iter().map(|word| json_member(&to_camel_case(word), "{}")).collect();
                members.push(json_member("permissions", &format!("{{{}}}", words.join(","))));
            }
            "prefers_border" => {
                let value = option.flag(errors).unwrap_or_default();
                members.push(json_member("prefersBorder", &value.to_string()));
            }
            "domain" => members.extend(domain_to_json(&option, errors)),
            _ => option.report_unknown("`ui(..)` of a resource", known::RESOURCE_UI, errors),
        }
    }
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

fn check_page(uri: &LitStr, errors: &Errors) -> bool {
    let text = uri.value();
    let message = match template_syntax::parse_variables(&text) {
        _ if !is_page(&text) => {
            format!("`{text}` is not a page: the URI of a page starts with `ui://`\n{PAGE}")
        }
        Err(message) => message,
        Ok(variables) if variables.is_empty() => return true,
        Ok(_) => format!("`{text}` is a template\nwrite the URI of one page"),
    };
    errors.at(uri, message);
    false
}

/// The origins of a page by the purpose for which it uses them.
fn csp_to_json(entry: &Entry, errors: &Errors) -> String {
    let usage = "write `csp(connect(\"https://api.example.org\"))`";
    let mut members = Vec::new();
    for option in entry.nested(usage, errors) {
        let name = option.name.as_str();
        if !known::CSP.contains(&name) {
            option.report_unknown("`csp(..)`", known::CSP, errors);
            continue;
        }
        let Some(origins) = option.parse_strings() else {
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
        let origins: Vec<_> = origins.iter().map(|origin| json_string(&origin.value())).collect();
        members.push(json_member(
            &format!("{}Domains", to_camel_case(name)),
            &format!("[{}]", origins.join(",")),
        ));
    }
    format!("{{{}}}", members.join(","))
}

/// Whether this is a host source of a content security policy; hosts copy it verbatim into a header.
fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let name = host.strip_prefix("*.").unwrap_or(host);
    let name = name.strip_prefix('[').and_then(|address| address.strip_suffix(']')).unwrap_or(name);
    let is_address = name.len() < host.len() && host.starts_with('[');
    template_syntax::has_scheme(text)
        && !scheme.is_empty()
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b) || (is_address && b == b':'))
        && port.is_none_or(|port| port == "*" || port.parse::<u16>().is_ok())
}

fn domain_to_json(entry: &Entry, errors: &Errors) -> Option<String> {
    let domain = entry.string(errors)?;
    let text = domain.value();
    // The format is up to the host, but no host accepts whitespace or a path.
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:".contains(&b)) {
        errors.at(
            &domain,
            format_args!(
                "`{text}` is not a domain\nwrite the host name only, such as `domain = \"app.example.org\"`"
            ),
        );
    }
    Some(json_member("domain", &json_string(&text)))
}

fn json_member(key: &str, json: &str) -> String {
    format!("\"{key}\":{json}")
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
            assert_eq!(to_camel_case(name), wire);
        }
    }
}
