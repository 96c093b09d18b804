//! A search over the tools of a server, as clients and models meet it.

mod answers;
mod classes;
mod lists;
mod support;
