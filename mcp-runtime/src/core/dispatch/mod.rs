//! From one request to its reply, in any revision, for any transport: routes methods, looks items up, checks what must
//! hold before a function runs. Replies are values ([`response`]); functions run in [`invoke`](crate::core::invoke).

mod batch;
mod connection_state;
mod forwarded_call;
mod inbound;
mod input_required;
mod item_call;
mod layered_item;
mod lifecycle;
mod logging;
mod observation;
mod observed_item;
mod pagination;
mod request;
mod response;
#[cfg(feature = "tasks")]
mod resumed_tool;
mod subscriptions;
mod tools;

pub(crate) use batch::Batch;
pub(crate) use connection_state::{ConnectionState, THE_CLIENT};
pub(crate) use inbound::{
    Calls, InFlight, OpenRequests, Registration, RequestRevision, RunningRequest, StartedRequest,
    cut_off_error, id_in_use, is_initialized, resolve_revision,
};
pub(crate) use inbound::{declared_version, unsupported_version};
pub(crate) use input_required::await_input;
pub(crate) use item_call::{ItemCall, SuspendedCall, into_protocol_error, start_with_strings};
pub(crate) use layered_item::FunctionOfItem;
#[cfg(feature = "http")]
pub(crate) use lifecycle::Handshake;
pub(crate) use observation::{error_type, record_error, trace_of};
pub(crate) use observed_item::ObservedItem;
pub(crate) use pagination::{CursorScope, invalid_cursor};
pub(crate) use request::{ClientRequestPolicy, Request, is_limited, required_text, wants_spans};
pub(crate) use response::Status;
pub(crate) use response::{
    CacheHints, PendingReply, Reply, Response, ResultBody, WriteResult, encode, encode_result,
};
pub(crate) use subscriptions::{CapabilityStream, NotificationStream, write_subscription_meta};
