//! Write an MCP server by annotating functions.
