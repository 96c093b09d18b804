//! What is common to all kinds of items: the lifecycle, discovery, the members of every result.

mod cursors;
mod versions;
