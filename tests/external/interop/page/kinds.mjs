// A server of 2025-11-25 that declares prompts and has no list of them, with a tool that takes arguments of every kind and returns the line of its call, and one that becomes
// a task of that revision.
import { createInterface } from "node:readline";

const point = { type: "object", properties: { x: { type: "number" }, y: { type: "number" }, name: { type: "string" } }, required: ["x", "y"] };
const inputSchema = {
  type: "object",
  properties: {
    text: { type: "string", description: "Several lines" },
    empty: { type: "string" },
    pin: { type: "string", format: "password" },
    day: { type: "string", format: "date" },
    moment: { type: "string", format: "date-time" },
    mail: { type: "string", format: "email" },
    link: { type: "string", format: "uri" },
    count: { type: "integer", minimum: 1 },
    large: { type: "integer" },
    ratio: { type: "number" },
    preset: { type: "integer", default: 7 },
    sure: { type: "boolean" },
    color: { type: "string", enum: ["red", "green"] },
    step: { enum: [1, 2] },
    level: { oneOf: [{ const: "low", title: "Low one" }, { const: "high", title: "High one" }] },
    tags: { type: "array", items: { type: "string" } },
    points: { type: "array", items: { $ref: "#/$defs/point" } },
    place: { $ref: "#/$defs/point" },
    shape: { anyOf: [{ title: "Circle", type: "object", properties: { kind: { const: "circle" }, radius: { type: "number" } }, required: ["kind", "radius"] },
      { title: "Square", type: "object", properties: { kind: { const: "square" }, side: { type: "number" } }, required: ["kind", "side"] }] },
    maybe: { type: ["string", "null"] },
    left: { anyOf: [{ type: "integer" }, { type: "null" }] },
    free: {},
    map: { type: "object", additionalProperties: { type: "integer" } },
  },
  required: ["text", "empty", "count", "place"],
  $defs: { point },
};

const send = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") send(id, { protocolVersion: "2025-11-25", serverInfo: { name: "kinds", version: "1" }, capabilities: { tools: {}, prompts: {}, tasks: { requests: { tools: { call: {} } } } } });
  else if (method === "tools/list") send(id, { tools: [{ name: "take", description: "Takes everything.", inputSchema }, { name: "begin", inputSchema: { type: "object" }, execution: { taskSupport: "required" } }] });
  else if (method === "tasks/get") send(id, { taskId: params.taskId, status: "completed", statusMessage: "2 of 2" });
  else if (method === "tasks/result") send(id, { content: [{ type: "text", text: `the result of ${params.taskId}` }] });
  else if (method === "tools/call" && params.name === "begin") send(id, { task: { taskId: "first", status: "working", pollInterval: 10 } });
  else if (method === "tools/call") send(id, { content: [{ type: "text", text: line }] });
  else if (id !== undefined) process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "unknown method" } })}\n`);
}
