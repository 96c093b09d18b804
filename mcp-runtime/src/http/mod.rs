//! The HTTP transport: one endpoint for both eras. The only module that knows HTTP.

mod call;
mod cors;
mod endpoint;
mod era;
mod exchange;
mod feed;
mod guard;
mod head;
mod listen;
mod mirror;
mod options;
mod pump;
mod queue;
mod receive;
mod reply;
mod running;
mod serve;
mod sse;
mod stream;
mod subscription;
#[cfg(test)]
mod tests;

pub(crate) use options::HttpOptions;
