"""Drives one server with the official Python SDK; called by `main.rs`, which holds every expectation.

usage: drive.py stdio|http COMMAND|URL legacy|auto|VERSION < steps.json

Reads a JSON array of steps, performs them in order on one connection, and prints one JSON line: what was
negotiated, and for each step its result or its JSON-RPC error. Anything else that goes wrong is a traceback.
"""

import json
import sys

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import PromptReference, ResourceTemplateReference

STEP_SECONDS = 20
ALL_SECONDS = 60


def plain(model):
    """The wire form of an SDK object, without the members the server did not send."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


async def listed(page, key):
    """Every page of a list."""
    entries, cursor = [], None
    while True:
        result = await page(cursor=cursor)
        entries += plain(result).get(key, [])
        cursor = result.next_cursor
        if cursor is None:
            return {key: entries}


async def complete(client, step):
    if "prompt" in step:
        ref = PromptReference(type="ref/prompt", name=step["prompt"])
    else:
        ref = ResourceTemplateReference(type="ref/resource", uri=step["uri"])
    return plain(await client.complete(ref, step["argument"], step.get("context")))


async def call(client, step):
    """A tool call; with `progress` the notifications that came before the result are part of the outcome."""
    if not step.get("progress"):
        return plain(await client.call_tool(step["name"], step.get("arguments")))
    seen = []

    async def progressed(progress, total, message):
        seen.append({"progress": progress, "total": total, "message": message})

    result = await client.call_tool(step["name"], step.get("arguments"), progress_callback=progressed)
    return plain(result) | {"progress": seen}


async def perform(client, step):
    match step["op"]:
        case "tools":
            return await listed(client.list_tools, "tools")
        case "resources":
            return await listed(client.list_resources, "resources")
        case "templates":
            return await listed(client.list_resource_templates, "resourceTemplates")
        case "prompts":
            return await listed(client.list_prompts, "prompts")
        case "call":
            return await call(client, step)
        case "read":
            return plain(await client.read_resource(step["uri"]))
        case "prompt":
            return plain(await client.get_prompt(step["name"], step.get("arguments")))
        case "complete":
            return await complete(client, step)
        case unknown:
            raise ValueError(f"unknown step `{unknown}`")


async def outcome(client, step):
    try:
        with anyio.fail_after(STEP_SECONDS):
            return {"result": await perform(client, step)}
    except MCPError as error:
        return {"error": {"code": error.code, "message": error.message, "data": error.data}}


async def main(transport, target, mode, steps):
    server = target if transport == "http" else StdioServerParameters(command=target)
    with anyio.fail_after(ALL_SECONDS):
        async with Client(server, mode=mode, read_timeout_seconds=STEP_SECONDS) as client:
            report = {
                "version": client.protocol_version,
                "server": plain(client.server_info) if client.server_info else None,
                "capabilities": plain(client.server_capabilities),
                "outcomes": [await outcome(client, step) for step in steps],
            }
    print(json.dumps(report))


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:4], json.load(sys.stdin))
