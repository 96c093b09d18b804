"""One connection of the official Python SDK to a server.

usage: SCRIPT stdio|http COMMAND|URL legacy|auto|VERSION < steps.json

Reads a JSON array of steps, performs them in order on one connection, and prints one JSON line: what was
negotiated, and for each step its result or its JSON-RPC error. Anything else that goes wrong is a traceback.
"""

import json
import sys

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.shared.subscriptions import event_to_notification

STEP_SECONDS = 20
ALL_SECONDS = 60


def plain(model):
    """The wire form of an SDK object, without the members that the server did not send."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


async def hear_another(heard, news):
    """Waits until the server has sent another notification: inside of the subscription `news`, from where it is added to
    `heard`, or without one outside, where the client's handler adds it."""
    if news is None:
        before = len(heard)
        while len(heard) == before:
            await anyio.sleep(0.01)
    else:
        notification = event_to_notification(await anext(news), {})
        heard.append(notification.model_dump(mode="json", by_alias=True, exclude_none=True))


async def outcome(perform, client, step):
    try:
        with anyio.fail_after(STEP_SECONDS):
            return {"result": await perform(client, step)}
    except MCPError as error:
        return {"error": {"code": error.code, "message": error.message, "data": error.data}}


async def drive(perform, options, transport, target, mode, steps):
    server = target if transport == "http" else StdioServerParameters(command=target)
    with anyio.fail_after(ALL_SECONDS):
        async with Client(server, mode=mode, read_timeout_seconds=STEP_SECONDS, **options) as client:
            report = {
                "version": client.protocol_version,
                "server": plain(client.server_info) if client.server_info else None,
                "capabilities": plain(client.server_capabilities),
                "outcomes": [await outcome(perform, client, step) for step in steps],
            }
    print(json.dumps(report))


def run(perform, **options):
    """Performs the steps with `perform(client, step)`, on a client with these options."""
    anyio.run(drive, perform, options, *sys.argv[1:4], json.load(sys.stdin))
