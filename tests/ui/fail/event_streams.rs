//! Events whose function opens a stream.

mod event_returns_impl_iterator {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(folder: String) -> impl Iterator<Item = Mail> {
        std::iter::once(Mail { subject: folder })
    }
}

mod event_without_payload_returns_list {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Letter {
        subject: String,
    }

    #[mcp_event]
    fn received(folder: String) -> Vec<Letter> {
        vec![Letter { subject: folder }]
    }
}

mod event_returns_stream_with_payload {
    use mcp_runtime::{event::EventStream, prelude::*};

    #[mcp_type]
    struct Parcel {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] _mail: &Parcel) -> EventStream<Parcel> {
        EventStream::iter([(1_u64, Parcel { subject: String::new() })])
    }
}

mod event_stream_of_other_data {
    use mcp_runtime::{event::EventStream, prelude::*};

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    struct Draft;

    #[mcp_event]
    fn received(folder: String) -> EventStream<Draft> {
        let _mail = Mail { subject: folder };
        todo!()
    }
}

mod event_stream_without_positions {
    use mcp_runtime::{event::EventStream, prelude::*};

    #[mcp_type]
    struct Leaflet {
        subject: String,
    }

    #[mcp_event]
    fn received(folder: String) -> EventStream<Leaflet> {
        EventStream::iter([Leaflet { subject: folder }])
    }
}

mod event_position_with_payload {
    use mcp_runtime::{event::Position, prelude::*};

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] mail: &Mail, #[mcp(position)] since: Option<Position>) -> bool {
        mail.subject.is_empty() && since.is_none()
    }
}

mod event_position_without_stream {
    use mcp_runtime::{event::Position, prelude::*};

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(position)] since: Option<Position>) -> bool {
        since.is_none()
    }
}

mod event_position_by_reference {
    use mcp_runtime::{event::{EventStream, Position}, prelude::*};

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(position)] since: Option<&Position>) -> EventStream<Mail> {
        EventStream::iter([(1_u64, Mail { subject: since.map(ToString::to_string).unwrap_or_default() })])
    }
}

mod event_position_of_another_type {
    use mcp_runtime::{event::EventStream, prelude::*};

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(position)] since: Option<u64>) -> EventStream<Mail> {
        EventStream::iter([(since.unwrap_or(1), Mail { subject: String::new() })])
    }
}

mod emit_streamed {
    use mcp_runtime::{event::EventStream, prelude::*};

    #[mcp_type]
    struct Postcard {
        subject: String,
    }

    #[mcp_event]
    fn received(folder: String) -> EventStream<Postcard> {
        EventStream::iter([(1_u64, Postcard { subject: folder })])
    }

    async fn receive(ctx: &Context) -> mcp_runtime::Result<()> {
        ctx.emit::<received>(&Postcard { subject: String::new() }).await?;
        Ok(())
    }
}

fn main() {}
