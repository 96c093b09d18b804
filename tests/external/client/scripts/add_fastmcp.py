import sys
from fastmcp import FastMCP
server = FastMCP("fastmcp")

@server.tool
def add(a: int, b: int) -> int:
    """Adds"""
    return a + b

if len(sys.argv) > 1:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
else:
    server.run(show_banner=False)
