//! Other servers as a part of one, over HTTP and as processes.

mod callers;
mod calls;
mod items;
mod outage;
mod pinned;
mod process;
mod questions;
mod secrecy;
mod support;
