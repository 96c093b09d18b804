//! What tools, resources and prompts have in common: from an annotated function to a checked model.
//!
//! Called by `lib` for free functions and by `service` for methods; `expand` writes the model out.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{LitStr, Path, ReturnType, Type};

use crate::attr::{self, Entry};
use crate::doc;
use crate::errors::Errors;
use crate::expand;
use crate::icon::{self, Icon};
use crate::item::{self, Function};
use crate::meta::{self, Meta};
use crate::misplaced;
use crate::names;
use crate::params::{self, Param};
use crate::ty;
use crate::ui;

/// Which kind of item a function becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Tool,
    Resource,
    Prompt,
}

impl Place {
    pub(crate) fn of_attribute(name: &Ident) -> Option<Self> {
        [Self::Tool, Self::Resource, Self::Prompt].into_iter().find(|place| name == place.attribute())
    }

    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Tool => "mcp_tool",
            Self::Resource => "mcp_resource",
            Self::Prompt => "mcp_prompt",
        }
    }

    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }

    /// The name of the runtime's trait, and the start of those of its types.
    pub(crate) fn role(self) -> &'static str {
        match self {
            Self::Tool => "Tool",
            Self::Resource => "Resource",
            Self::Prompt => "Prompt",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Tool => names::TOOL,
            Self::Resource => names::RESOURCE,
            Self::Prompt => names::PROMPT,
        }
    }
}

/// The options and checks that only one kind of item has.
pub(crate) trait Kind: Default {
    const PLACE: Place;

    /// Takes one option; false if there is none of that name.
    fn option(&mut self, entry: &Entry, errors: &Errors) -> bool;

    /// Compares the options with the function.
    fn check(&mut self, function: &Function, params: &[Param], errors: &Errors);

    /// The calls on the runtime's builder.
    fn calls(&self) -> TokenStream;

    fn is_blocking(&self) -> bool {
        false
    }

    /// Whether a call goes on as a task before the function begins.
    fn starts_task(&self) -> bool {
        false
    }
}

/// The options that every kind of item takes.
#[derive(Default)]
pub(crate) struct Common {
    pub(crate) krate: Option<Path>,
    name: Option<LitStr>,
    title: Option<TokenStream>,
    description: Option<TokenStream>,
    icons: Vec<Icon>,
    meta: Option<Meta>,
    scopes: Vec<LitStr>,
    /// What the client must be able to do.
    requires: Vec<&'static str>,
}

impl Common {
    fn option(&mut self, entry: &Entry, errors: &Errors) -> bool {
        match entry.name.as_str() {
            "crate" => self.krate = entry.path(errors),
            "name" => self.name = entry.string(errors),
            "title" => self.title = entry.text(errors),
            "description" => self.description = entry.text(errors),
            "icon" => self.icons.extend(icon::read(entry, errors)),
            "meta" => self.meta = meta::read(entry, errors),
            "scopes" => self.scopes = scopes(entry, errors),
            "requires" => self.requires = ui::words(entry, names::FEATURES, errors),
            _ => return false,
        }
        true
    }

    /// `ui(..)` and `tags(..)` become members of what `meta(..)` makes, which must leave them room.
    fn check_ui(&self, entries: &[Entry], errors: &Errors) {
        for name in ["ui", "tags"] {
            let written = self.meta.as_ref().is_some_and(|meta| meta.keys.iter().any(|key| key == name));
            if let Some(entry) = entries.iter().find(|entry| entry.name == name && written) {
                errors.at(
                    &entry.key,
                    format_args!("`{name}` is a member of `meta(..)` as well\nkeep one of them"),
                );
            }
        }
    }

    fn calls(&self) -> TokenStream {
        let mut calls = TokenStream::new();
        if let Some(title) = &self.title {
            calls.extend(quote!(.title(#title)));
        }
        if let Some(description) = &self.description {
            calls.extend(quote!(.description(#description)));
        }
        if !self.icons.is_empty() {
            let icons = &self.icons;
            // a type that owns memory needs a constant of its own to be `'static`
            calls.extend(quote!(.icons(const { &[#(#icons),*] })));
        }
        if let Some(Meta { json, .. }) = &self.meta {
            calls.extend(quote!(.meta(#json)));
        }
        if !self.scopes.is_empty() {
            let scopes = &self.scopes;
            calls.extend(quote!(.scopes(&[#(#scopes),*])));
        }
        if !self.requires.is_empty() {
            let features =
                self.requires.iter().map(|word| Ident::new(&names::pascal(word), Span::mixed_site()));
            calls.extend(quote!(.requires(&[#(__rt::ClientFeature::#features),*])));
        }
        calls
    }
}

/// An item without mistakes, or as much of it as could be read.
pub(crate) struct Item<K> {
    pub(crate) own: K,
    pub(crate) common: Common,
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    pub(crate) output: Type,
    /// The type whose method this is.
    pub(crate) this: Option<Type>,
    /// Says whether the method takes `&self`.
    pub(crate) takes_this: bool,
    pub(crate) is_async: bool,
    pub(crate) ident: Ident,
}

impl<K: Kind> Item<K> {
    /// Reads and checks everything; leaves the function as it shall be emitted.
    pub(crate) fn read(
        options: TokenStream,
        function: &mut Function,
        this: Option<&Type>,
        errors: &Errors,
    ) -> Self {
        let place = K::PLACE;
        let mut own = K::default();
        let mut common = Common::default();
        let mut entries = attr::entries(options, errors);
        attr::refuse_duplicates(&mut entries, errors);
        for entry in &entries {
            if !common.option(entry, errors) && !own.option(entry, errors) {
                names::refuse(entry, &format!("`#[{}]`", place.attribute()), place.options(), errors);
            }
        }
        common.check_ui(&entries, errors);
        if common.description.is_none() {
            common.description = doc::description(&function.attrs);
        }
        function.take_strays(place.attribute(), errors);
        function.check_header(place.noun(), errors);
        let params = params::read(function, place, this, errors);
        own.check(function, &params, errors);
        let name = check_name(place, common.name.as_ref(), function, errors);
        let ident = function.sig.ident.clone();
        let output = match (&function.sig.output, this) {
            (ReturnType::Default, _) => ty::unit(ident.span()),
            (ReturnType::Type(_, output), None) => (**output).clone(),
            (ReturnType::Type(_, output), Some(this)) => {
                Type::Verbatim(ty::replace_self(output.to_token_stream(), this))
            }
        };
        let takes_this = function.sig.receiver().is_some();
        let is_async = function.is_async();
        Self { own, common, name, params, output, this: this.cloned(), takes_this, is_async, ident }
    }

    pub(crate) fn calls(&self) -> TokenStream {
        let mut calls = self.common.calls();
        calls.extend(self.own.calls());
        calls
    }
}

/// The whole expansion of an attribute on a free function.
pub(crate) fn free_function<K: Kind>(options: TokenStream, item: TokenStream) -> TokenStream {
    if item::says_expanded(&options) {
        return item;
    }
    let errors = Errors::new();
    let mut function: Function = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let mut tokens = misplaced::not_a_function(item, K::PLACE.attribute(), error, &errors);
            tokens.extend(errors.finish());
            return tokens;
        }
    };
    let receiver = function.sig.receiver().cloned();
    if let Some(receiver) = &receiver {
        errors.at(
            receiver,
            format_args!(
                "a method becomes a {} through its `impl`\nput `#[mcp_service]` on the `impl`",
                K::PLACE.noun()
            ),
        );
    }
    let item = Item::<K>::read(options, &mut function, None, &errors);
    let mut tokens = function.to_token_stream();
    let failed = errors.any();
    tokens.extend(errors.finish());
    // A struct inside an `impl` would be a second error.
    if receiver.is_none() {
        let definition = if failed { expand::invalid(K::PLACE) } else { expand::definition(&item) };
        tokens.extend(expand::marker(&function));
        tokens.extend(expand::registration(&function, &item, &definition, !failed));
    }
    tokens
}

/// The scopes of an item; one that no caller can have would hide it from all.
fn scopes(entry: &Entry, errors: &Errors) -> Vec<LitStr> {
    let scopes = entry.strings(errors).unwrap_or_default();
    for scope in scopes.iter().filter(|scope| !names::is_scope(&scope.value())) {
        errors.at(
            scope,
            format_args!(
                "`{}` cannot be a scope\nwrite each by itself: `scopes(\"read\", \"write\")`",
                scope.value()
            ),
        );
    }
    scopes
}

fn check_name(place: Place, given: Option<&LitStr>, function: &Function, errors: &Errors) -> String {
    let name = given.map_or_else(|| function.name(), LitStr::value);
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let problem = if name.is_empty() {
        "is empty\nwrite 1 to 128 characters"
    } else if place != Place::Tool {
        return name;
    } else if name.chars().count() > 128 {
        "is longer than 128 characters\nshorten it"
    } else if !name.chars().all(is_legal) {
        "has a character that tool names cannot have\nuse letters, digits, `_`, `-` and `.`"
    } else {
        return name;
    };
    match given {
        Some(given) => errors.at(given, format_args!("the name `{name}` {problem}")),
        None => {
            errors.at(&function.sig.ident, format_args!("the name `{name}` {problem}, with `name = \"..\"`"));
        }
    }
    name
}
