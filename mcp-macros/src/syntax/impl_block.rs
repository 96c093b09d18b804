//! An `impl` block of which only selected methods are parsed; all other members are re-emitted as they are.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Generics, Signature, Token, Type, Visibility, WhereClause};

use crate::syntax::function::Function;

pub(crate) struct ImplBlock {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) impl_token: Token![impl],
    pub(crate) generics: Generics,
    /// The trait of a trait impl, with its `for`.
    pub(crate) trait_path: Option<TokenStream>,
    pub(crate) self_ty: Type,
    where_clause: Option<WhereClause>,
    inner_attrs: Vec<Attribute>,
    members: Vec<ImplMember>,
}

enum ImplMember {
    Method(Box<Function>),
    Other(TokenStream),
}

impl ImplBlock {
    /// Parses the methods that have an attribute for which `is_selected` holds.
    pub(crate) fn parse(tokens: TokenStream, is_selected: impl Fn(&Attribute) -> bool) -> syn::Result<Self> {
        let parser = |input: ParseStream<'_>| {
            let attrs = Attribute::parse_outer(input)?;
            let impl_token = input.parse()?;
            let generics = if input.peek(Token![<]) { input.parse()? } else { Generics::default() };
            let mut self_ty: Type = input.parse()?;
            let mut trait_path = None;
            if input.peek(Token![for]) {
                let token: Token![for] = input.parse()?;
                trait_path = Some(quote!(#self_ty #token));
                self_ty = input.parse()?;
            }
            let where_clause = input.parse()?;
            let body;
            syn::braced!(body in input);
            let inner_attrs = Attribute::parse_inner(&body)?;
            let mut members = Vec::new();
            while !body.is_empty() {
                members.push(ImplMember::parse(&body, &is_selected)?);
            }
            Ok(Self { attrs, impl_token, generics, trait_path, self_ty, where_clause, inner_attrs, members })
        };
        parser.parse2(tokens)
    }

    /// The selected methods.
    pub(crate) fn methods_mut(&mut self) -> impl Iterator<Item = &mut Function> {
        self.members.iter_mut().filter_map(|member| match member {
            ImplMember::Method(method) => Some(&mut **method),
            ImplMember::Other(_) => None,
        })
    }
}

impl ToTokens for ImplBlock {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, impl_token, generics, trait_path, self_ty, where_clause, inner_attrs, members } =
            self;
        tokens.extend(quote! {
            #(#attrs)* #impl_token #generics #trait_path #self_ty #where_clause { #(#inner_attrs)* #(#members)* }
        });
    }
}

impl ImplMember {
    fn parse(input: ParseStream<'_>, is_selected: impl Fn(&Attribute) -> bool) -> syn::Result<Self> {
        let ahead = input.fork();
        if let Ok((attrs, vis, sig)) = parse_head(&ahead) {
            let body: TokenTree = ahead.parse()?;
            if attrs.iter().any(is_selected) {
                syn::parse::discouraged::Speculative::advance_to(input, &ahead);
                return Ok(Self::Method(Box::new(Function { attrs, vis, sig, body: body.into() })));
            }
        }
        // Where another member ends only matters for the member after it.
        let mut tokens = TokenStream::new();
        let mut ends_with_braces = false;
        while !input.is_empty() {
            let token: TokenTree = input.parse()?;
            let is_end = match &token {
                TokenTree::Punct(punct) => punct.as_char() == ';',
                TokenTree::Group(group) => ends_with_braces && group.delimiter() == Delimiter::Brace,
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

fn parse_head(input: ParseStream<'_>) -> syn::Result<(Vec<Attribute>, Visibility, Signature)> {
    Ok((input.call(Attribute::parse_outer)?, input.parse()?, Signature::parse(input)?))
}

impl ToTokens for ImplMember {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Method(method) => method.to_tokens(tokens),
            Self::Other(other) => other.to_tokens(tokens),
        }
    }
}
