//! The server that `tests/bench/events.py` drives: one event to which many subscribe, and so many other types beside it as
//! the variable `OTHER_TYPES` says, at most 20.

use mcp_runtime::{event, prelude::*};

#[mcp_type]
struct Message {
    text: String,
}

/// A message was sent.
#[mcp_event(name = "message.sent")]
fn message_sent(#[mcp(payload)] _message: &Message, room: u32) -> bool {
    room < u32::MAX
}

/// Emit an event
#[mcp_tool]
async fn emit(ctx: &Context) -> mcp_runtime::Result<&'static str> {
    ctx.emit::<message_sent>(&Message { text: "hello".into() }).await?;
    Ok("emitted")
}

macro_rules! others {
    ($($name:ident)*) => {
        $(
            /// Something else happened.
            #[mcp_event]
            fn $name(#[mcp(payload)] _message: &Message) {}
        )*

        fn add_others(builder: mcp_runtime::ServerBuilder, count: usize) -> mcp_runtime::ServerBuilder {
            let (mut builder, mut left) = (builder, count);
            $(
                if left > 0 {
                    left -= 1;
                    builder = builder.add(event::of::<$name>());
                }
            )*
            assert_eq!(left, 0, "there are not so many types");
            builder
        }
    };
}

others!(a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20);

fn main() -> mcp_runtime::Result<()> {
    let others = std::env::var("OTHER_TYPES").ok().and_then(|count| count.parse().ok()).unwrap_or_default();
    let builder = mcp_runtime::server!().tool::<emit>().add(event::of::<message_sent>());
    add_others(builder, others).limits(|limits| limits.max_subscribers(40_000)).run()
}
