//! Attribute macros for MCP servers; use them through `mcp-runtime`.
