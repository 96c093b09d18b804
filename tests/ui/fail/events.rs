//! Events and their payloads.

use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

macro_rules! mistakes {
    ($($name:ident: #[$($attribute:tt)*] ($($parameters:tt)*))+) => {
        $(mod $name {
            use super::*;

            #[$($attribute)*]
            #[allow(unused_variables)]
            fn received($($parameters)*) -> bool {
                true
            }
        })+
    };
}

mistakes! {
    event_with_option_of_tool: #[mcp_event(read_only)] (#[mcp(payload)] _mail: &Mail)
    event_name_with_space: #[mcp_event(name = "mail received")] (#[mcp(payload)] _mail: &Mail)
    event_deliver_bare: #[mcp_event(deliver)] (#[mcp(payload)] _mail: &Mail)
    event_deliver_unknown: #[mcp_event(deliver(poll, stream))] (#[mcp(payload)] _mail: &Mail)
    event_two_payloads: #[mcp_event] (#[mcp(payload)] mail: &Mail, #[mcp(payload)] other: &Mail)
    event_payload_by_value: #[mcp_event] (#[mcp(payload)] mail: Mail)
    event_payload_optional: #[mcp_event] (#[mcp(payload)] mail: Option<&Mail>)
    event_payload_with_default: #[mcp_event] (#[mcp(payload, default)] mail: &Mail)
    event_argument_with_header: #[mcp_event] (#[mcp(payload)] _mail: &Mail, #[mcp(header = "Folder")] folder: String)
}

mod event_in_service {
    use super::*;

    struct Mailbox;

    #[mcp_service]
    impl Mailbox {
        #[mcp_event]
        fn received(&self, #[mcp(payload)] _mail: &Mail) {}
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

mod event_returns_text {
    use super::*;

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
    use super::*;

    #[mcp_event]
    fn received(#[mcp(payload)] _mail: &Mail) {}

    async fn receive(ctx: &Context) -> mcp_runtime::Result<()> {
        ctx.emit::<received>(&"a mail".to_owned()).await?;
        Ok(())
    }
}

mod event_returns_impl_iterator {
    use super::*;

    #[mcp_event]
    fn received(#[mcp(payload)] mail: &Mail) -> impl Iterator<Item = Mail> {
        std::iter::once(Mail { subject: mail.subject.clone() })
    }
}

mod event_without_payload {
    use super::*;

    #[mcp_event]
    fn received(mail: &Mail) -> bool {
        mail.subject.is_empty()
    }
}

fn main() {}
