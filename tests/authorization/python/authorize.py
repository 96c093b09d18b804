"""The official Python SDK as a client of a protected server, or FastMCP's client.

usage: SCRIPT sdk|fastmcp URL CALLBACK SECONDS

Signs in, lists the tools, reads with the first scope, writes with a second one, waits that many seconds until its token
has expired, and reads again. Prints one JSON line.
"""

import json
import sys
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

ALL_SECONDS = 60


class Memory:
    """The tokens and the registration, for one run."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Browser:
    """Follows redirects, with cookies, until one leaves for the callback."""

    def __init__(self, callback):
        self.callback, self.url, self.visits = callback, None, 0

    async def visit(self, url):
        self.visits += 1
        async with httpx2.AsyncClient() as http:
            while not url.startswith(self.callback):
                response = await http.get(url)
                url = urljoin(url, response.headers["location"])
        self.url = url

    async def answer(self):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.url).query).items()}
        if "code" not in query:
            raise ValueError(f"not authorized: {query}")
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


def text(result):
    return result.content[0].text


def sdk_client(url, browser):
    provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(client_name="authorization", redirect_uris=[browser.callback]),
        storage=Memory(),
        redirect_handler=browser.visit,
        callback_handler=browser.answer,
    )
    http = httpx2.AsyncClient(auth=provider, timeout=20)
    return Client(streamable_http_client(url, http_client=http))


def fastmcp_client(url, browser):
    import fastmcp
    from fastmcp.client.auth import OAuth

    class Headless(OAuth):
        async def redirect_handler(self, authorization_url):
            browser.callback = f"http://localhost:{self.redirect_port}/"
            await browser.visit(authorization_url)

        async def callback_handler(self):
            return await browser.answer()

    return fastmcp.Client(url, auth=Headless())


async def main(kind, url, callback, seconds):
    browser = Browser(callback)
    with anyio.fail_after(ALL_SECONDS):
        async with (sdk_client if kind == "sdk" else fastmcp_client)(url, browser) as client:
            tools = await client.list_tools()
            report = {"tools": sorted(tool.name for tool in getattr(tools, "tools", tools))}
            report["read"] = text(await client.call_tool("read_note", {}))
            report["written"] = text(await client.call_tool("write_note", {}))
            await anyio.sleep(float(seconds))
            report["again"] = text(await client.call_tool("read_note", {}))
            report["visits"] = browser.visits
    print(json.dumps(report))


anyio.run(main, *sys.argv[1:5])
