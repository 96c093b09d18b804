"""Replaces the server behind one connection again and again, and calls a tool of each.

The usage and the report are those of `connection.py`. A step copies a program to the place of the running one, and calls
a tool until the new program answers.
"""

import os
import shutil
import time

import anyio
from mcp import MCPError

import connection

connection.ALL_SECONDS = 600


async def perform(client, step):
    new = step["to"] + ".new"
    shutil.copy(step["from"], new)
    os.replace(new, step["to"])
    until = time.monotonic() + connection.STEP_SECONDS
    while time.monotonic() < until:
        try:
            result = await client.call_tool(step["tool"], {})
            if not result.is_error:
                return {"text": result.content[0].text}
        except MCPError:
            pass  # the old program, or the call was in flight
        await anyio.sleep(0.02)
    raise TimeoutError(step["tool"])


if __name__ == "__main__":
    connection.run(perform)
