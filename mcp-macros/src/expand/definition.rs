//! The descriptor of an item, `static __DESCRIPTOR`, and its registration. Each field has the span of the option that
//! sets it, so that a trait error points there.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, LitStr, Path, Type, Visibility};

use crate::expand::handler;
use crate::expand::idents::{
    argument_constant, hygienic_at, maker_constant, marker_module, payload_constant, private_module, variant,
};
use crate::model::argument::{Argument, ArgumentValue, Completion, ValueSource};
use crate::model::event::EventOptions;
use crate::model::icon::Icon;
use crate::model::item::{CommonOptions, Item, ItemOptions};
use crate::model::kind::Kind;
use crate::model::marker::Marker;
use crate::model::params::{Param, Source};
use crate::model::prompt::PromptOptions;
use crate::model::resource::{Cache, ResourceFunction, ResourceOptions, UriOption};
use crate::model::rule::{Bounds, Constraint, Rule};
use crate::model::tool::{TaskMode, ToolOptions};
use crate::options::entry::NamedFunction;
use crate::options::rate_syntax::parse_milliseconds;
use crate::syntax::function::{Function, cfgs};
use crate::syntax::types::{
    generic_argument, is_duration, is_object, leaf, option_inner, peel, tells_null, type_to_string,
};

/// Options as fields of a descriptor; the others come from its `EMPTY`.
pub(crate) trait Fields {
    /// `output` is the return type of the function, if it has one; `blocking` whether a thread runs it.
    fn fields(&self, _output: Option<&Type>, _blocking: bool) -> TokenStream {
        TokenStream::new()
    }
}

/// A braced struct, which occupies the type namespace only, for `.tool::<name>()`; nothing if the item has no marker.
///
/// A struct with the function's name is brought in by a glob import, which gives way to a module, import or type of
/// that name.
pub(crate) fn marker(function: &Function, marker: &Marker) -> TokenStream {
    let (vis, shared, cfgs) = (&function.vis, function.shared_attrs(), cfgs(&function.attrs));
    let ident = &function.sig.ident;
    match marker {
        Marker::Named(name) => quote_spanned! {Span::mixed_site()=>
            #(#shared)*
            #[doc(hidden)]
            #[allow(unreachable_pub, dead_code)]
            #vis struct #name {}
        },
        Marker::Function => {
            let module = marker_module(ident);
            let reexport = match vis {
                Visibility::Inherited => quote!(#[allow(unused_imports)]),
                _ => quote!(#[doc(hidden)] #[allow(unused_imports, unreachable_pub, clippy::pub_use)]),
            };
            quote_spanned! {Span::mixed_site()=>
                #(#cfgs)*
                #[doc(hidden)]
                #[allow(non_snake_case, non_camel_case_types, unreachable_pub, dead_code)]
                mod #module {
                    #(#shared)*
                    pub struct #ident {}
                }
                #(#cfgs)*
                #reexport
                #vis use #module::*;
            }
        }
        Marker::Omitted => TokenStream::new(),
    }
}

/// Imports the marker as `__Marker`.
fn import_marker(function: &Function, marker: &Marker) -> Option<TokenStream> {
    let ident = &function.sig.ident;
    match marker {
        Marker::Named(name) => Some(quote_spanned!(Span::mixed_site()=> use #name as __Marker;)),
        Marker::Function => {
            let module = marker_module(ident);
            Some(quote_spanned!(Span::mixed_site()=> use #module::#ident as __Marker;))
        }
        Marker::Omitted => None,
    }
}

/// Implements the runtime's trait for the marker and submits the descriptor to discovery.
pub(crate) fn registration<O: ItemOptions + Fields>(function: &Function, item: &Item<O>) -> TokenStream {
    let kind = constructor(O::KIND);
    let submit = quote_spanned!(Span::mixed_site()=> __rt::inventory::submit! { __rt::AnnotatedItem::#kind(&__DESCRIPTOR) });
    link(function, item, &definition(item), Some((&signature(item), &submit)))
}

/// The types that typed calls need. They are in a trait's parameter, where types may be private, and inside of a function
/// pointer, where lifetimes may be elided; an associated type allows neither.
fn signature<O: ItemOptions>(item: &Item<O>) -> TokenStream {
    let arguments = item.params.iter().filter(|param| param.argument().is_some()).map(|param| {
        let (cfg, ty) = (param.cfg_attr(), &param.ty);
        quote!(#cfg #ty)
    });
    let output = item.output.clone().unwrap_or_else(|| unit(item.ident.span()));
    let payload = payload(item).map(|param| {
        let ty = &param.ty;
        quote_spanned!(Span::mixed_site()=> impl __rt::EventOf<#ty> for __Marker {})
    });
    quote_spanned! {Span::mixed_site()=>
        impl __rt::Signature<fn(#(#arguments),*) -> #output> for __Marker {}
        #payload
    }
}

/// The parameter that is the payload of an event.
fn payload<O>(item: &Item<O>) -> Option<&Param> {
    item.params.iter().find(|param| matches!(param.source, Source::Payload(_)))
}

/// Implements the runtime's trait for the marker of an item with errors, so that naming it is not another error.
/// Discovery does not find it.
pub(crate) fn invalid_registration<O: ItemOptions>(function: &Function, item: &Item<O>) -> TokenStream {
    let def = format_ident!("{}Descriptor", O::KIND.type_prefix(), span = Span::mixed_site());
    let definition =
        quote_spanned!(Span::mixed_site()=> static __DESCRIPTOR: __rt::#def = __rt::#def::EMPTY;);
    link(function, item, &definition, None)
}

fn link<O: ItemOptions>(
    function: &Function,
    item: &Item<O>,
    definition: &TokenStream,
    valid: Option<(&TokenStream, &TokenStream)>,
) -> TokenStream {
    let prefix = type_prefix(O::KIND);
    let def = format_ident!("{}Descriptor", prefix);
    let signature = valid.map(|(signature, _)| signature);
    let submit = valid.map(|(_, submit)| submit);
    let marker = import_marker(function, &item.common.marker).map(|import| {
        quote_spanned! {Span::mixed_site()=>
            #import
            impl __rt::#prefix for __Marker { const DESCRIPTOR: &'static __rt::#def = &__DESCRIPTOR; }
            #signature
        }
    });
    let mut inner = quote_spanned! {Span::mixed_site()=>
        #definition
        #marker
        #submit
    };
    if O::KIND == Kind::Event {
        inner = quote_spanned!(Span::mixed_site()=> __rt::needs_events! { #inner });
    }
    private_scope(item.common.krate.as_ref(), &function.shared_attrs(), &inner)
}

/// A constant with the item of a service. In the module `markers` is its marker, which clients name in typed calls, and
/// builders cannot: a method needs the value of its service.
pub(crate) fn service_item<O: ItemOptions + Fields>(
    item: &Item<O>,
    name: &Ident,
    attrs: &[TokenStream],
    markers: Option<&Ident>,
) -> TokenStream {
    let (kind, prefix) = (constructor(O::KIND), type_prefix(O::KIND));
    let definition = definition(item);
    let block = quote!({ #definition &__DESCRIPTOR });
    if let Some(module) = markers {
        let def = format_ident!("{prefix}Descriptor");
        let (descriptor, ident) = (format_ident!("{name}_DESCRIPTOR"), &item.ident);
        let signature = signature(item);
        return quote_spanned! {Span::mixed_site()=>
            #(#attrs)*
            #[allow(deprecated)]
            const #descriptor: &'static __rt::#def = #block;
            #(#attrs)*
            #[allow(deprecated)]
            const #name: __rt::AnnotatedItem = __rt::AnnotatedItem::#kind(#descriptor);
            #(#attrs)*
            #[allow(deprecated)]
            const _: () = {
                use #module::#ident as __Marker;
                impl __rt::Typed<__rt::#def> for __Marker { const TYPED: &'static __rt::#def = #descriptor; }
                #signature
            };
        };
    }
    quote_spanned! {Span::mixed_site()=>
        #(#attrs)*
        #[allow(deprecated)]
        const #name: __rt::AnnotatedItem = __rt::AnnotatedItem::#kind(#block);
    }
}

/// A `const _` in which `__rt` is the runtime's private module.
pub(crate) fn private_scope(krate: Option<&Path>, attrs: &[TokenStream], inner: &TokenStream) -> TokenStream {
    let private = private_module(krate);
    // A deprecated function warns its callers, of which the generated code is not one.
    quote_spanned! {Span::mixed_site()=>
        #(#attrs)*
        #[allow(deprecated)]
        const _: () = {
            use #private as __rt;
            #inner
        };
    }
}

fn type_prefix(kind: Kind) -> Ident {
    Ident::new(kind.type_prefix(), Span::mixed_site())
}

/// The function that makes an `AnnotatedItem` of a descriptor.
fn constructor(kind: Kind) -> Ident {
    Ident::new(kind.noun(), Span::mixed_site())
}

/// The constants of arguments, injected values and output, and `static __DESCRIPTOR`.
fn definition<O: ItemOptions + Fields>(item: &Item<O>) -> TokenStream {
    let site = Span::mixed_site();
    let kind = O::KIND;
    let blocking = item.common.blocking.is_some();
    let prefix = type_prefix(kind);
    let (def, result) = (format_ident!("{}Descriptor", prefix), format_ident!("{}Result", prefix));
    let output = item.output.clone().unwrap_or_else(|| unit(item.ident.span()));
    let output_span = hygienic_at(output.span());
    let constants = item.params.iter().filter_map(|param| {
        let constant =
            describe_argument(param.argument()?, &argument_constant(param), &param.ty, kind, blocking);
        let cfg = param.cfg_attr();
        Some(quote_spanned!(site=> #cfg #constant))
    });
    let arguments = item.params.iter().filter(|param| param.argument().is_some()).map(|param| {
        let (cfg, name) = (param.cfg_attr(), argument_constant(param));
        quote_spanned!(site=> #cfg &#name)
    });
    let injections: Vec<TokenStream> = item.params.iter().filter_map(describe_injection).collect();
    let injects = (!injections.is_empty()).then(|| quote_spanned!(site=> injects: &[#(#injections),*],));
    let makers = item.params.iter().filter(|param| matches!(param.source, Source::Injected)).map(|param| {
        let (cfg, name, ty) = (param.cfg_attr(), maker_constant(param), &param.ty);
        let span = hygienic_at(ty.span());
        quote_spanned!(span=> #cfg const #name: __rt::FromContextFn<#ty> = __rt::from_context_fn::<#ty>();)
    });
    let import = (!injections.is_empty())
        .then(|| quote_spanned!(site=> #[allow(unused_imports)] use __rt::ProbeDyn as _;));
    let output_type = quote_spanned! {output_span=>
        const __OUT: __rt::Output<#output, __rt::#result> = __rt::output::<#output, __rt::#result>();
    };
    let new = new_item(item);
    let common = item.common.fields(item.output.as_ref(), blocking);
    // whom a change of the resource concerns may then depend on who reads it
    let makes_values = item.params.iter().any(|param| matches!(param.source, Source::Injected));
    let makes_values =
        (makes_values && kind == Kind::Resource).then(|| quote_spanned!(site=> makes_values: true,));
    let unregistered = item.options.is_unregistered().then(|| quote_spanned!(site=> unregistered: true,));
    // each is named at its own path, so that a trait error points there
    let rule = |path: &Path| {
        let span = hygienic_at(path.span());
        quote_spanned!(span=> <#path as __rt::ArgumentRule>::DESCRIPTOR)
    };
    let rules = (!item.common.validate.is_empty()).then(|| {
        let (rules, decoders) = (item.common.validate.iter().map(rule), handler::decoders(&item.params));
        quote_spanned!(site=> rules: __rt::ItemRules { rules: &[#(#rules),*], arguments: #decoders },)
    });
    let own = item.options.fields(item.output.as_ref(), blocking);
    let rest = (kind != Kind::Prompt).then(|| quote_spanned!(site=> ..__rt::#def::returning(&__OUT)));
    let (handler, handler_name) = (handler::function(item), handler::name());
    let payload = payload(item).map(|param| (payload_constant(), &param.ty));
    let payload_type = payload.as_ref().map(|(name, ty)| {
        let span = hygienic_at(ty.span());
        quote_spanned!(span=> const #name: __rt::EventPayload<#ty> = __rt::event_payload::<#ty>();)
    });
    let payload =
        payload.map(|(name, _)| quote_spanned!(site=> payload: __rt::Option::Some(#name.functions),));
    let described = quote_spanned! {site=>
        item: __rt::ItemDescriptor {
            #common
            #unregistered
            #makes_values
            args: &[#(#arguments),*],
            #injects
            #rules
            ..#new
        },
    };
    // the function of an event has the arguments of a tool
    let fields = match kind {
        Kind::Event => quote_spanned! {site=>
            #own
            #payload
            function: __rt::ToolDescriptor {
                #described
                handler: #handler_name,
                ..__rt::ToolDescriptor::EMPTY
            },
        },
        _ => quote_spanned!(site=> #described #own handler: #handler_name,),
    };
    quote_spanned! {site=>
        #import
        #(#constants)*
        #(#makers)*
        #output_type
        #payload_type
        #handler
        static __DESCRIPTOR: __rt::#def = __rt::#def {
            #fields
            #rest
        };
    }
}

fn unit(span: Span) -> Type {
    Type::Verbatim(quote_spanned!(hygienic_at(span)=> ()))
}

/// The item with its name and source location. Without a line and a column, it would be the attribute of a service for all
/// of its methods.
fn new_item<O>(item: &Item<O>) -> TokenStream {
    let (site, name) = (Span::mixed_site(), &item.name);
    if item.self_ty.is_some() && proc_macro::is_available() {
        let literal = |value: usize| u32::try_from(value).ok().map(Literal::u32_unsuffixed);
        let span = item.ident.span().unwrap();
        if let (Some(line), Some(column)) = (literal(span.line()), literal(span.column())) {
            return quote_spanned! {site=>
                __rt::item_at(#name, __rt::Location::new(__rt::file!(), #line, #column, __rt::module_path!()))
            };
        }
    }
    quote_spanned!(site=> __rt::item(#name, __rt::module_path!()))
}

fn describe_injection(param: &Param) -> Option<TokenStream> {
    let Source::Reference { optional } = &param.source else { return None };
    let (cfg, ty, text) = (param.cfg_attr(), &param.ty, type_to_string(&param.ty));
    let span = hygienic_at(ty.span());
    let constructor = Ident::new(if *optional { "optional" } else { "of" }, span);
    // for the message if only the pointee is registered
    let pointee = generic_argument(ty).filter(|(name, _)| *name == "Arc").map(|(_, pointee)| {
        let text = type_to_string(pointee);
        quote_spanned!(span=> .pointing_to::<#pointee>(#text))
    });
    // the capability that the type is a part of, if any
    let opens = quote_spanned!(span=> __rt::Probe::<#ty>::OPENS);
    Some(quote_spanned!(span=> #cfg __rt::Inject::#constructor::<#ty>(#text, #opens)#pointee))
}

/// `const __A0: __rt::ArgDescriptor<T> = ..;`
fn describe_argument(
    argument: &Argument,
    name: &Ident,
    ty: &Type,
    kind: Kind,
    blocking: bool,
) -> TokenStream {
    let span = hygienic_at(ty.span());
    let sent = &argument.name;
    let (look, is_text) = (argument_look(ty), !kind.has_json_arguments());
    let leaf = leaf(ty);
    let constructor = match (argument.flatten, &look) {
        (Some(_), _) => "flatten",
        (None, ArgumentLook::Provided(_)) => "provided",
        (None, ArgumentLook::Injected) => "injected",
        (None, ArgumentLook::Shared(_)) => "shared",
        (None, ArgumentLook::Object) => "object",
        (None, ArgumentLook::Data) => "argument",
    };
    // the second type is one that a message names
    let types = match look {
        // `&str` cannot be state
        ArgumentLook::Shared(inner) if constructor == "shared" => {
            let is_str = matches!(peel(inner), Type::Path(path) if path.path.is_ident("str"));
            let inner = if is_str { ty } else { inner };
            quote!(#ty, #inner)
        }
        ArgumentLook::Provided(reference) if constructor == "provided" => quote!(#ty, #reference),
        _ if matches!(constructor, "flatten" | "argument") => quote!(#ty, #leaf),
        _ => ty.to_token_stream(),
    };
    let sent = match constructor {
        "flatten" => sent.to_token_stream(),
        _ => quote_spanned!(span=> #sent, #is_text),
    };
    let constructor = Ident::new(constructor, span);
    let calls = argument_calls(argument, ty, blocking);
    let nullable =
        (constructor == "argument" && !is_text && tells_null(ty)).then(|| quote_spanned!(span=> .nullable()));
    let form = (constructor == "argument" && is_duration(ty)).then(|| {
        quote_spanned! {span=>
            .form({
                #[allow(unused_imports)]
                use __rt::AnyAsText as _;
                __rt::AsText::<#ty>::FORM
            })
        }
    });
    quote_spanned!(span=> const #name: __rt::ArgDescriptor<#ty> = __rt::#constructor::<#types>(#sent)#nullable #calls #form;)
}

/// The kind of type that the tokens of an argument suggest. It only selects the message for a type that cannot be an
/// argument.
enum ArgumentLook<'a> {
    Data,
    /// Has the name of a type that the server provides by this reference, or is an `Option` of one.
    Provided(TokenStream),
    /// Has the name of a type that is made for each call.
    Injected,
    /// Has the name of a pointer or wrapper around state of this type.
    Shared(&'a Type),
    /// Has a trait object or a function pointer.
    Object,
}

fn argument_look(ty: &Type) -> ArgumentLook<'_> {
    if let Some((name, inner)) = generic_argument(ty) {
        let wrappers = ["Arc", "Rc", "Cell", "RefCell", "Mutex", "RwLock", "State", "Extension"];
        if wrappers.iter().any(|wrapper| name == wrapper) && !is_object(inner) {
            return ArgumentLook::Shared(inner);
        }
    }
    if is_object(ty) {
        return ArgumentLook::Object;
    }
    match option_inner(ty) {
        _ if is_named_like_provided(ty) => ArgumentLook::Provided(quote!(&#ty)),
        Some(inner) if is_named_like_provided(inner) => ArgumentLook::Provided(quote!(__rt::Option<&#inner>)),
        _ if generic_argument(ty).is_some_and(|(name, _)| name == "Claims") => ArgumentLook::Injected,
        _ => ArgumentLook::Data,
    }
}

/// Whether a type has the name of one that the server provides.
fn is_named_like_provided(ty: &Type) -> bool {
    let Type::Path(path) = peel(ty) else { return false };
    let last = path.path.segments.last().filter(|last| last.arguments.is_none());
    let provided = ["Context", "Principal", "ServerHandle"];
    last.is_some_and(|last| provided.iter().any(|name| last.ident == name))
}

/// The calls that set the options of an argument.
pub(super) fn argument_calls(argument: &Argument, ty: &Type, blocking: bool) -> TokenStream {
    let site = Span::mixed_site();
    let mut calls = TokenStream::new();
    if let Some(title) = &argument.title {
        calls.extend(quote_spanned!(site=> .title(#title)));
    }
    if let Some(description) = concatenate(&argument.description) {
        calls.extend(quote_spanned!(site=> .description(#description)));
    }
    for (method, value) in [("default", &argument.default), ("example", &argument.example)] {
        let Some(ArgumentValue { key, source }) = value else { continue };
        let key = hygienic_at(*key);
        let method = Ident::new(method, key);
        let function = value_function(source, ty, key);
        calls.extend(quote_spanned!(key=> .#method(#function)));
    }
    if !argument.rules.is_empty() {
        let mut rules: Vec<&Rule> = argument.rules.iter().collect();
        rules.sort_by_key(|rule| rule.cost());
        let rules = rules.into_iter().map(rule_call);
        calls.extend(quote_spanned!(site=> .rules(|__v, __c| { #(#rules)* })));
    }
    if let Some(header) = &argument.header {
        let is_exact = argument.rules.iter().any(Rule::is_exact_range);
        let method = if is_exact { "header_in_range" } else { "header" };
        let method = Ident::new(method, hygienic_at(header.span()));
        calls.extend(quote_spanned!(site=> .#method(#header)));
    }
    match &argument.completion {
        None => {}
        Some(Completion::List(list)) => {
            calls.extend(quote_spanned!(site=> .complete_list(&[#(#list),*])));
        }
        Some(Completion::Function(function)) => {
            let span = hygienic_at(function.span);
            let erased = erased_function("complete", function, span, blocking);
            calls.extend(quote_spanned!(span=> .complete(|| #erased)));
        }
    }
    if argument.raw {
        calls.extend(quote!(.raw()));
    }
    if argument.secret {
        calls.extend(quote!(.secret()));
    }
    calls
}

/// The function that an option names, without its type. Plain ones of a blocking item run on a thread, as it does.
fn erased_function(option: &str, function: &NamedFunction, span: Span, blocking: bool) -> TokenStream {
    let path = &function.path;
    if function.blocking {
        let erase = format_ident!("{option}_blocking", span = span);
        quote_spanned!(span=> __rt::#erase(#path))
    } else {
        let erase = Ident::new(option, span);
        quote_spanned!(span=> __rt::#erase(#path, #blocking))
    }
}

/// A function that returns the value; `key` is the span of its option.
fn value_function(source: &ValueSource, ty: &Type, key: Span) -> TokenStream {
    let site = Span::mixed_site();
    let value = match source {
        ValueSource::TypeDefault => {
            quote_spanned!(key=> __rt::Result::Ok(<#ty as __rt::Default>::default()))
        }
        ValueSource::String(text) => match option_inner(ty) {
            Some(inner) => {
                let converted = text_value(text, inner);
                quote_spanned!(site=> #converted.map(__rt::Option::Some))
            }
            None => text_value(text, ty),
        },
        ValueSource::Expr(expr) => quote_spanned! {site=>
            #[allow(clippy::unnecessary_wraps)]
            fn __typed() -> #ty { #expr }
            __rt::Result::Ok(__typed())
        },
    };
    quote_spanned! {site=>
        {
            #[allow(clippy::unnecessary_wraps, unused_imports)]
            fn __value() -> __rt::DeclaredResult<#ty> { use __rt::AnyTextValue as _; #value }
            __value
        }
    }
}

/// The value of a literal: of text, and of a duration if the type is one.
fn text_value(text: &LitStr, ty: &Type) -> TokenStream {
    let span = hygienic_at(text.span());
    let literal = match parse_milliseconds(&text.value()) {
        Some(milliseconds) => quote_spanned!(span=> __rt::DurationText(#text, #milliseconds)),
        None => text.to_token_stream(),
    };
    quote_spanned!(span=> __rt::TextValue::<#ty>::value(#literal))
}

/// A call that publishes and enforces a rule. Its span makes a rule that does not suit the type an error there.
fn rule_call(rule: &Rule) -> TokenStream {
    let span = hygienic_at(rule.key);
    let method = |name: &str| Ident::new(name, span);
    match &rule.constraint {
        Constraint::Range(bounds) => {
            let Bounds { start, end, inclusive } = &**bounds;
            let method = method("range");
            let (start, end) = (bound(start.as_ref(), true, span), bound(end.as_ref(), *inclusive, span));
            quote_spanned!(span=> __c.#method(__v, #start, #end);)
        }
        Constraint::Length { min, max } => {
            let method = method("length");
            let (min, max) = (option(min.as_ref(), span), option(max.as_ref(), span));
            quote_spanned!(span=> __c.#method(__v, #min, #max);)
        }
        Constraint::Pattern(pattern) => {
            let method = method("pattern");
            quote_spanned! {span=>
                {
                    static __P: __rt::Pattern = __rt::Pattern::new(#pattern);
                    __c.#method(__v, &__P);
                }
            }
        }
        Constraint::OneOf(choices) => {
            let method = method("one_of");
            quote_spanned!(span=> __c.#method(__v, &[#(#choices),*]);)
        }
    }
}

fn bound(expr: Option<&Expr>, inclusive: bool, span: Span) -> TokenStream {
    let Some(expr) = expr else { return quote_spanned!(span=> __rt::Bound::<__rt::NoBound>::Unbounded) };
    let variant = Ident::new(if inclusive { "Included" } else { "Excluded" }, span);
    quote_spanned!(span=> __rt::Bound::#variant(#expr))
}

pub(crate) fn option(value: Option<impl ToTokens>, span: Span) -> TokenStream {
    match value {
        None => quote_spanned!(span=> __rt::Option::None),
        Some(value) => quote_spanned!(span=> __rt::Option::Some(#value)),
    }
}

/// One expression of the parts of a text.
fn concatenate(parts: &[TokenStream]) -> Option<TokenStream> {
    match parts {
        [] => None,
        [one] => Some(one.clone()),
        more => Some(quote_spanned!(Span::mixed_site()=> __rt::concat!(#(#more),*))),
    }
}

impl Fields for CommonOptions {
    fn fields(&self, _: Option<&Type>, _: bool) -> TokenStream {
        let mut fields = TokenStream::new();
        push_option(&mut fields, "title", self.title.as_ref());
        push_option(&mut fields, "description", concatenate(&self.description).as_ref());
        if !self.icons.is_empty() {
            let icons = self.icons.iter().map(icon);
            // The `const` block promotes a type with a destructor to `'static`.
            fields.extend(quote!(icons: const { &[#(#icons),*] },));
        }
        push_option(&mut fields, "meta", self.meta.as_ref().map(|meta| &meta.json));
        push_strings(&mut fields, "scopes", &self.scopes);
        if !self.requires.is_empty() {
            let features = self.requires.iter().map(|word| variant(word));
            fields.extend(quote!(requires: &[#(__rt::ClientFeature::#features),*],));
        }
        if !self.layers.is_empty() {
            // each is bound at its own expression, so that a trait error points there
            let makers = self.layers.iter().map(|layer| {
                let span = hygienic_at(layer.span());
                quote_spanned!(span=> || __rt::layer(#layer))
            });
            fields.extend(quote!(layers: &[#(#makers),*],));
        }
        push_option(&mut fields, "rate", self.rate.map(|(times, period_ms)| quote!((#times, #period_ms))));
        push_option(&mut fields, "max_concurrency_per_caller", self.max_concurrency_per_caller.as_ref());
        push_option(&mut fields, "max_result", self.max_result);
        fields
    }
}

fn icon(icon: &Icon) -> TokenStream {
    let Icon { src, mime, sizes, theme } = icon;
    let site = Span::call_site();
    let mime = option(mime.as_ref(), site);
    let theme = theme.map(variant);
    let theme = option(theme.map(|theme| quote!(__rt::Theme::#theme)), site);
    quote!(__rt::icon(#src, #mime, &[#(__rt::Cow::Borrowed(#sizes)),*], #theme))
}

fn push_option(fields: &mut TokenStream, field: &str, value: Option<impl ToTokens>) {
    if let Some(value) = value {
        let field = Ident::new(field, Span::mixed_site());
        fields.extend(quote!(#field: __rt::Option::Some(#value),));
    }
}

fn push_strings(fields: &mut TokenStream, field: &str, strings: &[LitStr]) {
    if !strings.is_empty() {
        let field = Ident::new(field, Span::mixed_site());
        fields.extend(quote!(#field: &[#(#strings),*],));
    }
}

impl Fields for ToolOptions {
    fn fields(&self, output: Option<&Type>, _: bool) -> TokenStream {
        let mut fields = TokenStream::new();
        for hint in &self.hints {
            push_option(&mut fields, &hint.name, Some(hint.value));
        }
        push_option(&mut fields, "timeout_ms", self.timeout.as_ref().map(|timeout| timeout.milliseconds));
        push_option(&mut fields, "max_concurrency", self.max_concurrency.as_ref());
        push_strings(&mut fields, "tags", &self.tags);
        if self.strict {
            fields.extend(quote!(strict: true,));
        }
        push_option(&mut fields, "ui", self.ui.resource.as_ref());
        if !self.ui.visibility.is_empty() {
            let visibility = &self.ui.visibility;
            fields.extend(quote!(visibility: &[#(#visibility),*],));
        }
        let task = self.task.map(|task| {
            let mode = match task.mode {
                TaskMode::Capable => quote!(Capable),
                TaskMode::Required => quote!(Required),
                TaskMode::Manual => quote!(Manual),
            };
            let restarts = task.restart.is_some();
            let span = hygienic_at(task.key);
            quote_spanned! {span=>
                __rt::needs_tasks!(__rt::ToolTask { mode: __rt::TaskMode::#mode, restarts: #restarts })
            }
        });
        push_option(&mut fields, "task", task);
        if let Some(declared) = &self.output {
            let span = declared.span();
            let returned = output.cloned().unwrap_or_else(|| unit(span));
            fields.extend(quote_spanned! {hygienic_at(span)=>
                output_type: __rt::Option::Some(__rt::OutputType::of::<#declared, #returned>()),
            });
        }
        fields
    }
}

impl Fields for ResourceOptions {
    fn fields(&self, _: Option<&Type>, blocking: bool) -> TokenStream {
        let mut fields = TokenStream::new();
        if let UriOption::Template(uri) = &self.uri {
            push_option(&mut fields, "uri", Some(&uri.text));
        }
        push_option(&mut fields, "mime", self.mime.as_ref());
        push_strings(&mut fields, "audience", &self.audience);
        push_option(&mut fields, "priority", self.priority.map(Literal::f32_unsuffixed));
        push_option(&mut fields, "size", self.size.as_ref().map(|size| size.bytes));
        if let Some(Cache { ttl_ms, public, .. }) = self.cache {
            push_option(&mut fields, "cache", Some(quote!((#ttl_ms, #public))));
        }
        push_option(&mut fields, "ui", self.ui.as_ref().and_then(|ui| ui.json.as_ref()));
        if let Some(ResourceFunction { function, key }) = &self.list {
            let span = hygienic_at(*key);
            let erased = erased_function("list", function, span, blocking);
            fields.extend(quote_spanned!(span=> list: __rt::Option::Some(|| #erased),));
        }
        if let Some(ResourceFunction { function: NamedFunction { path, .. }, key }) = &self.subscribe {
            let span = hygienic_at(*key);
            fields.extend(quote_spanned!(span=> subscribe: __rt::Option::Some(|| __rt::subscribe(#path)),));
        }
        fields
    }
}

impl Fields for PromptOptions {}

impl Fields for EventOptions {
    fn fields(&self, _: Option<&Type>, _: bool) -> TokenStream {
        if self.deliver.is_empty() {
            return TokenStream::new();
        }
        let modes = self.deliver.iter().map(|word| variant(word));
        quote!(deliver: &[#(__rt::Delivery::#modes),*],)
    }
}
