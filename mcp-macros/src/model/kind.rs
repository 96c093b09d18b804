//! The kinds of item and their attributes. An item attribute is expanded once, by the first macro to see it.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{Attribute, Meta};

use crate::diagnostics::Errors;
use crate::options::known;
use crate::syntax::function::last_segment;

/// The kind of item that a function becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Resource,
    Prompt,
    Event,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Tool, Self::Resource, Self::Prompt, Self::Event];

    /// The kind of an item attribute; `None` for every other attribute.
    pub(crate) fn of(attr: &Attribute) -> Option<Self> {
        let name = last_segment(attr)?;
        Self::ALL.into_iter().find(|kind| name == kind.attribute())
    }

    /// Whether it is the name of an item attribute.
    pub(crate) fn is_named(name: &str) -> bool {
        Self::ALL.into_iter().any(|kind| name == kind.attribute())
    }

    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Tool => "mcp_tool",
            Self::Resource => "mcp_resource",
            Self::Prompt => "mcp_prompt",
            Self::Event => "mcp_event",
        }
    }

    pub(crate) fn noun(self) -> &'static str {
        self.attribute().trim_start_matches("mcp_")
    }

    /// The noun with its article.
    pub(crate) fn one(self) -> &'static str {
        match self {
            Self::Tool => "a tool",
            Self::Resource => "a resource",
            Self::Prompt => "a prompt",
            Self::Event => "an event",
        }
    }

    /// Whether its arguments are JSON, and not texts.
    pub(crate) fn has_json_arguments(self) -> bool {
        matches!(self, Self::Tool | Self::Event)
    }

    /// The name of the runtime's trait, and the prefix of the names of its types.
    pub(crate) fn type_prefix(self) -> &'static str {
        match self {
            Self::Tool => "Tool",
            Self::Resource => "Resource",
            Self::Prompt => "Prompt",
            Self::Event => "Event",
        }
    }

    /// The option that a string without a key was probably meant for.
    pub(crate) fn positional_option(self, text: &str) -> Option<&'static str> {
        Some(match self {
            Self::Resource if text.contains(':') => "uri",
            _ if text.contains(char::is_whitespace) => "description",
            _ => "name",
        })
    }

    pub(crate) fn known_options(self) -> Vec<&'static str> {
        match self {
            Self::Tool => [known::ITEM, known::TOOL].concat(),
            Self::Resource => [known::ITEM, known::RESOURCE].concat(),
            Self::Prompt => known::ITEM.to_vec(),
            Self::Event => known::EVENT.to_vec(),
        }
    }

    /// The options of a parameter.
    pub(crate) fn known_parameter_options(self) -> Vec<&'static str> {
        let further = if self == Self::Event { known::EVENT_PARAMETER } else { known::PARAMETER };
        [known::VALUE, further].concat()
    }
}

/// The arguments of an attribute that is already expanded. The attribute is kept, so that its import counts as
/// used; expanding it again returns the function unchanged.
const EXPANDED: &str = "__expanded";

pub(crate) fn mark_expanded(attr: &mut Attribute) {
    let (path, word) = (attr.path(), Ident::new(EXPANDED, Span::mixed_site()));
    attr.meta = syn::parse_quote!(#path(#word));
}

pub(crate) fn is_expanded(attr: &Attribute) -> bool {
    attr.meta.require_list().is_ok_and(|list| is_expanded_marker(&list.tokens))
}

/// Whether these arguments are those of an attribute that is already expanded.
pub(crate) fn is_expanded_marker(options: &TokenStream) -> bool {
    let mut options = options.clone().into_iter();
    matches!((options.next(), options.next()), (Some(TokenTree::Ident(word)), None) if word == EXPANDED)
}

/// Marks the first item attribute as expanded and returns its kind and its options.
pub(crate) fn take_attribute(attrs: &mut [Attribute], errors: &Errors) -> Option<(Kind, TokenStream)> {
    let attr = attrs.iter_mut().find(|attr| Kind::of(attr).is_some())?;
    let kind = Kind::of(attr)?;
    let options = match &attr.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(_) => {
            errors
                .at(&*attr, format_args!("options go into parentheses\nwrite `#[{}(..)]`", kind.attribute()));
            TokenStream::new()
        }
    };
    mark_expanded(attr);
    Some((kind, options))
}
