"""Sends lists, calls, reads, prompts and completions to one server.

The usage, the steps' form and the report are those of `connection.py`; every expectation is in the Rust modules.
"""

from mcp_types import PromptReference, ResourceTemplateReference

from connection import plain, run


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
    """A tool call; with `progress`, the notifications before the result are part of the outcome."""
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


if __name__ == "__main__":
    run(perform)
