//! The function that the runtime calls: decode the arguments, find what is injected, call, reply.
//!
//! Called by `expand` for each item.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::expand::{cfg, constant_name, maker_name};
use crate::kind::{Item, Kind};
use crate::params::{Param, Role};
use crate::ty::at;

pub(crate) fn closure<K: Kind>(item: &Item<K>) -> TokenStream {
    let site = Span::mixed_site();
    let decode = decode(&item.params);
    let this = item.this.as_ref().filter(|_| item.takes_this);
    let this = this.map(|this| quote_spanned!(site=> let __this = __call.this::<#this>()?;));
    let injected: Vec<&Param> = item.params.iter().filter(|param| param.argument().is_none()).collect();
    let starts = item.own.starts_task();
    let context =
        (starts || !injected.is_empty()).then(|| quote_spanned!(site=> let __ctx = __call.context();));
    let lets = injected.iter().map(|param| injection(param));
    let is_deferred = item.is_async || item.params.iter().any(|param| matches!(param.role, Role::Made));
    let reply = reply(item);
    let start =
        (starts && !item.own.is_blocking()).then(|| quote_spanned!(site=> __rt::start_task(&__ctx).await;));
    let body = quote_spanned!(site=> #(#lets)* #start __OUT.reply(#reply));
    // At the function's name: a future that cannot be sent is one readable error there.
    let span = at(item.ident.span());
    let run = if item.own.is_blocking() && starts {
        quote_spanned!(span=> __rt::blocking_task(__rt::Clone::clone(&__ctx), move || { #body }))
    } else if item.own.is_blocking() {
        quote_spanned!(span=> __rt::blocking(move || { #body }))
    } else if is_deferred {
        quote_spanned!(span=> __rt::pending(async move { #body }))
    } else {
        let lets = injected.iter().map(|param| injection(param));
        quote_spanned!(span=> #(#lets)* __rt::done(__OUT.reply(#reply)))
    };
    quote_spanned!(site=> |__call| { #this #decode #context #run })
}

/// Reads every argument in one pass; it also runs without any, since unknown ones may be refused.
fn decode(params: &[Param]) -> TokenStream {
    let site = Span::mixed_site();
    let arguments: Vec<&Param> = params.iter().filter(|param| param.argument().is_some()).collect();
    if arguments.is_empty() {
        return quote_spanned!(site=> __call.decode(|_| __rt::Result::Ok(()))?;);
    }
    let names = arguments.iter().map(|param| variable(param));
    let takes = arguments.iter().enumerate().map(|(place, param)| {
        let slot = slot(arguments.iter().take(place));
        let (cfg, constant) = (cfg(param), constant_name(param));
        let take = quote_spanned!(site=> #constant.take(__s, #slot)?);
        // Patterns take no `#[cfg]`, so what is configured out stays in the tuple as `()`.
        if cfg.is_some() { quote_spanned!(site=> { #cfg { #take } }) } else { take }
    });
    quote_spanned!(site=> let (#(#names,)*) = __call.decode(|__s| __rt::Result::Ok((#(#takes,)*)))?;)
}

/// The number of arguments before one, not counting what is configured out.
fn slot<'a>(before: impl Iterator<Item = &'a &'a Param>) -> TokenStream {
    let site = Span::mixed_site();
    let mut certain = 0_usize;
    let mut conditional = TokenStream::new();
    for param in before {
        match &param.cfg {
            None => certain += 1,
            Some(cfg) => {
                conditional.extend(quote_spanned!(site=> + { #[cfg(#cfg)] { 1 } #[cfg(not(#cfg))] { 0 } }));
            }
        }
    }
    quote_spanned!(site=> #certain #conditional)
}

fn injection(param: &Param) -> TokenStream {
    let (cfg, name, ty) = (cfg(param), variable(param), &param.ty);
    let span = at(ty.span());
    match param.role {
        Role::Argument(_) => TokenStream::new(),
        Role::Borrowed { optional: false } => {
            quote_spanned!(span=> #cfg let #name = __rt::Probe::<#ty>::new().find(&__ctx)?;)
        }
        Role::Borrowed { optional: true } => {
            quote_spanned!(span=> #cfg let #name = __rt::Probe::<#ty>::new().find_optional(&__ctx);)
        }
        Role::Made => {
            let maker = maker_name(param);
            quote_spanned!(span=> #cfg let #name = #maker.make(&__ctx).await?;)
        }
    }
}

/// The call of the user's function.
fn reply<K: Kind>(item: &Item<K>) -> TokenStream {
    let (site, ident) = (Span::mixed_site(), &item.ident);
    let function = match &item.this {
        None => quote!(#ident),
        Some(this) => quote_spanned!(site=> <#this>::#ident),
    };
    let this = item.takes_this.then(|| quote_spanned!(site=> &__this,));
    let values = item.params.iter().map(|param| {
        let (cfg, name) = (cfg(param), variable(param));
        quote_spanned!(site=> #cfg #name)
    });
    let wait = item.is_async.then(|| quote_spanned!(site=> .await));
    quote_spanned!(site=> #function(#this #(#values),*) #wait)
}

fn variable(param: &Param) -> Ident {
    format_ident!("__arg{}", param.index, span = Span::mixed_site())
}
