//! Tokens for callers, from an authorization server of the test.

mod answers;
mod callers;
mod support;
mod tokens;
