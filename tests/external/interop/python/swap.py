"""Replaces the server behind one connection, or a source of it, again and again, and uses each.

The usage and the report are those of `connection.py`. The first step subscribes. Each other one copies a file to the
place of the one that is used, waits until the server says that its tools have changed, lists and calls them, and waits for a
change of the subscribed resource if the program has a tool that makes one.
"""

import os
import shutil
import warnings

import anyio
from mcp.shared.exceptions import MCPDeprecationWarning

import connection
from connection import hear_another, plain, run

# a step may build a few lines, and wait for other builds in the same folder
connection.STEP_SECONDS = 900
connection.ALL_SECONDS = 1800
TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


class Subscriber:
    def __init__(self):
        self.heard, self.listening, self.news = [], None, None

    async def hear(self, message):
        if isinstance(message, Exception):
            raise message
        # those of an open subscription are read from it
        if self.news is None:
            self.heard.append(plain(message))

    async def subscribe(self, client, step):
        if client.protocol_version < "2026":
            await client.subscribe_resource(step["uri"])
        else:
            # kept, since the subscription ends with it
            self.listening = client.listen(tools_list_changed=True, resource_subscriptions=[step["uri"]])
            self.news = await self.listening.__aenter__()
        return {}

    async def wait(self, method):
        """Waits until the server has sent such a notification; forgets those before it."""
        with anyio.fail_after(connection.STEP_SECONDS):
            while True:
                while self.heard:
                    message = self.heard.pop(0)
                    if message["method"] == method:
                        return message
                await hear_another(self.heard, self.news)

    async def perform(self, client, step):
        if step["op"] == "subscribe":
            return await self.subscribe(client, step)
        self.heard.clear()
        new = step["to"] + ".new"
        shutil.copy(step["from"], new)
        os.replace(new, step["to"])
        await self.wait(TOOLS)
        names = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool(step["tool"], step.get("arguments", {}))
        report = {"has": step["tool"] in names, "had": step["before"] in names, "text": result.content[0].text}
        if step.get("trigger"):
            await client.call_tool(step["trigger"], {})
            report["updated"] = (await self.wait(UPDATED))["params"]["uri"]
        return report


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    subscriber = Subscriber()
    run(subscriber.perform, message_handler=subscriber.hear)
