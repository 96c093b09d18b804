"""Plays the application behind a client of `everything`: answers client requests, and records notifications.

The usage, the steps' form and the report are those of `connection.py`; every expectation is in `everything.rs`. The
result of each step includes the messages that the server sent while it ran.
"""

import warnings

import anyio
from mcp import MCPError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult

from connection import hear_another, plain, run

# How long to wait for notifications; afterwards the report has those that arrived.
HEAR_SECONDS = 10
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Application:
    def __init__(self):
        self.answers, self.asked, self.heard = {}, {}, []
        self.subscription = self.news = None

    def answer(self, method, params):
        self.asked.setdefault(method, []).append(plain(params) if params else {})
        return self.answers[method].pop(0)

    async def elicit(self, context, params):
        return ElicitResult.model_validate(self.answer("elicitation/create", params))

    async def sample(self, context, params):
        return CreateMessageResult.model_validate(self.answer("sampling/createMessage", params))

    async def list_roots(self, context):
        return ListRootsResult.model_validate(self.answer("roots/list", None))

    async def hear(self, message):
        if isinstance(message, Exception):
            raise message
        message = plain(message)
        # Notifications of the open subscription are read from it, and progress goes to its call.
        subscription = message.get("params", {}).get("_meta", {}).get(SUBSCRIPTION)
        followed = self.news is not None and subscription == self.news.subscription_id
        if message["method"] != "notifications/progress" and not followed:
            self.heard.append(message)

    async def call(self, client, step):
        """A tool call; the progress before its result is part of the outcome."""
        progress = []

        async def progressed(done, total, message):
            progress.append({"progress": done, "total": total})

        meta = {LOG_LEVEL: step["level"]} if "level" in step else None
        result = await client.call_tool(step["name"], step.get("arguments"), progress_callback=progressed, meta=meta)
        return plain(result) | {"progress": progress}

    async def cancel(self, client, step):
        """Starts a call, completes another one meanwhile, and cancels the first; repeatedly."""

        ended = []

        async def cancelled_call():
            try:
                ended.append(plain(await client.call_tool(step["name"], step["arguments"])))
            except MCPError as error:
                ended.append(str(error))

        for _ in range(step["times"]):
            async with anyio.create_task_group() as group:
                group.start_soon(cancelled_call)
                # The long call is sent first.
                await anyio.lowlevel.checkpoint()
                last = plain(await client.call_tool(step["meanwhile"]))
                group.cancel_scope.cancel()
            if ended:
                # Not because of the cancellation.
                return {"ended": ended}
        return {"last": last}

    async def listen(self, client, step):
        wanted = step["filter"]
        self.subscription = client.listen(
            tools_list_changed=wanted.get("toolsListChanged", False),
            prompts_list_changed=wanted.get("promptsListChanged", False),
            resource_subscriptions=wanted.get("resourceSubscriptions", ()),
        )
        self.news = await self.subscription.__aenter__()
        return {"honored": plain(self.news.honored)}

    async def unlisten(self):
        await self.subscription.__aexit__(None, None, None)
        # The SDK notifies the server in a separate task.
        await anyio.wait_all_tasks_blocked()
        self.subscription = self.news = None
        return {}

    async def ended(self):
        """How the server's end of the subscription is reported: an iterator that is exhausted, or an error."""
        with anyio.move_on_after(HEAR_SECONDS):
            try:
                await anext(self.news)
            except StopAsyncIteration:
                await self.unlisten()
                return {"ended": "graceful"}
        return {"ended": "still open"}

    async def wait(self, least):
        """Waits until the server has sent that many notifications, outside or inside of a subscription."""
        while len(self.heard) < least:
            await hear_another(self.heard, self.news)

    async def perform(self, client, step):
        self.answers, self.asked, self.heard = step.get("answers", {}), {}, []
        match step["op"]:
            case "call":
                result = await self.call(client, step)
            case "prompt":
                result = plain(await client.get_prompt(step["name"], step.get("arguments")))
            case "cancel":
                result = await self.cancel(client, step)
            case "level":
                result = plain(await client.set_logging_level(step["level"]))
            case "subscribe":
                result = plain(await client.subscribe_resource(step["uri"]))
            case "unsubscribe":
                result = plain(await client.unsubscribe_resource(step["uri"]))
            case "listen":
                result = await self.listen(client, step)
            case "unlisten":
                result = await self.unlisten()
            case "ended":
                result = await self.ended()
            case unknown:
                raise ValueError(f"unknown step `{unknown}`")
        with anyio.move_on_after(HEAR_SECONDS):
            await self.wait(step.get("hear", 0))
        return result | {"asked": self.asked, "heard": self.heard}


if __name__ == "__main__":
    # Revision 2026-07-28 deprecates half of these methods.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    application = Application()
    run(
        application.perform,
        elicitation_callback=application.elicit,
        sampling_callback=application.sample,
        list_roots_callback=application.list_roots,
        message_handler=application.hear,
    )
