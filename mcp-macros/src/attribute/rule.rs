//! `#[mcp_rule]` on functions that compare arguments: describes their parameters by name and type, for `validate`. The
//! function is emitted first and unchanged.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{FnArg, Pat, ReturnType, Type, TypeReference};

use crate::diagnostics::Errors;
use crate::expand::definition::{marker, option, private_scope};
use crate::expand::idents::{hygienic_at, marker_module};
use crate::model::marker::Marker;
use crate::options::entry;
use crate::syntax::docs;
use crate::syntax::function::Function;
use crate::syntax::types::{is_object, option_inner, peel, type_to_string};

/// A parameter of a rule: an argument of the item, or what the server provides.
struct RuleParameter {
    name: Ident,
    /// The target type of the reference.
    ty: Type,
    is_optional: bool,
}

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    let krate = entry::read_crate(options, "mcp_rule", &errors);
    let mut function: Function = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            errors.at_span(
                error.span(),
                "`#[mcp_rule]` belongs to a function that compares arguments\nmove it there",
            );
            let mut tokens = item.clone();
            tokens.extend(errors.finish());
            return tokens;
        }
    };
    let params = read_parameters(&mut function, &errors);
    if let ReturnType::Default = function.sig.output {
        errors.at(
            &function.sig.ident,
            "a rule says whether the arguments are right\nreturn `Result<(), &'static str>` or `Result<(), ToolError>`",
        );
    }
    if !function.sig.generics.params.is_empty() {
        errors.at(&function.sig.generics.params, "a rule cannot be generic\nname the types");
    }
    let mut tokens = function.to_token_stream();
    let is_valid = errors.is_empty();
    tokens.extend(errors.finish());
    if function.sig.receiver().is_none() {
        tokens.extend(marker(&function, &Marker::Function));
        let (ident, module) = (&function.sig.ident, marker_module(&function.sig.ident));
        // of one with errors, naming it is not another error
        let descriptor = match is_valid {
            true => descriptor(&function, &params),
            false => quote_spanned!(Span::mixed_site()=> __rt::RuleDescriptor::EMPTY),
        };
        let definition = quote_spanned! {Span::mixed_site()=>
            use #module::#ident as __Marker;
            impl __rt::ArgumentRule for __Marker {
                const DESCRIPTOR: &'static __rt::RuleDescriptor = &#descriptor;
            }
        };
        tokens.extend(private_scope(krate.as_ref(), &function.shared_attrs(), &definition));
    }
    tokens
}

fn read_parameters(function: &mut Function, errors: &Errors) -> Vec<RuleParameter> {
    let mut params = Vec::new();
    for input in &mut function.sig.inputs {
        let param = match input {
            FnArg::Receiver(receiver) => {
                errors.at(
                    receiver,
                    "a rule is a free function\nmove it out of the `impl`, and take state as `&T`",
                );
                continue;
            }
            FnArg::Typed(param) => param,
        };
        param.attrs.retain(|attr| !docs::is_comment(attr));
        let Pat::Ident(pattern) = &*param.pat else {
            errors.at(
                &param.pat,
                "a rule takes arguments by name\nname the parameter, and take it apart in the body",
            );
            continue;
        };
        let (is_optional, reference) = match option_inner(&param.ty) {
            Some(inner) => (true, peel(inner)),
            None => (false, peel(&param.ty)),
        };
        let Type::Reference(TypeReference { mutability: None, elem, .. }) = reference else {
            errors.at(
                &param.ty,
                "a rule only looks at arguments, so it takes each by reference\nwrite `&T`, `Option<&T>` for an argument that is an `Option<T>`, or `&T` for state",
            );
            continue;
        };
        params.push(RuleParameter { name: pattern.ident.clone(), ty: (**elem).clone(), is_optional });
    }
    params
}

fn descriptor(function: &Function, params: &[RuleParameter]) -> TokenStream {
    let site = Span::mixed_site();
    let ident = &function.sig.ident;
    let (name, description) = (function.name(), option(docs::read(&function.attrs).first(), site));
    let described = params.iter().map(|param| {
        let RuleParameter { name, ty, is_optional } = param;
        let (name, text) = (name.unraw().to_string(), type_to_string(ty));
        let span = hygienic_at(ty.span());
        let inject = Ident::new(if *is_optional { "optional" } else { "of" }, span);
        let inject = quote_spanned!(span=> __rt::Inject::#inject::<#ty>(#text, __rt::Opens::NONE));
        if is_object(ty) {
            return quote_spanned!(span=> __rt::RuleParam::provided(#name, #inject));
        }
        let constructor = Ident::new(if *is_optional { "optional" } else { "required" }, span);
        quote_spanned!(span=> __rt::RuleParam::#constructor::<#ty>(#name, #inject))
    });
    let values = params.iter().enumerate().map(|(index, param)| {
        let RuleParameter { ty, is_optional, .. } = param;
        let span = hygienic_at(ty.span());
        let value = format_ident!("__value{index}", span = site);
        let (find, argument, end) = if *is_optional {
            ("find_optional", "optional_argument", quote!())
        } else {
            ("find", "argument", quote!(?))
        };
        let (find, argument) = (Ident::new(find, span), Ident::new(argument, span));
        let provided = quote_spanned!(span=> __rt::Probe::<#ty>::new().#find(__values.context())#end);
        if is_object(ty) {
            return quote_spanned!(span=> let #value = #provided;);
        }
        quote_spanned! {span=>
            let #value = match __values.#argument::<#ty>(#index) {
                __rt::Option::Some(__value) => __value,
                __rt::Option::None => #provided,
            };
        }
    });
    let passed = (0..params.len()).map(|index| format_ident!("__value{index}", span = site));
    let await_ = function.is_async().then(|| quote_spanned!(site=> .await));
    let output = match &function.sig.output {
        ReturnType::Type(_, ty) => hygienic_at(ty.span()),
        ReturnType::Default => site,
    };
    let call = quote_spanned!(output=> __rt::rule_result(#ident(#(#passed),*) #await_));
    // a future that is not `Send` is then one error, at the name of the function
    let check = quote_spanned! {hygienic_at(ident.span())=>
        |__values| __rt::Box::pin(async move {
            #[allow(unused_imports)]
            use __rt::ProbeDyn as _;
            #(#values)*
            #call
        })
    };
    quote_spanned! {site=>
        __rt::RuleDescriptor {
            name: #name,
            description: #description,
            params: &[#(#described),*],
            check: #check,
        }
    }
}
