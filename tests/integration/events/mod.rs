//! Events: what clients see of them, what a subscription gets, and what holds over every transport.

mod access;
mod declare;
mod fixture;
mod list;
mod poll;
mod replicas;
mod stream;
mod table;
mod webhook;
mod webhook_network;
