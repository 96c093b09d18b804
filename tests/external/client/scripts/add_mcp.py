import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("python")

@server.tool()
def add(a: int, b: int) -> int:
    """Adds"""
    return a + b

if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
