"""Clients of the official Python SDK, legacy and modern, of servers that are killed and started again meanwhile.

usage: clients.py URL SECONDS [ERA..]

Sends requests of both eras, or of these and `http_sse`, until the time is over, and prints one JSON line: for each kind of request, how many had which outcome. An
outcome that begins with `WRONG` is neither the right result nor an error that says so.
"""

import itertools
import json
import sys
import time
import uuid
import warnings
from collections import Counter, defaultdict

import anyio
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import ElicitResult

# Longer than anything takes, also on a busy machine.
ANSWER_SECONDS = 40
URI = "test://state"
counts = defaultdict(Counter)
paid = []


def count(kind, outcome):
    counts[kind][outcome] += 1


def text_of(result):
    return "".join(block.text for block in result.content if block.type == "text")


def failed(error):
    """What a request that has failed says, without what differs from one to the next."""
    return f"error {error.code}: {error.message}"[:160]


class Session:
    """One client, and what it sends."""

    def __init__(self, client, era, end):
        self.client, self.era, self.end = client, era, end

    def is_over(self):
        return time.monotonic() > self.end

    async def ask(self, kind, perform):
        kind = f"{kind}, {self.era}"
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                count(kind, await perform())
        except MCPError as error:
            count(kind, failed(error))
            await anyio.sleep(0.1)
        except TimeoutError:
            count(kind, "WRONG: no answer")

    async def calls(self, name, arguments):
        for n in itertools.count():
            if self.is_over():
                return
            message = f"{name} {n}"

            async def perform():
                result = await self.client.call_tool(name, arguments | {"message": message})
                text = text_of(result)
                return "right" if text == message and not result.is_error else f"WRONG: {text}"[:200]

            await self.ask(name, perform)
            await anyio.sleep(0.03)

    async def pays(self):
        while not self.is_over():
            invoice = str(uuid.uuid4())

            async def perform():
                result = await self.client.call_tool("pay", {"invoice": invoice})
                text = text_of(result)
                if result.is_error:
                    # the last one: the replica that got the answer was killed, and the SDK does not send it again
                    reasons = "used before", "cannot be told", "no answer to `agreed` came in time"
                    told = any(reason in text for reason in reasons)
                    return f"error of the tool: {text}"[:80] if told else f"WRONG: {text}"[:200]
                if text != f"paid {invoice}":
                    return f"WRONG: {text}"[:200]
                paid.append(invoice)
                return "right"

            await self.ask("pay", perform)
            await anyio.sleep(0.05)

    async def listens(self):
        """Opens a subscription again and again; a change must follow each time, unless the stream breaks first."""
        while not self.is_over():
            changed = False
            try:
                with anyio.move_on_after(ANSWER_SECONDS) as opening:
                    subscription = self.client.listen(resource_subscriptions=[URI])
                    news = await subscription.__aenter__()
                if opening.cancelled_caught:
                    count("subscription", "WRONG: no answer")
                    continue
            except MCPError as error:
                count("subscription", failed(error))
                await anyio.sleep(0.2)
                continue
            count("subscription", "opened")
            opened = time.monotonic()
            try:
                async with anyio.create_task_group() as group:

                    async def touches():
                        while not self.is_over():
                            try:
                                await self.client.call_tool("touch", {})
                            except MCPError:
                                pass
                            await anyio.sleep(0.5)
                            if not changed and time.monotonic() - opened > ANSWER_SECONDS:
                                count("subscription", "WRONG: no change follows")
                                break
                        group.cancel_scope.cancel()

                    group.start_soon(touches)
                    async for _ in news:
                        if not changed:
                            changed = True
                            count("subscription", "followed by a change")
                    group.cancel_scope.cancel()
            except* Exception:
                pass
            if not changed:
                count("subscription", "broken before a change")
            with anyio.CancelScope(shield=True), anyio.move_on_after(2):
                try:
                    await subscription.__aexit__(None, None, None)
                except Exception:
                    pass


async def elicit(context, params):
    return ElicitResult(action="accept", content={"value": True})


async def serve(url, era, end):
    """A client for as long as it works, and then the next one."""
    while time.monotonic() < end:
        try:
            async with Client(
                sse_client(url) if era == "http_sse" else url,
                mode="2026-07-28" if era == "modern" else "legacy",
                read_timeout_seconds=ANSWER_SECONDS,
                elicitation_callback=elicit,
            ) as client:
                count("client", f"connected, {era}")
                session = Session(client, era, end)
                async with anyio.create_task_group() as group:
                    for _ in range(2):
                        group.start_soon(session.calls, "echo", {})
                    group.start_soon(session.calls, "nap", {"ms": 300})
                    group.start_soon(session.pays)
                    if era == "modern":
                        group.start_soon(session.listens)
        except* MCPError as errors:
            count("client", failed(errors.exceptions[0]))
            print(errors, file=sys.stderr)
            await anyio.sleep(0.2)
        except* Exception as errors:
            count("client", f"broken: {type(errors.exceptions[0]).__name__}")
            print(errors.exceptions, file=sys.stderr)
            await anyio.sleep(0.2)


async def main(url, seconds, *eras):
    end = time.monotonic() + float(seconds)
    async with anyio.create_task_group() as group:
        for era in eras or ("legacy", "modern"):
            group.start_soon(serve, url, era, end)
    print(json.dumps({"counts": counts, "paid": paid}))


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    anyio.run(main, *sys.argv[1:])
