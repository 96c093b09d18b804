//! The descriptor of an item, `static __DEF`, and its registration. Each call of the descriptor's builder has the
//! span of the option that causes it, so that a trait error points there.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, LitStr, Path, Type};

use crate::expand::handler;
use crate::expand::idents::{
    argument_constant, hygienic_at, maker_constant, marker_module, private_module, variant,
};
use crate::model::argument::{Argument, ArgumentValue, Completion, ValueSource};
use crate::model::icon::Icon;
use crate::model::item::{CommonOptions, Item, ItemOptions};
use crate::model::kind::Kind;
use crate::model::marker::Marker;
use crate::model::params::{Param, Source};
use crate::model::prompt::PromptOptions;
use crate::model::resource::{Cache, ResourceFunction, ResourceOptions, UriOption};
use crate::model::rule::{Bounds, Constraint, Rule};
use crate::model::tool::{TaskMode, ToolOptions};
use crate::syntax::function::Function;
use crate::syntax::types::{option_inner, type_to_string};

/// Options as calls of the builder of the kind's descriptor.
pub(crate) trait BuilderCalls {
    /// `output` is the return type of the function, if it has one.
    fn builder_calls(&self, output: Option<&Type>) -> TokenStream;
}

/// A braced struct, which occupies the type namespace only, for `.tool::<name>()`; nothing if the item has no marker.
///
/// A struct with the function's name is brought in by a glob import, which gives way to a module, import or type of
/// that name.
pub(crate) fn marker(function: &Function, marker: &Marker) -> TokenStream {
    let (vis, shared, cfgs) = (&function.vis, function.shared_attrs(), function.cfgs());
    let ident = &function.sig.ident;
    match marker {
        Marker::Named(name) => quote_spanned! {Span::mixed_site()=>
            #(#shared)*
            #[doc(hidden)]
            #[allow(unreachable_pub, dead_code)]
            #vis struct #name {}
        },
        marker if marker.is_function_name(function) => {
            let module = marker_module(ident);
            quote_spanned! {Span::mixed_site()=>
                #(#cfgs)*
                #[doc(hidden)]
                #[allow(non_snake_case)]
                mod #module {
                    #(#shared)*
                    #[doc(hidden)]
                    #[allow(non_camel_case_types, unreachable_pub, dead_code)]
                    pub struct #ident {}
                }
                #(#cfgs)*
                #[doc(hidden)]
                #[allow(unused_imports, unreachable_pub)]
                #vis use #module::*;
            }
        }
        _ => TokenStream::new(),
    }
}

/// Imports the marker as `__Marker`.
fn import_marker(function: &Function, marker: &Marker) -> Option<TokenStream> {
    let ident = &function.sig.ident;
    match marker {
        Marker::Named(name) => Some(quote_spanned!(Span::mixed_site()=> use #name as __Marker;)),
        marker if marker.is_function_name(function) => {
            let module = marker_module(ident);
            Some(quote_spanned!(Span::mixed_site()=> use #module::#ident as __Marker;))
        }
        _ => None,
    }
}

/// Implements the runtime's trait for the marker and submits the descriptor to discovery.
pub(crate) fn registration<O: ItemOptions + BuilderCalls>(
    function: &Function,
    item: &Item<O>,
) -> TokenStream {
    let prefix = type_prefix(O::KIND);
    let submit =
        quote_spanned!(Span::mixed_site()=> __rt::inventory::submit! { __rt::Linked::#prefix(&__DEF) });
    link(function, item, &definition(item), Some(&submit))
}

/// Implements the runtime's trait for the marker of an item with errors, so that naming it is not another error.
/// Discovery does not find it.
pub(crate) fn invalid_registration<O: ItemOptions>(function: &Function, item: &Item<O>) -> TokenStream {
    let def = format_ident!("{}Def", O::KIND.type_prefix(), span = Span::mixed_site());
    let definition = quote_spanned!(Span::mixed_site()=> static __DEF: __rt::#def = __rt::#def::invalid(););
    link(function, item, &definition, None)
}

fn link<O: ItemOptions>(
    function: &Function,
    item: &Item<O>,
    definition: &TokenStream,
    submit: Option<&TokenStream>,
) -> TokenStream {
    let prefix = type_prefix(O::KIND);
    let def = format_ident!("{}Def", prefix);
    let marker = import_marker(function, &item.common.marker).map(|import| {
        quote_spanned! {Span::mixed_site()=>
            #import
            impl __rt::#prefix for __Marker { const DEF: &'static __rt::#def = &__DEF; }
        }
    });
    let inner = quote_spanned! {Span::mixed_site()=>
        #definition
        #marker
        #submit
    };
    private_scope(item.common.krate.as_ref(), &function.shared_attrs(), &inner)
}

/// A constant with the item of a service.
pub(crate) fn service_item<O: ItemOptions + BuilderCalls>(
    item: &Item<O>,
    name: &Ident,
    attrs: &[TokenStream],
) -> TokenStream {
    let prefix = type_prefix(O::KIND);
    let definition = definition(item);
    let block = quote!({ #definition &__DEF });
    quote_spanned! {Span::mixed_site()=>
        #(#attrs)*
        #[allow(deprecated)]
        const #name: __rt::Linked = __rt::Linked::#prefix(#block);
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

/// The constants of arguments, injected values and output, and `static __DEF`.
fn definition<O: ItemOptions + BuilderCalls>(item: &Item<O>) -> TokenStream {
    let site = Span::mixed_site();
    let kind = O::KIND;
    let prefix = type_prefix(kind);
    let (def, out) = (format_ident!("{}Def", prefix), format_ident!("{}Out", prefix));
    let output = item.output.clone().unwrap_or_else(|| unit(item.ident.span()));
    let output_span = hygienic_at(output.span());
    let convert = format_ident!("{}_out", kind.noun(), span = output_span);
    let constants = item.params.iter().filter_map(|param| {
        let constant = describe_argument(param.argument()?, &argument_constant(param), &param.ty, kind);
        let cfg = param.cfg_attr();
        Some(quote_spanned!(site=> #cfg #constant))
    });
    let arguments = item.params.iter().filter(|param| param.argument().is_some()).map(|param| {
        let (cfg, name) = (param.cfg_attr(), argument_constant(param));
        quote_spanned!(site=> #cfg &#name)
    });
    let injections: Vec<TokenStream> = item.params.iter().filter_map(describe_injection).collect();
    let injects = (!injections.is_empty()).then(|| quote_spanned!(site=> .injects(&[#(#injections),*])));
    let makers = item.params.iter().filter(|param| matches!(param.source, Source::Injected)).map(|param| {
        let (cfg, name, ty) = (param.cfg_attr(), maker_constant(param), &param.ty);
        let span = hygienic_at(ty.span());
        quote_spanned!(span=> #cfg const #name: __rt::Maker<#ty> = __rt::maker::<#ty>();)
    });
    let import = (!injections.is_empty())
        .then(|| quote_spanned!(site=> #[allow(unused_imports)] use __rt::ProbeDyn as _;));
    let output_type =
        quote_spanned!(output_span=> const __OUT: __rt::#out<#output> = __rt::#convert::<#output>(););
    let name = &item.name;
    let location = location(item);
    let common_calls = item.common.builder_calls(item.output.as_ref());
    let own_calls = item.options.builder_calls(item.output.as_ref());
    let handler = handler::closure(item);
    quote_spanned! {site=>
        #import
        #(#constants)*
        #(#makers)*
        #output_type
        static __DEF: __rt::#def = __rt::#def::new(#name, #location)
            #common_calls
            #own_calls
            .args(&[#(#arguments),*])
            #injects
            .output(&__OUT)
            .handler(#handler);
    }
}

fn unit(span: Span) -> Type {
    Type::Verbatim(quote_spanned!(hygienic_at(span)=> ()))
}

/// The source location of an item. The built-in macros would give all methods of a service that of its attribute.
fn location<O>(item: &Item<O>) -> TokenStream {
    let site = Span::mixed_site();
    let (mut line, mut column) =
        (quote_spanned!(site=> __rt::line!()), quote_spanned!(site=> __rt::column!()));
    if item.self_ty.is_some() && proc_macro::is_available() {
        let literal = |value: usize| u32::try_from(value).ok().map(Literal::u32_unsuffixed);
        let span = item.ident.span().unwrap();
        line = literal(span.line()).map_or(line, ToTokens::into_token_stream);
        column = literal(span.column()).map_or(column, ToTokens::into_token_stream);
    }
    quote_spanned!(site=> __rt::Location::new(__rt::file!(), #line, #column, __rt::module_path!()))
}

fn describe_injection(param: &Param) -> Option<TokenStream> {
    let Source::Reference { optional } = &param.source else { return None };
    let (cfg, ty, text) = (param.cfg_attr(), &param.ty, type_to_string(&param.ty));
    let span = hygienic_at(ty.span());
    let constructor = Ident::new(if *optional { "optional" } else { "of" }, span);
    Some(quote_spanned!(span=> #cfg __rt::Inject::#constructor::<#ty>(#text)))
}

/// `const __A0: __rt::ArgDef<T> = ..;`
fn describe_argument(argument: &Argument, name: &Ident, ty: &Type, kind: Kind) -> TokenStream {
    let span = hygienic_at(ty.span());
    let sent = &argument.name;
    let constructor = match (argument.flatten, kind) {
        (Some(_), _) => "flatten",
        (None, Kind::Tool) => "json",
        (None, Kind::Resource | Kind::Prompt) => "text",
    };
    let constructor = Ident::new(constructor, span);
    let calls = argument_calls(argument, ty);
    quote_spanned!(span=> const #name: __rt::ArgDef<#ty> = __rt::#constructor::<#ty>(#sent)#calls;)
}

fn argument_calls(argument: &Argument, ty: &Type) -> TokenStream {
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
        let rules = argument.rules.iter().map(rule_call);
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
        Some(Completion::Function { path, span }) => {
            let span = hygienic_at(*span);
            calls.extend(quote_spanned!(span=> .complete(|__x| __rt::complete(#path, __x))));
        }
    }
    if argument.raw {
        calls.extend(quote!(.raw()));
    }
    calls
}

/// A function that returns the value; `key` is the span of its option.
fn value_function(source: &ValueSource, ty: &Type, key: Span) -> TokenStream {
    let value = match source {
        ValueSource::TypeDefault => return quote_spanned!(key=> <#ty as __rt::Default>::default),
        ValueSource::String(text) => {
            let converted = quote_spanned!(hygienic_at(text.span())=> __rt::Into::into(#text));
            match option_inner(ty) {
                Some(_) => quote_spanned!(Span::mixed_site()=> __rt::Option::Some(#converted)),
                None => converted,
            }
        }
        ValueSource::Expr(expr) => expr.to_token_stream(),
    };
    quote_spanned! {Span::mixed_site()=>
        { #[allow(clippy::unnecessary_wraps)] fn __value() -> #ty { #value } __value }
    }
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
    let Some(expr) = expr else { return quote_spanned!(span=> __rt::Bound::Unbounded) };
    let variant = Ident::new(if inclusive { "Included" } else { "Excluded" }, span);
    quote_spanned!(span=> __rt::Bound::#variant(#expr))
}

fn option(value: Option<impl ToTokens>, span: Span) -> TokenStream {
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

impl BuilderCalls for CommonOptions {
    fn builder_calls(&self, _: Option<&Type>) -> TokenStream {
        let mut calls = TokenStream::new();
        if let Some(title) = &self.title {
            calls.extend(quote!(.title(#title)));
        }
        if let Some(description) = concatenate(&self.description) {
            calls.extend(quote!(.description(#description)));
        }
        if !self.icons.is_empty() {
            let icons = self.icons.iter().map(icon);
            // The `const` block promotes a type with a destructor to `'static`.
            calls.extend(quote!(.icons(const { &[#(#icons),*] })));
        }
        if let Some(meta) = &self.meta {
            let json = &meta.json;
            calls.extend(quote!(.meta(#json)));
        }
        push_strings(&mut calls, "scopes", &self.scopes);
        if !self.requires.is_empty() {
            let features = self.requires.iter().map(|word| variant(word));
            calls.extend(quote!(.requires(&[#(__rt::ClientFeature::#features),*])));
        }
        calls
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

fn push_strings(calls: &mut TokenStream, method: &str, strings: &[LitStr]) {
    if !strings.is_empty() {
        let method = Ident::new(method, Span::call_site());
        calls.extend(quote!(.#method(&[#(#strings),*])));
    }
}

impl BuilderCalls for ToolOptions {
    fn builder_calls(&self, output: Option<&Type>) -> TokenStream {
        let mut calls = TokenStream::new();
        for hint in &self.hints {
            let (method, value) = (Ident::new(&hint.name, Span::mixed_site()), hint.value);
            calls.extend(quote!(.#method(#value)));
        }
        if let Some(timeout) = &self.timeout {
            let milliseconds = timeout.milliseconds;
            calls.extend(quote!(.timeout_ms(#milliseconds)));
        }
        if let Some(limit) = &self.max_concurrency {
            calls.extend(quote!(.max_concurrency(#limit)));
        }
        push_strings(&mut calls, "tags", &self.tags);
        if self.strict {
            calls.extend(quote!(.strict()));
        }
        if self.unlisted {
            calls.extend(quote!(.unlisted()));
        }
        if let Some(page) = &self.ui.resource {
            calls.extend(quote!(.ui(#page)));
        }
        if !self.ui.visibility.is_empty() {
            let visibility = &self.ui.visibility;
            calls.extend(quote!(.visibility(&[#(#visibility),*])));
        }
        if let Some((_, mode)) = self.task {
            let mode = match mode {
                TaskMode::Capable => "Capable",
                TaskMode::Required => "Required",
                TaskMode::Manual => "Manual",
            };
            let mode = Ident::new(mode, Span::mixed_site());
            calls.extend(quote_spanned!(Span::mixed_site()=> .task(__rt::TaskMode::#mode)));
        }
        if let Some(declared) = &self.output {
            let span = declared.span();
            let returned = output.cloned().unwrap_or_else(|| unit(span));
            calls.extend(quote_spanned! {hygienic_at(span)=>
                .output_type(__rt::OutputType::of::<#declared, #returned>())
            });
        }
        calls
    }
}

impl BuilderCalls for ResourceOptions {
    fn builder_calls(&self, _: Option<&Type>) -> TokenStream {
        let mut calls = TokenStream::new();
        if let UriOption::Template(uri) = &self.uri {
            let text = &uri.text;
            calls.extend(quote!(.uri(#text)));
        }
        if let Some(mime) = &self.mime {
            calls.extend(quote!(.mime(#mime)));
        }
        push_strings(&mut calls, "audience", &self.audience);
        if let Some(priority) = self.priority {
            let priority = Literal::f32_unsuffixed(priority);
            calls.extend(quote!(.priority(#priority)));
        }
        if let Some(size) = &self.size {
            let bytes = size.bytes;
            calls.extend(quote!(.size(#bytes)));
        }
        if let Some(Cache { ttl_ms, public }) = self.cache {
            calls.extend(quote!(.cache(#ttl_ms, #public)));
        }
        if let Some(json) = self.ui.as_ref().and_then(|ui| ui.json.as_ref()) {
            calls.extend(quote!(.ui(#json)));
        }
        if let Some(ResourceFunction { path, key }) = &self.list {
            calls.extend(quote_spanned!(hygienic_at(*key)=> .list(|__x| __rt::list(#path, __x))));
        }
        if let Some(ResourceFunction { path, key }) = &self.subscribe {
            calls.extend(quote_spanned!(hygienic_at(*key)=> .subscribe(|__x| __rt::subscribe(#path, __x))));
        }
        calls
    }
}

impl BuilderCalls for PromptOptions {
    fn builder_calls(&self, _: Option<&Type>) -> TokenStream {
        TokenStream::new()
    }
}
