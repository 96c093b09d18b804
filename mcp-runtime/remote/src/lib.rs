#![doc = include_str!("../README.md")]

mod callers;
mod definition;
mod pinned;
mod relay;
mod remote;
mod target;
mod upstream;

pub use remote::Remote;
