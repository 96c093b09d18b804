//! Events and their payloads.

mod event_with_option_of_tool {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event(read_only)]
    fn received(#[mcp(payload)] _mail: &Mail) {}
}

mod event_name_with_space {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event(name = "mail received")]
    fn received(#[mcp(payload)] _mail: &Mail) {}
}

mod event_deliver_bare {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event(deliver)]
    fn received(#[mcp(payload)] _mail: &Mail) {}
}

mod event_deliver_unknown {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event(deliver(poll, stream))]
    fn received(#[mcp(payload)] _mail: &Mail) {}
}

mod event_in_service {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    struct Mailbox;

    #[mcp_service]
    impl Mailbox {
        #[mcp_event]
        fn received(&self, #[mcp(payload)] _mail: &Mail) {}
    }
}

mod event_without_payload {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(mail: &Mail) -> bool {
        mail.subject.is_empty()
    }
}

mod event_two_payloads {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] mail: &Mail, #[mcp(payload)] other: &Mail) -> bool {
        mail.subject == other.subject
    }
}

mod event_payload_by_value {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] mail: Mail) -> bool {
        mail.subject.is_empty()
    }
}

mod event_payload_optional {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] mail: Option<&Mail>) -> bool {
        mail.is_some()
    }
}

mod event_payload_with_default {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload, default)] mail: &Mail) -> bool {
        mail.subject.is_empty()
    }
}

mod event_payload_without_derives {
    use mcp_runtime::prelude::*;

    struct Letter {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] mail: &Letter) -> bool {
        mail.subject.is_empty()
    }
}

mod event_argument_with_header {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] _mail: &Mail, #[mcp(header = "Folder")] folder: String) -> bool {
        folder.is_empty()
    }
}

mod event_returns_text {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] mail: &Mail) -> String {
        mail.subject.clone()
    }
}

mod emit_not_an_event {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Parcel {
        subject: String,
    }

    #[mcp_tool]
    fn received(mail: Parcel) -> String {
        mail.subject
    }

    async fn receive(ctx: &Context) -> mcp_runtime::Result<()> {
        ctx.emit::<received>(&Parcel { subject: String::new() }).await?;
        Ok(())
    }
}

mod emit_other_payload {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] _mail: &Mail) {}

    async fn receive(ctx: &Context) -> mcp_runtime::Result<()> {
        ctx.emit::<received>(&"a mail".to_owned()).await?;
        Ok(())
    }
}

mod event_returns_impl_iterator {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] mail: &Mail) -> impl Iterator<Item = Mail> {
        std::iter::once(Mail { subject: mail.subject.clone() })
    }
}

fn main() {}
