//! `#[mcp_error]`: one error per mistake, and a type without helper attributes.

use super::{assert_one_error, error, messages};

#[test]
fn each_mistake_is_one_error() {
    for (options, item, part) in [
        ("", "enum E { A }", "no variant of `E` is public"),
        ("", "enum E {}", "no variant of `E` is public"),
        ("", "enum E<T> { #[mcp(public)] A(T) }", "`E` is generic"),
        ("", "enum E<'a> { #[mcp(public)] A(&'a str) }", "`E` is generic"),
        ("", "enum E { #[mcp] A }", "`#[mcp]` has no options"),
        ("", "enum E { #[mcp()] A, B }", "`#[mcp]` has no options"),
        ("", "enum E { #[mcp(publc)] A }", "did you mean `public`?"),
        ("", "enum E { #[mcp(default = 1)] A }", "it is an option of a parameter"),
        ("", "enum E { #[mcp(public = 1)] A }", "`true` or `false`"),
        ("", "enum E { #[mcp(public, public)] A }", "is duplicated"),
        ("", "enum E { #[mcp(public)] #[mcp(public)] A }", "is duplicated"),
        ("", "enum E { A(#[mcp(public)] u8) }", "belongs to a variant"),
        ("", "struct E { #[mcp(public)] a: u8 }", "belongs to a variant"),
        ("", "#[mcp(public)] struct E;", "write `#[mcp_error(public)]`"),
        ("", "#[mcp(public)] enum E { A }", "write `#[mcp_error(public)]`"),
        ("", "struct E;", "nothing of `E` is public"),
        ("public", "enum E { #[mcp(public)] A }", "makes every variant public"),
        ("publik", "enum E { #[mcp(public)] A }", "did you mean `public`?"),
        ("public = 1", "struct E;", "`true` or `false`"),
        ("", "fn e(x: u8) {}", "belongs to an `enum` or a `struct`"),
        ("", "impl E {}", "belongs to an `enum` or a `struct`"),
        ("public", "union E { a: u8 }", "belongs to an `enum` or a `struct`"),
    ] {
        let expansion = error(options, item);
        assert_one_error(&expansion, part);
        let emitted = expansion.to_string();
        assert!(!emitted.contains("# [mcp") && !emitted.contains("inventory"), "{item}: {emitted}");
    }
}

#[test]
fn variants_keep_their_other_attributes() {
    let expansion =
        error("", "pub(crate) enum E { #[error(\"a\")] #[mcp(public)] #[cfg(x)] A { b: u8 }, B }");
    assert_eq!(messages(&expansion), <Vec<String>>::new());
    let expansion = expansion.to_string();
    assert!(
        expansion.starts_with("pub (crate) enum E { # [error (\"a\")] # [cfg (x)] A { b : u8 } , B }"),
        "{expansion}"
    );
    assert!(expansion.contains("# [cfg (x)] E :: A { .. } => true"), "{expansion}");
}
