//! `#[mcp_service]`: the annotated methods of an `impl` block as one list of items.
//!
//! Called by `lib`, and by `item` when another attribute is on an `impl`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Generics, Meta, ReceiverKind, Signature, Token, Type, Visibility, WhereClause};

use crate::attr;
use crate::errors::Errors;
use crate::expand;
use crate::item::{self, Function, last_segment};
use crate::kind::{Item, Kind, Place};
use crate::misplaced;
use crate::prompt::Prompt;
use crate::resource::Resource;
use crate::tool::Tool;
use crate::ty;

pub(crate) fn expand(options: TokenStream, block: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    let krate = attr::crate_option(options, "`#[mcp_service]`", &errors);
    let mut block: Block = match syn::parse2(block.clone()) {
        Ok(block) => block,
        Err(error) => {
            match misplaced::keyword(block) {
                Some(word) if word == "impl" => errors.add(error),
                word => errors.at_span(
                    word.map_or_else(Span::call_site, |word| word.span()),
                    "`#[mcp_service]` belongs to an `impl` block\nmove it to the one with the methods",
                ),
            }
            let mistakes = errors.finish();
            return quote!(#block #mistakes);
        }
    };
    block.check(&errors);
    let this = block.this.clone();
    let mut constants = TokenStream::new();
    let mut items = Vec::new();
    for member in &mut block.members {
        let Member::Method(method) = member else { continue };
        let Some((place, options)) = take_attribute(method, &errors) else { continue };
        check_receiver(method, &errors);
        let name = format_ident!("__I{}", items.len(), span = Span::mixed_site());
        constants.extend(match place {
            Place::Tool => constant::<Tool>(options, method, &this, &name, &errors),
            Place::Resource => constant::<Resource>(options, method, &this, &name, &errors),
            Place::Prompt => constant::<Prompt>(options, method, &this, &name, &errors),
        });
        let cfgs = method.cfgs();
        items.push(quote_spanned!(Span::mixed_site()=> #(#cfgs)* #name));
    }
    if items.is_empty() {
        errors.at(
            block.impl_token,
            "no method of this `impl` is annotated\nput `#[mcp_tool]`, `#[mcp_resource]` or `#[mcp_prompt]` on those that clients may use",
        );
    }
    if errors.any() {
        // Only the impl remains, so that registering the service is not a second error.
        constants = TokenStream::new();
        items.clear();
    }
    let is_plain = block.trait_path.is_none()
        && block.generics.params.is_empty()
        && ty::offence(block.this.to_token_stream()).is_none();
    let inner = quote_spanned! {Span::mixed_site()=>
        #constants
        impl __rt::Service for #this { const ITEMS: &'static [__rt::Linked] = &[#(#items),*]; }
    };
    let mut tokens = block.to_token_stream();
    tokens.extend(errors.finish());
    if is_plain {
        tokens.extend(expand::anonymous(krate.as_ref(), &block.shared_attrs(), &inner));
    }
    tokens
}

/// An `impl` without the item attributes of its methods, for when it stands under the wrong attribute.
pub(crate) fn without_attributes(block: TokenStream) -> TokenStream {
    let Ok(mut parsed) = syn::parse2::<Block>(block.clone()) else { return block };
    let errors = Errors::new();
    for member in &mut parsed.members {
        if let Member::Method(method) = member
            && let Some((place, _)) = take_attribute(method, &errors)
        {
            crate::params::read(method, place, None, &errors);
        }
    }
    errors.finish();
    parsed.to_token_stream()
}

fn constant<K: Kind>(
    options: TokenStream,
    method: &mut Function,
    this: &Type,
    name: &Ident,
    errors: &Errors,
) -> TokenStream {
    let options = ty::replace_self(options, this);
    let item = Item::<K>::read(options, method, Some(this), errors);
    if let Some(path) = &item.common.krate {
        errors.at(path, "a method uses the `crate` of its service\nwrite `#[mcp_service(crate = ..)]`");
    }
    expand::linked(&item, name, &method.shared_attrs())
}

fn check_receiver(method: &Function, errors: &Errors) {
    let Some(receiver) = method.sig.receiver() else { return };
    if !matches!(receiver.kind, ReceiverKind::Reference(_, None, None)) {
        errors.at(receiver, "the methods of a service are called concurrently\ntake `&self`");
    }
}

/// Takes the first item attribute off a method, and reads its options.
fn take_attribute(method: &mut Function, errors: &Errors) -> Option<(Place, TokenStream)> {
    let find = |attr: &Attribute| last_segment(attr).and_then(Place::of_attribute);
    let attr = method.attrs.iter_mut().find(|attr| find(attr).is_some())?;
    let place = find(attr)?;
    let options = match &attr.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(_) => {
            errors.at(
                &*attr,
                format_args!("options go into parentheses\nwrite `#[{}(..)]`", place.attribute()),
            );
            TokenStream::new()
        }
    };
    item::mark_expanded(attr);
    Some((place, options))
}

/// An `impl` block whose method bodies stay tokens.
struct Block {
    attrs: Vec<Attribute>,
    impl_token: Token![impl],
    generics: Generics,
    /// The trait of a trait impl, with its `for`.
    trait_path: Option<TokenStream>,
    this: Type,
    where_clause: Option<WhereClause>,
    inner_attrs: Vec<Attribute>,
    members: Vec<Member>,
}

enum Member {
    Method(Box<Function>),
    Other(TokenStream),
}

impl Block {
    fn check(&self, errors: &Errors) {
        if let Some(path) = &self.trait_path {
            errors.at(path, "a service is a type's own `impl`\nmove the methods out of the trait's");
        }
        if !self.generics.params.is_empty() {
            errors.at(&self.generics, "a service cannot be generic\nname the types, one `impl` each");
        } else if let Some(found) = ty::offence(self.this.to_token_stream()) {
            errors.at(found.tokens, "a service cannot borrow\nwrite a type that owns its data, or `'static`");
        }
    }

    fn shared_attrs(&self) -> Vec<TokenStream> {
        let cfgs = self.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
        cfgs.map(ToTokens::to_token_stream).collect()
    }
}

impl Parse for Block {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = Attribute::parse_outer(input)?;
        let impl_token = input.parse()?;
        let generics = if input.peek(Token![<]) { input.parse()? } else { Generics::default() };
        let mut this: Type = input.parse()?;
        let mut trait_path = None;
        if input.peek(Token![for]) {
            let token: Token![for] = input.parse()?;
            trait_path = Some(quote!(#this #token));
            this = input.parse()?;
        }
        let where_clause = input.parse()?;
        let body;
        syn::braced!(body in input);
        let inner_attrs = Attribute::parse_inner(&body)?;
        let mut members = Vec::new();
        while !body.is_empty() {
            members.push(body.parse()?);
        }
        Ok(Self { attrs, impl_token, generics, trait_path, this, where_clause, inner_attrs, members })
    }
}

impl ToTokens for Block {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, impl_token, generics, trait_path, this, where_clause, inner_attrs, members } = self;
        tokens.extend(quote! {
            #(#attrs)* #impl_token #generics #trait_path #this #where_clause { #(#inner_attrs)* #(#members)* }
        });
    }
}

impl Parse for Member {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let ahead = input.fork();
        let head = (|| {
            let head = (ahead.call(Attribute::parse_outer)?, ahead.parse()?, ahead.parse()?);
            Ok::<(Vec<Attribute>, Visibility, Signature), syn::Error>(head)
        })();
        if let Ok((attrs, vis, sig)) = head {
            let body: TokenTree = ahead.parse()?;
            let is_item = attrs.iter().any(|attr| last_segment(attr).and_then(Place::of_attribute).is_some());
            if is_item {
                syn::parse::discouraged::Speculative::advance_to(input, &ahead);
                return Ok(Self::Method(Box::new(Function { attrs, vis, sig, body: body.into() })));
            }
        }
        // Anything else is given back as it came; where it ends only matters for what follows.
        let mut tokens = TokenStream::new();
        let mut ends_with_braces = false;
        while !input.is_empty() {
            let token: TokenTree = input.parse()?;
            let is_end = match &token {
                TokenTree::Punct(punct) => punct.as_char() == ';',
                TokenTree::Group(group) => {
                    ends_with_braces && group.delimiter() == proc_macro2::Delimiter::Brace
                }
                TokenTree::Ident(word) => {
                    ends_with_braces |= word == "fn";
                    false
                }
                TokenTree::Literal(_) => false,
            };
            tokens.extend([token]);
            if is_end {
                break;
            }
        }
        Ok(Self::Other(tokens))
    }
}

impl ToTokens for Member {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Method(method) => method.to_tokens(tokens),
            Self::Other(other) => other.to_tokens(tokens),
        }
    }
}
