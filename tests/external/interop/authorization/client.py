"""The official Python SDK, or FastMCP's client, gets tokens, and a second scope when a call needs it.

usage: client.py SERVER PROVIDER CALLBACK [fastmcp]

Prints the texts of three tools as JSON.
"""

import json
import sys
from urllib.parse import parse_qs, quote, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

SECONDS = 40


class Memory:
    """Keeps everything in memory; the user's browser is the provider's."""

    tokens = None
    client = None
    location = ""

    def __init__(self, provider):
        self.provider = provider

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info

    async def visit(self, url):
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(f"{self.provider}/browse?url={quote(url, safe='')}")
            self.location = answer.headers["location"]

    async def came_back(self):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.location).query).items()}
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


def official(url, memory, callback):
    metadata = OAuthClientMetadata(client_name="python", redirect_uris=[callback])
    auth = OAuthClientProvider(url, metadata, memory, memory.visit, memory.came_back)
    return Client(streamable_http_client(url, http_client=httpx2.AsyncClient(auth=auth, timeout=SECONDS)))


def fastmcp(url, memory):
    import fastmcp
    from fastmcp.client.auth import OAuth

    class Headless(OAuth):
        """Opens no browser, and listens for no redirect."""

        async def redirect_handler(self, authorization_url):
            await memory.visit(authorization_url)

        async def callback_handler(self):
            return await memory.came_back()

    return fastmcp.Client(url, auth=Headless())


async def main(url, provider, callback, kind="official"):
    memory = Memory(provider)
    with anyio.fail_after(SECONDS):
        async with official(url, memory, callback) if kind == "official" else fastmcp(url, memory) as client:
            tools = ["whoami", "read_notes", "delete_notes"]
            results = [await client.call_tool(name, {}) for name in tools]
    print(json.dumps([result.content[0].text for result in results]))


anyio.run(main, *sys.argv[1:5])
