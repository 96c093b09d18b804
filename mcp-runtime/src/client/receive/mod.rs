//! Messages that the server initiates: requests, which functions of the program answer, and notifications.

pub(super) mod change_stream;
pub(super) mod handlers;
pub(super) mod inbox;
pub(super) mod reopening;
