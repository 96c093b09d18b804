//! Writes a checked model out: the marker type, the descriptor and its registration.
//!
//! Called by `kind` and `service`. Everything generated is named through `__rt`, inside a `const _`.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use crate::handler;
use crate::item::Function;
use crate::kind::{Item, Kind, Place};
use crate::params::{Param, Role};
use crate::ty::{self, at};

/// The braced struct that has the function's name among types, so that `.tool::<name>()` can name it.
pub(crate) fn marker(function: &Function) -> TokenStream {
    let shared = function.shared_attrs();
    let (vis, ident) = (&function.vis, &function.sig.ident);
    quote_spanned! {Span::mixed_site()=>
        #(#shared)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, unreachable_pub, dead_code)]
        #vis struct #ident {}
    }
}

/// Ties the descriptor to the marker and, unless it stands in for one with mistakes, to discovery.
pub(crate) fn registration<K: Kind>(
    function: &Function,
    item: &Item<K>,
    definition: &TokenStream,
    linked: bool,
) -> TokenStream {
    let role = Ident::new(K::PLACE.role(), Span::mixed_site());
    let def = format_ident!("{}Def", role);
    let ident = &function.sig.ident;
    let submit = linked.then(
        || quote_spanned!(Span::mixed_site()=> __rt::inventory::submit! { __rt::Linked::#role(&__DEF) }),
    );
    let inner = quote_spanned! {Span::mixed_site()=>
        #definition
        impl __rt::#role for #ident { const DEF: &'static __rt::#def = &__DEF; }
        #submit
    };
    anonymous(item.common.krate.as_ref(), &function.shared_attrs(), &inner)
}

/// A `const _` in which `__rt` is the runtime's private module.
pub(crate) fn anonymous(krate: Option<&Path>, attrs: &[TokenStream], inner: &TokenStream) -> TokenStream {
    let private = private(krate);
    // The function itself may be deprecated; its own callers are warned, this is not one of them.
    quote_spanned! {Span::mixed_site()=>
        #(#attrs)*
        #[allow(deprecated)]
        const _: () = {
            use #private as __rt;
            #inner
        };
    }
}

/// The path of the runtime's private module.
pub(crate) fn private(krate: Option<&Path>) -> TokenStream {
    match krate {
        Some(path) => quote_spanned!(Span::mixed_site()=> #path::__private),
        None => quote_spanned!(Span::mixed_site()=> ::mcp_runtime::__private),
    }
}

/// `static __DEF` of an item with mistakes, so that naming the item is not a second error.
pub(crate) fn invalid(place: Place) -> TokenStream {
    let def = format_ident!("{}Def", place.role(), span = Span::mixed_site());
    quote_spanned!(Span::mixed_site()=> static __DEF: __rt::#def = __rt::#def::invalid();)
}

/// The constants of the arguments and the output, and `static __DEF`.
pub(crate) fn definition<K: Kind>(item: &Item<K>) -> TokenStream {
    let site = Span::mixed_site();
    let place = K::PLACE;
    let role = Ident::new(place.role(), site);
    let (def, out) = (format_ident!("{}Def", role), format_ident!("{}Out", role));
    let convert = format_ident!("{}_out", place.noun(), span = at(item.output.span()));
    let constants = item.params.iter().filter_map(|param| {
        let constant = param.argument()?.constant(&constant_name(param), &param.ty, place);
        let cfg = cfg(param);
        Some(quote_spanned!(site=> #cfg #constant))
    });
    let arguments = item.params.iter().filter(|param| param.argument().is_some()).map(|param| {
        let (cfg, name) = (cfg(param), constant_name(param));
        quote_spanned!(site=> #cfg &#name)
    });
    let injections: Vec<TokenStream> = item.params.iter().filter_map(injection).collect();
    let injects = (!injections.is_empty()).then(|| quote_spanned!(site=> .injects(&[#(#injections),*])));
    let makers = item.params.iter().filter(|param| matches!(param.role, Role::Made)).map(|param| {
        let (cfg, name, ty) = (cfg(param), maker_name(param), &param.ty);
        let span = at(ty.span());
        quote_spanned!(span=> #cfg const #name: __rt::Maker<#ty> = __rt::maker::<#ty>();)
    });
    let import = (!injections.is_empty())
        .then(|| quote_spanned!(site=> #[allow(unused_imports)] use __rt::ProbeDyn as _;));
    let output = &item.output;
    let output_span = at(output.span());
    let output_type =
        quote_spanned!(output_span=> const __OUT: __rt::#out<#output> = __rt::#convert::<#output>(););
    let name = &item.name;
    let location = location(item);
    let calls = item.calls();
    let handler = handler::closure(item);
    quote_spanned! {site=>
        #import
        #(#constants)*
        #(#makers)*
        #output_type
        static __DEF: __rt::#def = __rt::#def::new(#name, #location)
            #calls
            .args(&[#(#arguments),*])
            #injects
            .output(&__OUT)
            .handler(#handler);
    }
}

fn injection(param: &Param) -> Option<TokenStream> {
    let Role::Borrowed { optional } = &param.role else { return None };
    let (cfg, ty, text) = (cfg(param), &param.ty, ty::written(&param.ty));
    let span = at(ty.span());
    let constructor = Ident::new(if *optional { "optional" } else { "of" }, span);
    Some(quote_spanned!(span=> #cfg __rt::Inject::#constructor::<#ty>(#text)))
}

/// The constant that describes an argument.
pub(crate) fn constant_name(param: &Param) -> Ident {
    format_ident!("__A{}", param.index, span = Span::mixed_site())
}

/// The constant that makes an injected value.
pub(crate) fn maker_name(param: &Param) -> Ident {
    format_ident!("__M{}", param.index, span = Span::mixed_site())
}

/// The `#[cfg]` that everything generated for a parameter carries.
pub(crate) fn cfg(param: &Param) -> Option<TokenStream> {
    let predicate = param.cfg.as_ref()?;
    Some(quote_spanned!(Span::mixed_site()=> #[cfg(#predicate)]))
}

/// Where the item is; the methods of a service would all be where its attribute is, so they spell it.
fn location<K>(item: &Item<K>) -> TokenStream {
    let site = Span::mixed_site();
    let (mut line, mut column) =
        (quote_spanned!(site=> __rt::line!()), quote_spanned!(site=> __rt::column!()));
    if item.this.is_some() && proc_macro::is_available() {
        let span = item.ident.span().unwrap();
        line = number(span.line()).unwrap_or(line);
        column = number(span.column()).unwrap_or(column);
    }
    quote_spanned!(site=> __rt::Location::new(__rt::file!(), #line, #column, __rt::module_path!()))
}

fn number(value: usize) -> Option<TokenStream> {
    u32::try_from(value).ok().map(|value| Literal::u32_unsuffixed(value).to_token_stream())
}

/// What a service's method becomes: a constant of the runtime's `Linked`.
pub(crate) fn linked<K: Kind>(item: &Item<K>, name: &Ident, attrs: &[TokenStream]) -> TokenStream {
    let role = Ident::new(K::PLACE.role(), Span::mixed_site());
    let definition = definition(item);
    let block = quote!({ #definition &__DEF });
    quote_spanned! {Span::mixed_site()=>
        #(#attrs)*
        #[allow(deprecated)]
        const #name: __rt::Linked = __rt::Linked::#role(#block);
    }
}
