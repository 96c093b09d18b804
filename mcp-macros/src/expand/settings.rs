//! The items that `#[mcp_config]` adds to a struct: a constant for each field, which describes it in the way of an argument,
//! and the impls that read the struct from flags, variables and a file, and as a part of other settings.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, LitStr, Path, Visibility};

use crate::expand::definition::{argument_calls, option, private_scope};
use crate::expand::idents::hygienic_at;
use crate::model::setting::Setting;
use crate::syntax::function::cfgs;
use crate::syntax::types::leaf;

/// A struct of settings.
pub(crate) struct ConfigStruct<'a> {
    pub(crate) attrs: &'a [Attribute],
    pub(crate) vis: &'a Visibility,
    pub(crate) ident: &'a Ident,
    /// The name from which those of the variables and of the file derive.
    pub(crate) name: Option<&'a LitStr>,
    pub(crate) krate: Option<&'a Path>,
}

impl ConfigStruct<'_> {
    /// Everything that is generated for settings without errors.
    pub(crate) fn expand(&self, settings: &[Setting]) -> TokenStream {
        let site = Span::mixed_site();
        // a flattened field reads what the others have left
        let (flat, named): (Vec<_>, Vec<_>) = settings.iter().partition(|setting| setting.is_flat());
        let ordered: Vec<_> = named.into_iter().chain(flat).collect();
        let constants = ordered.iter().enumerate().map(|(index, setting)| describe(index, setting));
        let fields = ordered.iter().enumerate().map(|(index, setting)| {
            let (cfgs, name) = (&setting.cfgs, constant(index));
            let (flag, env) = (option(setting.flag.as_ref(), site), option(setting.env.as_ref(), site));
            quote_spanned!(site=> #(#cfgs)* __rt::SettingField { arg: &#name, flag: #flag, env: #env })
        });
        let takes = ordered.iter().enumerate().map(|(index, setting)| {
            let (cfgs, name, value) = (&setting.cfgs, constant(index), variable(index));
            quote_spanned!(site=> #(#cfgs)* let #value = #name.take(__call, __rt::next_slot(&mut __slot))?;)
        });
        let members = ordered.iter().enumerate().map(|(index, setting)| {
            let (cfgs, ident, value) = (&setting.cfgs, &setting.ident, variable(index));
            quote_spanned!(site=> #(#cfgs)* #ident: #value)
        });
        let writes = ordered.iter().map(|setting| {
            let (cfgs, ident, ty) = (&setting.cfgs, &setting.ident, &setting.ty);
            let name = &setting.argument.name;
            let span = hygienic_at(ty.span());
            let add = if setting.is_flat() {
                quote_spanned!(span=> add_flat(&mut __members, &self.#ident))
            } else if setting.argument.secret {
                quote_spanned!(span=> add_secret(&mut __members, #name))
            } else {
                quote_spanned!(span=> add(&mut __members, #name, &self.#ident))
            };
            quote_spanned!(span=> #(#cfgs)* __rt::MemberOf::<#ty>::#add;)
        });
        let name = option(self.name, site);
        self.in_scope(
            &quote_spanned! {site=>
                #[allow(unused_imports)]
                use __rt::AnyMember as _;
                #(#constants)*
                static __DESCRIPTOR: __rt::ConfigDescriptor = __rt::ConfigDescriptor {
                    name: #name,
                    package: __rt::env!("CARGO_PKG_NAME"),
                    fields: &[#(#fields),*],
                };
            },
            &quote_spanned! {site=>
                let mut __slot = 0;
                #(#takes)*
                __rt::ready(__rt::Result::Ok(Self { #(#members),* }))
            },
            &quote!(#(#writes)*),
        )
    }

    /// Impls that are there only to be named, for settings with errors.
    pub(crate) fn expand_invalid(&self) -> TokenStream {
        let site = Span::mixed_site();
        let descriptor = quote_spanned! {site=>
            static __DESCRIPTOR: __rt::ConfigDescriptor =
                __rt::ConfigDescriptor { name: __rt::Option::None, package: "", fields: &[] };
        };
        self.in_scope(&descriptor, &quote_spanned!(site=> loop {}), &TokenStream::new())
    }

    fn in_scope(&self, descriptor: &TokenStream, decode: &TokenStream, writes: &TokenStream) -> TokenStream {
        let Self { attrs, vis, ident, krate, .. } = self;
        let text = ident.unraw().to_string();
        let inner = quote_spanned! {Span::mixed_site()=>
            #descriptor
            impl __rt::Config for #ident {
                const DESCRIPTOR: &'static __rt::ConfigDescriptor = &__DESCRIPTOR;
                #[allow(unused_mut, unused_variables, clippy::all, clippy::pedantic)]
                fn decode(__call: &__rt::Call<'_>) -> __rt::HandlerResult<Self> {
                    #decode
                }
            }
            #[automatically_derived]
            impl<'__de> __rt::serde::Deserialize<'__de> for #ident {
                fn deserialize<__D: __rt::serde::Deserializer<'__de>>(__d: __D) -> __rt::Result<Self, __D::Error> {
                    __rt::deserialize_config(__d)
                }
            }
            #[automatically_derived]
            impl __rt::serde::Serialize for #ident {
                fn serialize<__S: __rt::serde::Serializer>(&self, __s: __S) -> __rt::Result<__S::Ok, __S::Error> {
                    #[allow(unused_mut)]
                    let mut __members: __rt::SettingMembers = __rt::Default::default();
                    #writes
                    __members.write(__s)
                }
            }
            #[automatically_derived]
            impl __rt::schemars::JsonSchema for #ident {
                fn schema_name() -> __rt::Cow<'static, str> {
                    __rt::Cow::Borrowed(#text)
                }
                fn schema_id() -> __rt::Cow<'static, str> {
                    __rt::config_id::<Self>()
                }
                fn json_schema(__g: &mut __rt::schemars::SchemaGenerator) -> __rt::schemars::Schema {
                    __rt::config_schema::<Self>(__g)
                }
            }
            impl #ident {
                /// Reads the settings: flags of the program, environment variables, the file, defaults.
                ///
                /// # Errors
                /// Settings are missing or wrong; the message lists all of them.
                #[allow(dead_code)]
                #vis fn load() -> __rt::Result<Self, __rt::Error> {
                    __rt::load_config()
                }
            }
        };
        let inner = quote_spanned!(Span::mixed_site()=> __rt::needs_config! { #inner });
        private_scope(*krate, &cfgs(attrs), &inner)
    }
}

/// The constant that describes a field.
fn constant(index: usize) -> Ident {
    format_ident!("__A{index}", span = Span::mixed_site())
}

/// The local variable with the value of a field.
fn variable(index: usize) -> Ident {
    format_ident!("__value{index}", span = Span::mixed_site())
}

fn describe(index: usize, setting: &Setting) -> TokenStream {
    let Setting { ty, cfgs, argument, .. } = setting;
    let span = hygienic_at(ty.span());
    let (name, key, leaf) = (constant(index), &argument.name, leaf(ty));
    let constructor = Ident::new(if setting.is_flat() { "flat_setting" } else { "setting" }, span);
    let calls = argument_calls(argument, ty, false);
    quote_spanned!(span=> #(#cfgs)* const #name: __rt::ArgDescriptor<#ty> = __rt::#constructor::<#ty, #leaf>(#key)#calls;)
}
