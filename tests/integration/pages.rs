//! The programs on pages of the guide that have tests: `build.rs` makes a module of each, named by its page and its line.

include!(concat!(env!("OUT_DIR"), "/pages.rs"));
