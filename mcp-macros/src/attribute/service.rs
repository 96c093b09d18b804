//! `#[mcp_service]`: the annotated methods of an `impl` block as a list of items, which the type's values offer together
//! with those of its other blocks, and, if asked for, a marker of each for typed calls. The block is always emitted, and its
//! list only without errors.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ReceiverKind, Type};

use crate::attribute::misplaced;
use crate::diagnostics::Errors;
use crate::expand::definition::{Fields, private_scope, service_item};
use crate::expand::idents::{hygienic_at, item_constant};
use crate::model::event::EventOptions;
use crate::model::item::{Item, ItemOptions};
use crate::model::kind::{Kind, take_attribute};
use crate::model::prompt::PromptOptions;
use crate::model::resource::ResourceOptions;
use crate::model::tool::ToolOptions;
use crate::options::entry::{self, Form};
use crate::options::known;
use crate::syntax::function::{Function, cfgs};
use crate::syntax::impl_block::ImplBlock;
use crate::syntax::types::{find_borrow, replace_self};

pub(crate) fn expand(options: TokenStream, block: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    // the module with a marker of each method
    let mut module: Option<Ident> = None;
    let krate = entry::read_with_crate(options, "`#[mcp_service]`", known::SERVICE, &errors, |entry| {
        match &entry.form {
            _ if entry.name != "markers" => return false,
            Form::Value(Expr::Path(value)) if value.path.get_ident().is_some() => {
                module = value.path.get_ident().cloned();
            }
            _ => entry.report_value("the name of a module that it adds", &errors),
        }
        true
    });
    let is_item = |attr: &_| Kind::of(attr).is_some();
    let mut block = match ImplBlock::parse(block.clone(), is_item) {
        Ok(block) => block,
        Err(error) => {
            match misplaced::find_keyword(block) {
                Some(keyword) if keyword == "impl" => errors.add(error),
                Some(keyword) if keyword == "trait" => {
                    let message = "a trait cannot be a service\n\
                         put `#[mcp_service]` on an `impl` of a type, such as `impl Shop { .. }`, and call the trait's methods there";
                    misplaced::report_at_keyword(block, message, &errors);
                    let (block, errors) = (misplaced::strip(block.clone()), errors.finish());
                    return quote!(#block #errors);
                }
                _ => {
                    let message =
                        "`#[mcp_service]` belongs to an `impl` block\nmove it to the one with the methods";
                    misplaced::report_at_keyword(block, message, &errors);
                }
            }
            let errors = errors.finish();
            return quote!(#block #errors);
        }
    };
    check_block(&block, &errors);
    let self_ty = block.self_ty.clone();
    let mut constants = TokenStream::new();
    let mut items = Vec::new();
    let mut markers = TokenStream::new();
    for method in block.methods_mut() {
        let Some((kind, item_options)) = take_attribute(&mut method.attrs, &errors) else { continue };
        check_receiver(method, &errors);
        let name = item_constant(items.len());
        let expand_as = match kind {
            Kind::Tool => expand_method::<ToolOptions>,
            Kind::Resource => expand_method::<ResourceOptions>,
            Kind::Prompt => expand_method::<PromptOptions>,
            Kind::Event => {
                errors.at(
                    &method.sig.ident,
                    "an event is a free function: programs emit it by its name\n\
                     move it out of the `impl`, and take what it needs of the service as `&T`",
                );
                expand_method::<EventOptions>
            }
        };
        constants.extend(expand_as(item_options, method, &self_ty, &name, module.as_ref(), &errors));
        markers.extend(method_marker(method));
        let cfgs = cfgs(&method.attrs);
        items.push(quote_spanned!(Span::mixed_site()=> #(#cfgs)* #name));
    }
    if items.is_empty() {
        errors.at(
            block.impl_token,
            "no method of this `impl` is annotated\nput `#[mcp_tool]`, `#[mcp_resource]` or `#[mcp_prompt]` on those that clients may use",
        );
    }
    let is_valid = errors.is_empty();
    let mut tokens = block.to_token_stream();
    tokens.extend(errors.finish());
    if let Some(module) = &module {
        tokens.extend(marker_module(module, &cfgs(&block.attrs), &markers));
    }
    if is_valid {
        let span = hygienic_at(self_ty.span());
        // a type that cannot be a service is an error at its name
        let new = quote_spanned!(span=> __rt::ServiceBlock::new::<#self_ty>);
        let inner = quote_spanned! {Span::mixed_site()=>
            #constants
            const __ITEMS: &[__rt::AnnotatedItem] = &[#(#items),*];
            const __BLOCK: __rt::ServiceBlock = #new(__rt::Location::here(__rt::module_path!()), __ITEMS);
            __rt::inventory::submit! { __BLOCK }
        };
        tokens.extend(private_scope(krate.as_ref(), &cfgs(&block.attrs), &inner));
    }
    tokens
}

/// A braced struct with the name of the method.
fn method_marker(method: &Function) -> TokenStream {
    let (shared, ident) = (method.shared_attrs(), &method.sig.ident);
    quote_spanned!(Span::mixed_site()=> #(#shared)* pub struct #ident {})
}

/// The module whose types name the methods in `client.typed::<module::method>()`. It is there without a valid service too,
/// so that naming one of them is not another error.
fn marker_module(module: &Ident, cfgs: &[TokenStream], markers: &TokenStream) -> TokenStream {
    quote_spanned! {Span::mixed_site()=>
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_snake_case, non_camel_case_types, unreachable_pub, dead_code, missing_debug_implementations)]
        pub mod #module { #markers }
    }
}

fn check_block(block: &ImplBlock, errors: &Errors) {
    if let Some(path) = &block.trait_path {
        errors.at(
            path,
            "a service is an inherent `impl`\n\
             put `#[mcp_service]` on an `impl` of the type itself, and call the trait's methods there",
        );
    }
    if !block.generics.params.is_empty() {
        errors.at(
            &block.generics,
            "a service cannot be generic, since its methods are published as one list\n\
             write an `impl` for each type, such as `impl Shop<Postgres>`",
        );
    } else if let Some((_, tokens)) = find_borrow(block.self_ty.to_token_stream()) {
        errors.at(tokens, "a service cannot borrow\nwrite a type that owns its data, or `'static`");
    }
}

fn check_receiver(method: &Function, errors: &Errors) {
    let Some(receiver) = method.sig.receiver() else { return };
    let lifetimes = method.lifetimes();
    // a lifetime that the method declares is reported at its declaration
    let is_shared = match &receiver.kind {
        ReceiverKind::Reference(_, None, None) => true,
        ReceiverKind::Reference(_, Some(lifetime), None) => lifetimes.contains(&lifetime.to_string()),
        _ => false,
    };
    if !is_shared {
        errors.at(receiver, "the methods of a service are called concurrently\ntake `&self`");
    }
}

fn expand_method<O: ItemOptions + Fields>(
    options: TokenStream,
    method: &mut Function,
    self_ty: &Type,
    name: &Ident,
    markers: Option<&Ident>,
    errors: &Errors,
) -> TokenStream {
    let options = replace_self(options, self_ty);
    let item = Item::<O>::read(options, method, Some(self_ty), errors);
    if let Some(path) = &item.common.krate {
        errors.at(path, "`crate` is an option of the service\nwrite `#[mcp_service(crate = ..)]`");
    }
    service_item(&item, name, &method.shared_attrs(), markers)
}
