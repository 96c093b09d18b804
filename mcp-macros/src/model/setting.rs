//! A field of `#[mcp_config]`, with its options checked: an argument that comes from flags, variables and a file instead of
//! a client. The attributes that rustc does not know are removed.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Attribute, Field, LitStr, Type};

use crate::diagnostics::Errors;
use crate::model::argument::Argument;
use crate::model::kind::Kind;
use crate::model::params::{option_instead, own_options};
use crate::options::entry::{self, Entry, Form};
use crate::options::known;
use crate::syntax::docs;
use crate::syntax::function::cfgs;
use crate::syntax::types::{find_borrow, peel};

/// Options of the command line that every server has.
const COMMAND_LINE: [&str; 8] = ["http", "help", "version", "config", "as", "scope", "claim", "json"];

pub(crate) struct Setting {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) cfgs: Vec<TokenStream>,
    pub(crate) argument: Argument,
    pub(crate) flag: Option<LitStr>,
    pub(crate) env: Option<LitStr>,
}

impl Setting {
    pub(crate) fn is_flat(&self) -> bool {
        self.argument.flatten.is_some()
    }
}

/// Reads the options of a field and removes its helper attributes.
pub(crate) fn read(field: &mut Field, errors: &Errors) -> Option<Setting> {
    let ident = field.ident.clone()?;
    let options = read_options(&field.attrs, errors);
    let name = ident.unraw().to_string();
    let mut setting = Setting {
        argument: Argument::new(name, ident.span(), docs::read(&field.attrs)),
        ident,
        ty: field.ty.clone(),
        cfgs: cfgs(&field.attrs),
        flag: None,
        env: None,
    };
    field.attrs.retain(|attr| !["mcp", "serde", "schemars"].iter().any(|helper| is(attr, helper)));
    // also one with `'static`, which no setting can have
    let borrow = match peel(&setting.ty) {
        Type::Reference(_) => Some(setting.ty.to_token_stream()),
        ty => find_borrow(ty.to_token_stream()).map(|(_, tokens)| tokens),
    };
    if let Some(tokens) = borrow {
        errors.at(
            tokens,
            "a setting owns its value\nwrite a type that owns its data, such as `String` for `&str`",
        );
    }
    if options.iter().any(|option| option.name == "flatten") {
        for option in options.iter().filter(|option| option.name != "flatten") {
            errors.at(
                &option.key,
                format_args!(
                    "`{}` cannot be combined with `flatten`\nput it on the fields of the struct",
                    option.name
                ),
            );
        }
    }
    for option in &options {
        setting.read_option(option, errors);
    }
    if !is_key(&setting.argument.name) {
        errors.at_span(
            setting.argument.name_span,
            format_args!(
                "`{}` cannot be the key of a setting\nuse letters, digits, `_` and `-`",
                setting.argument.name
            ),
        );
    }
    Some(setting)
}

impl Setting {
    fn read_option(&mut self, option: &Entry, errors: &Errors) {
        match option.name.as_str() {
            "flag" => self.flag = read_flag(option, errors),
            "env" => self.env = read_variable(option, errors),
            name if known::VALUE.contains(&name) => {
                // those of arguments of tools
                self.argument.read_option(option, Kind::Tool, errors);
            }
            _ => {
                let known = [known::VALUE, known::SETTING].concat();
                option.report_unknown("a setting's `#[mcp(..)]`", &known, errors);
            }
        }
    }
}

/// Reports keys of the same name.
pub(crate) fn check_names(settings: &[Setting], errors: &Errors) {
    for (index, setting) in settings.iter().enumerate().filter(|(_, setting)| !setting.is_flat()) {
        // one of two under a `#[cfg]` may not exist
        let is_double = |other: &Setting| {
            other.argument.name == setting.argument.name
                && other.ident != setting.ident
                && (other.cfgs.is_empty() || setting.cfgs.is_empty())
                && !other.is_flat()
        };
        if settings.iter().take(index).any(is_double) {
            errors.at_span(
                setting.argument.name_span,
                format_args!("two settings are named `{}`\nrename one", setting.argument.name),
            );
        }
    }
}

fn is(attr: &Attribute, name: &str) -> bool {
    attr.path().is_ident(name)
}

fn is_key(name: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(is_valid)
}

fn read_flag(option: &Entry, errors: &Errors) -> Option<LitStr> {
    let flag = option.string(errors)?;
    let text = flag.value();
    let is_valid = is_key(&text) && !text.starts_with('-') && !text.ends_with('-');
    if !is_valid {
        let bare = text.trim_start_matches('-');
        let fix = if is_key(bare) { bare } else { "database" };
        errors.at(
            &flag,
            format_args!(
                "`{text}` is not the name of a flag\nwrite letters, digits and `-`, without `--` at the start: `flag = \"{fix}\"`"
            ),
        );
        return None;
    }
    if COMMAND_LINE.contains(&text.as_str()) {
        errors.at(
            &flag,
            format_args!("`--{text}` is an option of every server's command line\nname the flag differently"),
        );
        return None;
    }
    Some(flag)
}

fn read_variable(option: &Entry, errors: &Errors) -> Option<LitStr> {
    let variable = option.string(errors)?;
    let text = variable.value();
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(is_valid) {
        errors.at(
            &variable,
            format_args!(
                "`{text}` is not the name of an environment variable\nuse letters, digits and `_`: `env = \"DATABASE_URL\"`"
            ),
        );
        return None;
    }
    Some(variable)
}

/// The options of all `#[mcp(..)]`, and `flatten` of `#[serde(..)]`.
fn read_options(attrs: &[Attribute], errors: &Errors) -> Vec<Entry> {
    let mut options = Vec::new();
    for attr in attrs {
        options.extend(own_options(attr, "field", None, errors));
        if is(attr, "serde") || is(attr, "schemars") {
            let tokens = attr.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default();
            let entries = entry::read_quietly(tokens);
            let is_flatten = |entry: &Entry| {
                entry.name == "flatten" && matches!(entry.form, Form::Bare) && is(attr, "serde")
            };
            if !entries.is_empty() && entries.iter().all(is_flatten) {
                options.extend(entries);
            } else {
                report_serde(attr, &entries, errors);
            }
        }
    }
    entry::remove_duplicates(&mut options, errors);
    options
}

/// Reports an attribute of serde or schemars, with what says the same of a setting.
fn report_serde(attr: &Attribute, entries: &[Entry], errors: &Errors) {
    let name = attr.path().to_token_stream();
    let fix = match option_instead(entries) {
        Some(option) => format!("write `#[mcp({option})]`"),
        None => "write an option of `#[mcp(..)]`, or give the field a type with `#[mcp_type]`".to_owned(),
    };
    errors.at(
        attr,
        format_args!("`#[{name}(..)]` has no effect on a setting, besides `#[serde(flatten)]`\n{fix}"),
    );
}
