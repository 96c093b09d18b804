"""The shop with FastMCP: with_fastmcp.py PORT json|sessions, with SHOP_TOOLS=N further tools."""

import sys

from fastmcp import FastMCP
from shop import more_tools, tools

mcp = FastMCP("shop", version="1.0.0")
for tool in tools("fastmcp"):
    mcp.tool(tool)
for name, tool in more_tools():
    mcp.tool(tool, name=name)
stateless = sys.argv[2] == "json"
mcp.run(
    transport="http", host="127.0.0.1", port=int(sys.argv[1]), path="/mcp", show_banner=False,
    stateless_http=stateless, json_response=stateless, log_level="error",
    uvicorn_config={"access_log": False, "loop": "uvloop", "http": "httptools"},
)
