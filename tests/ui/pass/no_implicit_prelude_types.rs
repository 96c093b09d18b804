#![no_implicit_prelude]
use ::mcp_runtime::prelude::*;
/// A type.
#[mcp_type]
struct A {
    a: u32,
    b: ::std::option::Option<u32>,
}
/// A tool.
#[mcp_tool]
async fn search(#[mcp(default = 2, range(1..=5))] n: u32, a: A) -> Json<A> {
    let _ = n;
    Json(a)
}
/// A resource.
#[mcp_resource(uri = "a://{x}")]
fn res(x: ::std::string::String) -> ::std::string::String {
    x
}
/// A prompt.
#[mcp_prompt]
fn pro(x: ::std::string::String) -> ::std::string::String {
    x
}
struct S;
#[mcp_service]
impl S {
    #[mcp_tool]
    fn t(&self) -> u32 {
        1
    }
}
#[mcp_error]
#[derive(::std::fmt::Debug)]
enum E {
    #[mcp(public)]
    A,
}
impl ::std::fmt::Display for E {
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        f.write_str("a")
    }
}
impl ::std::error::Error for E {}
#[mcp_tool]
fn fails() -> ::std::result::Result<u32, E> {
    ::std::result::Result::Err(E::A)
}

pub(crate) fn main() {
    let _ =
        ::mcp_runtime::server!().discover_in(::core::module_path!()).service(S).build().expect("a server");
    let _ = fails().is_err();
}
