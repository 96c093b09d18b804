//! Functions that a `macro_rules!` macro makes, with its own identifiers and captured fragments.

#![deny(warnings)]

use mcp_runtime::prelude::*;

pub struct Db(u32);

macro_rules! tools {
    ($($(#[$meta:meta])* $vis:vis $name:ident: $ty:ty = $default:expr, $text:literal;)*) => {$(
        $(#[$meta])*
        #[mcp_tool(title = $text, name = $text, meta(text = $text))]
        $vis fn $name(
            /// A number
            #[mcp(default = $default, range(1..=100))] value: $ty,
            query: Option<$ty>,
            db: &Db,
        ) -> $ty {
            let local = value + db.0;
            local + query.unwrap_or_default()
        }
    )*};
}

tools! {
    /// First.
    pub first: u32 = 1 + 1, "first";
    #[doc = concat!("Sec", "ond.")]
    second: u32 = 2, "second";
}

macro_rules! iconic {
    ($name:ident, $plain:literal, $captured:expr) => {
        #[mcp_tool(icon($plain, $captured), icon(src = $captured, sizes("any")), icon = $captured)]
        fn $name() {}
    };
}

iconic!(pictured, "https://a.example/i.png", "https://a.example/j.png");

macro_rules! wrapped {
    ($item:item) => {
        #[mcp_tool(read_only)]
        $item
    };
}

wrapped! {
    /// Wrapped.
    async fn whole(#[mcp(length(1..))] text: String) -> String {
        text
    }
}

macro_rules! with_body {
    ($name:ident, $arg:ident, $reference:ty, $body:block) => {
        #[mcp_tool]
        fn $name($arg: String, db: $reference) -> String {
            let _: $reference = db;
            $body
        }
    };
}

with_body!(echo, message, &Db, { message });

macro_rules! service {
    ($ty:ty, $($method:ident)*) => {
        #[mcp_service]
        impl $ty {
            $(#[mcp_tool] async fn $method(&self, value: $ty) -> Json<$ty> { Json(value) })*
        }
    };
}

#[mcp_type]
struct Point {
    x: u32,
}

service!(Point, one two);

macro_rules! resource {
    ($uri:literal, $name:ident($($arg:ident: $ty:ty),*)) => {
        #[mcp_resource(uri = $uri)]
        fn $name($($arg: $ty),*) -> String {
            let mut text = String::new();
            $(text += &$arg.to_string();)*
            text
        }
    };
}

resource!("docs://{a}/{b}", page(a: u32, b: String));

pub(crate) fn main() {
    assert_eq!(first(1, None, &Db(1)), 2);
    assert_eq!(echo("a".into(), &Db(1)), "a");
    mcp_runtime::server!()
        .tool::<first>()
        .tool::<second>()
        .tool::<whole>()
        .tool::<echo>()
        .service(Point { x: 1 })
        .resource::<page>()
        .state(Db(1))
        .build()
        .expect("a server");
}
