# A server of the package mcp-webhook-events, whose tool publishes events and delivers them at once.
import tempfile
from mcp.server.mcpserver import MCPServer
from mcp_webhook_events import EventDefinition, McpEvents, SafeHttp

server = MCPServer("python")
note = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
events = McpEvents(
    server,
    store=tempfile.mkdtemp() + "/events.sqlite3",
    definitions=[EventDefinition("note.added", "A note was added", {"type": "object"}, note, lambda _, __: True)],
    principal=lambda context: "ada",
    http=SafeHttp(allow_insecure_for_tests=True),
)
events.install()

@server.tool()
def publish(first: int, count: int) -> str:
    """Publishes notes, and delivers them"""
    queued = sum(events.publish("note.added", {"text": str(n)}, event_id=f"note-{n}") for n in range(first, first + count))
    return f"{queued} {events.deliver_pending()['delivered']}"

@server.tool()
def subscriptions() -> int:
    """Counts the subscriptions"""
    return len(events.active_subscriptions())

server.run()
