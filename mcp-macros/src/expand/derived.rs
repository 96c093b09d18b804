//! The derives of `#[mcp_type]`, on a copy of the type whose fields are checked first; see `derived` in the runtime's
//! `schema`. Types that a copy could not describe have the derives themselves.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Field, Fields, Generics, Item, LitStr, Meta, Path, Token, Type, Visibility};

use crate::expand::definition::private_scope;
use crate::expand::idents::{hygienic_at, private_module, runtime};
use crate::syntax::function::cfgs;
use crate::syntax::types::{has_ident, is_duration, leaf, option_inner, replace_self, tells_null};
use crate::syntax::wire_names;

/// The attributes that the derives read, or that change what the copy consists of.
const COPIED: [&str; 7] = ["serde", "schemars", "validate", "garde", "doc", "cfg", "repr"];
/// Options that make serde ignore the fields of a type, or use nothing else of it.
const OPAQUE: [&str; 7] = ["remote", "from", "try_from", "into", "transparent", "bound", "getter"];
/// Options of fields and variants whose types need not be sent.
const UNCHECKED: [&str; 7] = [
    "skip",
    "skip_serializing",
    "skip_deserializing",
    "with",
    "serialize_with",
    "deserialize_with",
    "schema_with",
];

/// The derives of a type that is emitted by itself, and the impls that replace them; `None` if the type must have the
/// derives itself. Without `is_valid`, nothing is derived, and the impls are there only to be named.
pub(crate) fn derive_on_copy(item: &Item, krate: Option<&Path>, is_valid: bool) -> Option<TokenStream> {
    let (attrs, name, generics) = match item {
        Item::Struct(item) => (&item.attrs, &item.ident, &item.generics),
        Item::Enum(item) => (&item.attrs, &item.ident, &item.generics),
        _ => return None,
    };
    // schemars would take the name of the type instead of one that serde gives it
    let is_renamed =
        attrs.iter().any(|attr| !attr.path().is_ident("schemars") && has_word_in(attr, &["rename"]));
    if !is_plain(generics) || has_word(attrs, &OPAQUE) || is_renamed || mentions_self(item) {
        return None;
    }
    let mut copy = item.clone();
    let copy_name = format_ident!("__Mcp{}", name.unraw(), span = name.span());
    let checks = match &mut copy {
        Item::Struct(copy) => {
            copy.ident = copy_name.clone();
            copy.vis = Visibility::Inherited;
            copy_attrs(&mut copy.attrs)?;
            let checks = copy_fields(&mut copy.fields, name, true)?;
            set_forms(&mut copy.fields, has_word(&copy.attrs, &["default"]));
            checks
        }
        Item::Enum(copy) => {
            copy.ident = copy_name.clone();
            copy.vis = Visibility::Inherited;
            copy_attrs(&mut copy.attrs)?;
            let mut checks = TokenStream::new();
            for variant in &mut copy.variants {
                let is_checked = !has_word(&variant.attrs, &UNCHECKED);
                let cfgs = cfgs(&variant.attrs);
                copy_attrs(&mut variant.attrs)?;
                let fields = copy_fields(&mut variant.fields, name, is_checked)?;
                set_forms(&mut variant.fields, false);
                checks.extend(quote_spanned!(Span::mixed_site()=> #(#cfgs)* { #fields }));
            }
            checks
        }
        _ => return None,
    };
    let aliased = if is_valid { aliased_copy(&copy, name, krate) } else { None };
    let impls = impls(name, &copy_name, aliased.as_ref().map(|(name, _)| name));
    let aliased = aliased.map(|(_, copy)| copy);
    let copy = if is_valid { derived_copy(copy, name, krate, &checks) } else { empty_copy(&copy_name) };
    let inner = quote_spanned! {Span::mixed_site()=>
        // the derives call `.into()`, also where nothing is in scope
        #[allow(unused_imports)]
        use __rt::{AnyAsText as _, Into as _, NotDerived as _, SchemaNotDerived as _};
        #copy
        #aliased
        #impls
    };
    Some(private_scope(krate, &cfgs(attrs), &inner))
}

/// Impls that are there only to be named, for a type that cannot be described.
pub(crate) fn undescribed(name: &Ident, krate: Option<&Path>) -> TokenStream {
    let copy_name = format_ident!("__Mcp{}", name.unraw(), span = name.span());
    let (copy, impls) = (empty_copy(&copy_name), impls(name, &copy_name, None));
    let inner = quote_spanned! {Span::mixed_site()=>
        #[allow(unused_imports)]
        use __rt::{NotDerived as _, SchemaNotDerived as _};
        #copy
        #impls
    };
    private_scope(krate, &[], &inner)
}

/// The derives of a type that is emitted below them.
pub(crate) fn derives(krate: Option<&Path>, without: &[&str]) -> TokenStream {
    // the derives use the span of their own path for some variables, and that of the user's attributes for others, so
    // that both must be resolved at the same place
    let private = match krate {
        Some(_) => private_module(krate),
        None => {
            let name = runtime(Span::call_site());
            quote!(::#name::__private)
        }
    };
    let text = private.to_string().replace(' ', "");
    let (serde, schemars) = (format!("{text}::serde"), format!("{text}::schemars"));
    let all = [("Serialize", "serde"), ("Deserialize", "serde"), ("JsonSchema", "schemars")];
    let derives = all.into_iter().filter(|(name, _)| !without.contains(name)).map(|(name, krate)| {
        let (name, krate) = (format_ident!("{name}"), format_ident!("{krate}"));
        quote!(#private::#krate::#name)
    });
    quote! {
        #[derive(#(#derives),*)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
    }
}

fn derived_copy(mut copy: Item, name: &Ident, krate: Option<&Path>, checks: &TokenStream) -> TokenStream {
    let site = Span::mixed_site();
    let derives = derives(krate, &[]);
    let remote = LitStr::new(&name.to_string(), name.span());
    let wire_name = name.unraw().to_string();
    check_fields(&mut copy, name);
    quote_spanned! {site=>
        const __FIELDS: usize = { #checks 1 };
        #derives
        #[serde(remote = #remote, rename = #wire_name)]
        #[allow(dead_code, nonstandard_style, clippy::all, clippy::pedantic)]
        #copy
    }
}

/// Lets a copy have its impls only if its fields have been checked, and gives it the default of the type.
fn check_fields(copy: &mut Item, name: &Ident) {
    let clause = syn::parse2(quote_spanned! {Span::mixed_site()=>
        where <[(); __FIELDS] as __rt::Checked>::Unit:
            __rt::serde::Serialize + __rt::serde::de::DeserializeOwned + __rt::schemars::JsonSchema
    });
    match copy {
        Item::Struct(copy) => {
            copy.generics.where_clause = clause.ok();
            name_default(&mut copy.attrs, name);
        }
        Item::Enum(copy) => copy.generics.where_clause = clause.ok(),
        _ => {}
    }
}

/// One more copy, with a schema alone, in which the aliases of fields and variants are listed; `None` if there are none. See
/// `aliases` in the runtime's `schema`.
fn aliased_copy(copy: &Item, name: &Ident, krate: Option<&Path>) -> Option<(Ident, TokenStream)> {
    let mut copy = copy.clone();
    let copy_name = format_ident!("__McpAliased{}", name.unraw(), span = name.span());
    let mut found = false;
    match &mut copy {
        Item::Struct(copy) => {
            copy.ident = copy_name.clone();
            found |= list_field_aliases(&mut copy.fields);
        }
        Item::Enum(copy) => {
            copy.ident = copy_name.clone();
            let is_untagged = has_word(&copy.attrs, &["untagged"]);
            let tag = wire_names::tag(&copy.attrs).unwrap_or_default();
            for variant in &mut copy.variants {
                found |= list_field_aliases(&mut variant.fields);
                let aliases = wire_names::aliases(&variant.attrs);
                if !aliases.is_empty() && !is_untagged && !has_word(&variant.attrs, &["untagged"]) {
                    variant
                        .attrs
                        .push(syn::parse_quote!(#[schemars(extend("x-mcp-variant-aliases" = [#tag, #(#aliases),*]))]));
                    found = true;
                }
            }
        }
        _ => {}
    }
    if !found {
        return None;
    }
    check_fields(&mut copy, name);
    let derives = derives(krate, &["Serialize", "Deserialize"]);
    let wire_name = name.unraw().to_string();
    let copy = quote_spanned! {Span::mixed_site()=>
        #derives
        #[serde(rename = #wire_name)]
        #[allow(dead_code, nonstandard_style, clippy::all, clippy::pedantic)]
        #copy
    };
    Some((copy_name, copy))
}

fn list_field_aliases(fields: &mut Fields) -> bool {
    let mut found = false;
    for field in fields {
        let aliases = wire_names::aliases(&field.attrs);
        if !aliases.is_empty() {
            field.attrs.push(syn::parse_quote!(#[schemars(extend("x-mcp-field-aliases" = [#(#aliases),*]))]));
            found = true;
        }
    }
    found
}

fn empty_copy(copy_name: &Ident) -> TokenStream {
    quote_spanned!(Span::mixed_site()=> #[allow(dead_code, nonstandard_style)] struct #copy_name;)
}

/// `#[serde(default)]` on a struct means the default of the type, not of the copy.
fn name_default(attrs: &mut [Attribute], name: &Ident) {
    for attr in attrs.iter_mut().filter(|attr| attr.path().is_ident("serde")) {
        let Ok(list) = attr.meta.require_list() else { continue };
        let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
        let Ok(metas) = parser.parse2(list.tokens.clone()) else { continue };
        let function = format!("<{name} as ::core::default::Default>::default");
        let metas = metas.iter().map(|meta| match meta {
            Meta::Path(path) if path.is_ident("default") => {
                quote!(default = #function)
            }
            other => other.to_token_stream(),
        });
        *attr = syn::parse_quote!(#[serde(#(#metas),*)]);
    }
}

/// The impls of the type, which call those of the copy.
fn impls(name: &Ident, copy: &Ident, aliased: Option<&Ident>) -> TokenStream {
    let aliased = aliased.map(|aliased| {
        quote_spanned! {Span::mixed_site()=>
            if __rt::lists_aliases(__g) {
                return __rt::SchemaOf::<#aliased>::json_schema(__g);
            }
        }
    });
    quote_spanned! {Span::mixed_site()=>
        #[automatically_derived]
        impl __rt::serde::Serialize for #name {
            fn serialize<__S: __rt::serde::Serializer>(
                &self,
                __s: __S,
            ) -> __rt::Result<__S::Ok, __S::Error> {
                #copy::serialize(self, __s)
            }
        }
        #[automatically_derived]
        impl<'__de> __rt::serde::Deserialize<'__de> for #name {
            fn deserialize<__D: __rt::serde::Deserializer<'__de>>(__d: __D) -> __rt::Result<Self, __D::Error> {
                #copy::deserialize(__d)
            }
        }
        #[automatically_derived]
        impl __rt::schemars::JsonSchema for #name {
            fn schema_name() -> __rt::Cow<'static, str> {
                __rt::SchemaOf::<#copy>::schema_name()
            }
            fn schema_id() -> __rt::Cow<'static, str> {
                __rt::SchemaOf::<#copy>::schema_id()
            }
            fn inline_schema() -> bool {
                __rt::SchemaOf::<#copy>::inline_schema()
            }
            fn json_schema(__g: &mut __rt::schemars::SchemaGenerator) -> __rt::schemars::Schema {
                #aliased
                __rt::SchemaOf::<#copy>::json_schema(__g)
            }
        }
    }
}

/// Prepares fields for the copy; returns a check of each.
fn copy_fields(fields: &mut Fields, name: &Ident, are_checked: bool) -> Option<TokenStream> {
    let mut checks = TokenStream::new();
    let self_ty = Type::Verbatim(name.to_token_stream());
    for field in fields.iter_mut() {
        if has_ident(field.ty.to_token_stream(), &|ident| ident == "Self") {
            field.ty = syn::parse2(replace_self(field.ty.to_token_stream(), &self_ty)).ok()?;
        }
        if are_checked && !has_word(&field.attrs, &UNCHECKED) {
            checks.extend(check(field));
        }
        if has_word(&field.attrs, &OPAQUE) {
            return None;
        }
        field.vis = Visibility::Inherited;
        copy_attrs(&mut field.attrs)?;
    }
    Some(checks)
}

/// Lets `null` differ from absence in fields that are spelled `Option<Option<T>>`, and durations be text in those that are
/// spelled so, unless an attribute says how they are read; `has_default` if absent ones have the default of the struct.
fn set_forms(fields: &mut Fields, has_default: bool) {
    let has_form = [&UNCHECKED[..], &["flatten"]].concat();
    for field in fields.iter_mut().filter(|field| !has_word(&field.attrs, &has_form)) {
        let (is_named, ty) = (field.ident.is_some(), field.ty.to_token_stream());
        let attrs: Vec<Attribute> = if is_named && tells_null(&field.ty) {
            if !has_word(&field.attrs, &["skip_serializing_if"]) {
                field.attrs.push(syn::parse_quote!(#[serde(skip_serializing_if = "__rt::Option::is_none")]));
            }
            vec![
                syn::parse_quote!(#[serde(deserialize_with = "__rt::nullable")]),
                syn::parse_quote!(#[schemars(extend("x-mcp-null" = true))]),
            ]
        } else if is_duration(&field.ty) {
            let [reads, writes, schema] = ["read_field", "write_field", "field_schema"]
                .map(|function| format!("__rt::AsText::<{ty}>::{function}"));
            vec![
                syn::parse_quote!(#[serde(deserialize_with = #reads, serialize_with = #writes)]),
                syn::parse_quote!(#[schemars(schema_with = #schema)]),
            ]
        } else {
            continue;
        };
        let is_optional = is_named && option_inner(&field.ty).is_some();
        if is_optional && !has_default && !has_word(&field.attrs, &["default"]) {
            field.attrs.push(syn::parse_quote!(#[serde(default)]));
        }
        field.attrs.extend(attrs);
    }
}

fn check(field: &Field) -> TokenStream {
    let (ty, cfgs) = (&field.ty, cfgs(&field.attrs));
    let (span, leaf) = (hygienic_at(ty.span()), leaf(ty));
    quote_spanned!(span=> #(#cfgs)* __rt::field::<#ty, #leaf>();)
}

/// Keeps what the derives read; `None` if an attribute cannot be divided.
fn copy_attrs(attrs: &mut Vec<Attribute>) -> Option<()> {
    let mut is_divisible = true;
    attrs.retain(|attr| {
        if !attr.path().is_ident("cfg_attr") {
            return COPIED.iter().any(|name| attr.path().is_ident(name));
        }
        let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
        let metas = attr.meta.require_list().ok().and_then(|list| parser.parse2(list.tokens.clone()).ok());
        let Some(metas) = metas else {
            is_divisible = false;
            return false;
        };
        // the first is the condition
        let conditional = metas.iter().skip(1);
        let copied = conditional.clone().filter(|meta| COPIED.iter().any(|name| meta.path().is_ident(name)));
        let (copied, all) = (copied.count(), conditional.count());
        is_divisible &= copied == 0 || copied == all;
        copied > 0
    });
    is_divisible.then_some(())
}

fn is_plain(generics: &Generics) -> bool {
    generics.params.is_empty() && generics.where_clause.is_none()
}

/// Whether an attribute of serde or schemars, conditional or not, has one of these options.
fn has_word(attrs: &[Attribute], words: &[&str]) -> bool {
    attrs.iter().any(|attr| has_word_in(attr, words))
}

fn has_word_in(attr: &Attribute, words: &[&str]) -> bool {
    let is_relevant = ["serde", "schemars", "cfg_attr"].iter().any(|name| attr.path().is_ident(name));
    let tokens = attr.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default();
    is_relevant && has_ident(tokens, &|ident| words.iter().any(|word| ident == word))
}

/// Whether an attribute names `Self`, which would be the copy.
fn mentions_self(item: &Item) -> bool {
    all_attrs(item).into_iter().any(|attr| {
        let is_read = ["serde", "schemars", "cfg_attr"].iter().any(|name| attr.path().is_ident(name));
        is_read && attr.to_token_stream().to_string().contains("Self")
    })
}

/// The attributes of a type, its variants and its fields.
fn all_attrs(item: &Item) -> Vec<&Attribute> {
    match item {
        Item::Struct(item) => {
            item.attrs.iter().chain(item.fields.iter().flat_map(|field| &field.attrs)).collect()
        }
        Item::Enum(item) => {
            let variants = item.variants.iter().flat_map(|variant| {
                variant.attrs.iter().chain(variant.fields.iter().flat_map(|field| &field.attrs))
            });
            item.attrs.iter().chain(variants).collect()
        }
        _ => Vec::new(),
    }
}

/// A derive that generates nothing: it lets other derives of the type read the attributes of serde and schemars.
pub(crate) fn attributes_derive(krate: Option<&Path>) -> TokenStream {
    let private = private_module(krate);
    quote!(#[derive(#private::TypeAttributes)])
}
