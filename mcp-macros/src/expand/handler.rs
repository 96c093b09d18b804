//! The function that the runtime calls: decodes the arguments, injects the rest, calls the user's function, and converts
//! its result. It returns a future only if that function is `async` or a parameter has to be awaited.
//!
//! This code is compiled for every item of every user: each closure, future and generic call costs a crate with many items
//! more than a line of the runtime does.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use crate::expand::idents::{argument_constant, hygienic_at, maker_constant, payload_constant, variable};
use crate::model::item::{Item, ItemOptions};
use crate::model::params::{Param, Source};

/// The name of the function.
pub(crate) fn name() -> Ident {
    Ident::new("__handler", Span::mixed_site())
}

pub(crate) fn function<O: ItemOptions>(item: &Item<O>) -> TokenStream {
    let (site, name) = (Span::mixed_site(), name());
    let this = item.self_ty.as_ref().filter(|_| item.takes_self);
    let this = this.map(|self_ty| quote_spanned!(site=> let __this = __call.this::<#self_ty>()?;));
    let arguments = arguments(&item.params);
    let mut injected: Vec<&Param> = item.params.iter().filter(|param| param.argument().is_none()).collect();
    // first, since nothing else of an event is looked for where there is none
    injected.sort_by_key(|param| !matches!(param.source, Source::Payload(_)));
    let (starts_task, blocking) = (item.options.starts_task(), item.common.blocking.is_some());
    let needs_context = starts_task || !injected.is_empty();
    let context = needs_context.then(|| quote_spanned!(site=> let __ctx = __call.context();));
    let lets = injected.iter().map(|param| inject(param));
    let is_made = |param: &&Param| matches!(param.source, Source::Injected);
    let makes = item.params.iter().any(|param| is_made(&param));
    // rules come first, so nothing of the function may run before its future is polled
    let validates = !item.common.validate.is_empty();
    let is_future = item.is_async || makes || validates;
    let call = call(item);
    let await_ = item.is_async.then(|| quote_spanned!(site=> .await));
    let start = (starts_task && !blocking).then(|| quote_spanned!(site=> __rt::start_task(&__ctx).await;));
    let body = quote_spanned!(site=> #(#lets)* #start __OUT.reply(#call #await_));
    // A future that is not `Send` is then one error, at the name of the function.
    let span = hygienic_at(item.ident.span());
    let run = if blocking && makes {
        // a value that has to be awaited is there before the thread starts
        let made = injected.iter().copied().filter(is_made).map(inject);
        let found = injected.iter().copied().filter(|param| !is_made(param)).map(inject);
        let start = starts_task.then(|| quote_spanned!(site=> __rt::start_task(&__ctx).await;));
        quote_spanned! {span=>
            __rt::pending(__rt::Box::new(async move {
                #(#made)*
                #start
                __rt::on_thread(move || { #(#found)* __OUT.reply(#call) }).await
            }))
        }
    } else if blocking && starts_task {
        quote_spanned!(span=> __rt::blocking_task(__rt::Clone::clone(&__ctx), move || { #body }))
    } else if blocking {
        quote_spanned!(span=> __rt::blocking(move || { #body }))
    } else if is_future && !validates && this.is_none() && context.is_none() {
        // the user's future borrows nothing, so that no other has to own it
        quote_spanned!(span=> __OUT.pending(__rt::Box::new(#call)))
    } else if is_future {
        quote_spanned!(span=> __rt::pending(__rt::Box::new(async move { #body })))
    } else {
        let lets = injected.iter().map(|param| inject(param));
        quote_spanned!(span=> #(#lets)* __rt::ready(__OUT.reply(#call)))
    };
    quote_spanned! {site=>
        fn #name(__call: &__rt::Call<'_>) -> __rt::HandlerResult {
            #this
            #arguments
            #context
            #run
        }
    }
}

/// How rules decode each argument, by its slot.
pub(crate) fn decoders(params: &[Param]) -> TokenStream {
    let site = Span::mixed_site();
    let arguments: Vec<&Param> = params.iter().filter(|param| param.argument().is_some()).collect();
    let decoders = arguments.iter().enumerate().filter_map(|(position, param)| {
        let slot = slot(arguments.iter().take(position));
        let (cfg, name, constant) = (param.cfg_attr(), &param.argument()?.ident, argument_constant(param));
        Some(quote_spanned! {site=>
            #cfg (#name, |__call| __rt::Result::Ok(__rt::rule_value(#constant.take(__call, #slot)?)))
        })
    });
    quote_spanned!(site=> &[#(#decoders),*])
}

/// Takes each argument from its slot.
fn arguments(params: &[Param]) -> TokenStream {
    let site = Span::mixed_site();
    let arguments: Vec<&Param> = params.iter().filter(|param| param.argument().is_some()).collect();
    let takes = arguments.iter().enumerate().map(|(position, param)| {
        let slot = slot(arguments.iter().take(position));
        let (cfg, name, constant) = (param.cfg_attr(), variable(param), argument_constant(param));
        quote_spanned! {site=>
            #cfg
            let __rt::Result::Ok(#name) = #constant.take(__call, #slot) else {
                return __rt::invalid_argument();
            };
        }
    });
    quote_spanned!(site=> #(#takes)*)
}

/// The number of arguments before another, without those that are configured out.
fn slot<'a>(before: impl Iterator<Item = &'a &'a Param>) -> TokenStream {
    let site = Span::mixed_site();
    let mut unconditional = 0_usize;
    let mut conditional = TokenStream::new();
    for param in before {
        match &param.cfg {
            None => unconditional += 1,
            Some(cfg) => {
                conditional.extend(quote_spanned!(site=> + { #[cfg(#cfg)] { 1 } #[cfg(not(#cfg))] { 0 } }));
            }
        }
    }
    let unconditional = Literal::usize_unsuffixed(unconditional);
    quote_spanned!(site=> #unconditional #conditional)
}

fn inject(param: &Param) -> TokenStream {
    let (cfg, name, ty) = (param.cfg_attr(), variable(param), &param.ty);
    let span = hygienic_at(ty.span());
    match param.source {
        Source::Argument(_) => TokenStream::new(),
        Source::Reference { optional: false } => {
            quote_spanned!(span=> #cfg let #name = __rt::Probe::<#ty>::new().find(&__ctx)?;)
        }
        Source::Reference { optional: true } => {
            quote_spanned!(span=> #cfg let #name = __rt::Probe::<#ty>::new().find_optional(&__ctx);)
        }
        Source::Payload(_) => {
            let payload = payload_constant();
            quote_spanned!(span=> #cfg let #name = #payload.find(&__ctx)?;)
        }
        Source::Injected => {
            let maker = maker_constant(param);
            quote_spanned!(span=> #cfg let #name = #maker.make(&__ctx).await?;)
        }
    }
}

/// The call of the user's function; of an async one, its future.
fn call<O>(item: &Item<O>) -> TokenStream {
    let (site, ident) = (Span::mixed_site(), &item.ident);
    let function = match &item.self_ty {
        None => quote!(#ident),
        Some(self_ty) => quote_spanned!(site=> <#self_ty>::#ident),
    };
    let this = item.takes_self.then(|| quote_spanned!(site=> &__this,));
    let values = item.params.iter().map(|param| {
        let (cfg, name) = (param.cfg_attr(), variable(param));
        quote_spanned!(site=> #cfg #name)
    });
    quote_spanned!(site=> #function(#this #(#values),*))
}
