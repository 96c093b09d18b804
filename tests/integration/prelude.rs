//! The names that most of these tests use.

pub(crate) use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

pub(crate) use mcp_runtime::{
    Principal, ProtocolError, Revision, Server, ServerBuilder, ServerHandle, ToolResult,
    prelude::*,
    testing::{Reply, TestServer},
    tool::{ToolCall, ToolDef},
};
pub(crate) use mcp_tests::support::*;
pub(crate) use serde_json::{Value, json};

// `support` has a `refusal` that a scripted server sends
pub(crate) use crate::common::{refusal, *};
