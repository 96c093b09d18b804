//! Any bytes to the target `frontmatter`.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(|data| mcp_runtime::fuzzing::run("frontmatter", data));
