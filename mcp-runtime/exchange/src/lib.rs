#![doc = include_str!("../README.md")]

mod authorization_server;
mod refusal;
mod token_exchange;
mod tokens;

pub use token_exchange::TokenExchange;
