//! The identifiers of generated code. They are hygienic: no name of the user's module can shadow or clash with them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote_spanned};
use syn::Path;

use crate::expand::dependency;
use crate::model::params::Param;
use crate::syntax::wire_names::to_pascal_case;

/// Resolves names where the macro is defined, and reports errors at `span`.
pub(crate) fn hygienic_at(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// The name of the runtime's crate in the program.
pub(crate) fn runtime(span: Span) -> Ident {
    let renamed = dependency::renamed();
    // a name that is not an identifier was not one of a dependency
    let renamed = renamed.and_then(|name| syn::parse_str::<Ident>(&name).ok());
    let mut name = renamed.unwrap_or_else(|| Ident::new("mcp_runtime", span));
    name.set_span(span);
    name
}

/// The path of the runtime's private module, which generated code imports as `__rt`.
pub(crate) fn private_module(krate: Option<&Path>) -> TokenStream {
    match krate {
        Some(path) => quote_spanned!(Span::mixed_site()=> #path::__private),
        None => {
            let name = runtime(Span::mixed_site());
            quote_spanned!(Span::mixed_site()=> ::#name::__private)
        }
    }
}

/// The constant that describes an argument.
pub(crate) fn argument_constant(param: &Param) -> Ident {
    format_ident!("__A{}", param.index, span = Span::mixed_site())
}

/// The constant that creates an injected value.
pub(crate) fn maker_constant(param: &Param) -> Ident {
    format_ident!("__M{}", param.index, span = Span::mixed_site())
}

/// The constant that describes the payload of an event.
pub(crate) fn payload_constant() -> Ident {
    Ident::new("__P", Span::mixed_site())
}

/// The module of a marker with the function's name.
pub(crate) fn marker_module(function: &Ident) -> Ident {
    format_ident!("__mcp_{}", function)
}

/// The local variable with the value of a parameter.
pub(crate) fn variable(param: &Param) -> Ident {
    format_ident!("__arg{}", param.index, span = Span::mixed_site())
}

/// The constant of a service's item.
pub(crate) fn item_constant(index: usize) -> Ident {
    format_ident!("__I{}", index, span = Span::mixed_site())
}

/// The enum variant of a word: `SamplingTools` of `sampling_tools`.
pub(crate) fn variant(word: &str) -> Ident {
    Ident::new(&to_pascal_case(word), Span::mixed_site())
}
