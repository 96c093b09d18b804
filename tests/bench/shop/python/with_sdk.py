"""The shop with the Python SDK: with_sdk.py PORT json|sessions, with SHOP_TOOLS=N further tools."""

import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from shop import more_tools, tools

server = MCPServer("shop", version="1.0.0")
for tool in tools("python"):
    server.add_tool(tool)
for name, tool in more_tools():
    server.add_tool(tool, name=name)
stateless = sys.argv[2] == "json"
app = server.streamable_http_app(stateless_http=stateless, json_response=stateless)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False, loop="uvloop", http="httptools")
