// Drives one server with the official TypeScript SDK; called by `main.rs`, which holds every expectation.
//
// usage: node drive.mjs stdio|http COMMAND|URL legacy|auto|VERSION < steps.json
//
// Reads a JSON array of steps, performs them in order on one connection, and prints one JSON line: what was
// negotiated, and for each step its result or its JSON-RPC error. Anything else that goes wrong is thrown.

import { readFileSync } from 'node:fs';
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const STEP = { timeout: 20_000 };

async function listed(page, key) {
  const entries = [];
  let cursor;
  do {
    const result = await page(cursor === undefined ? undefined : { cursor }, STEP);
    entries.push(...result[key]);
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return { [key]: entries };
}

async function call(client, { name, arguments: args, progress }) {
  const seen = [];
  const options = progress ? { ...STEP, onprogress: (notification) => seen.push(notification) } : STEP;
  const result = await client.callTool({ name, arguments: args }, options);
  return progress ? { ...result, progress: seen } : result;
}

function complete(client, { prompt, uri, argument, context }) {
  const ref = prompt === undefined ? { type: 'ref/resource', uri } : { type: 'ref/prompt', name: prompt };
  return client.complete({ ref, argument, ...(context && { context: { arguments: context } }) }, STEP);
}

function perform(client, step) {
  switch (step.op) {
    case 'tools':
      return listed((...page) => client.listTools(...page), 'tools');
    case 'resources':
      return listed((...page) => client.listResources(...page), 'resources');
    case 'templates':
      return listed((...page) => client.listResourceTemplates(...page), 'resourceTemplates');
    case 'prompts':
      return listed((...page) => client.listPrompts(...page), 'prompts');
    case 'call':
      return call(client, step);
    case 'read':
      return client.readResource({ uri: step.uri }, STEP);
    case 'prompt':
      return client.getPrompt({ name: step.name, arguments: step.arguments }, STEP);
    case 'complete':
      return complete(client, step);
    default:
      throw new Error(`unknown step \`${step.op}\``);
  }
}

async function outcome(client, step) {
  try {
    return { result: await perform(client, step) };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { error: { code: error.code, message: error.message, data: error.data } };
  }
}

const [transport, target, mode] = process.argv.slice(2);
const steps = JSON.parse(readFileSync(0, 'utf8'));
const client = new Client(
  { name: 'interop', version: '1.0.0' },
  { versionNegotiation: { mode: mode === 'legacy' || mode === 'auto' ? mode : { pin: mode } } },
);
const connection =
  transport === 'http' ? new StreamableHTTPClientTransport(new URL(target)) : new StdioClientTransport({ command: target });
await client.connect(connection, STEP);

// The SDK hands a progress notification to its listener one turn after it came, and forgets the listener as soon
// as the result comes. What arrives in one read is therefore delivered one message a turn.
const deliver = connection.onmessage;
let delivered = Promise.resolve();
connection.onmessage = (...message) => {
  delivered = delivered.then(() => new Promise(setImmediate)).then(() => deliver(...message));
};

const outcomes = [];
for (const step of steps) outcomes.push(await outcome(client, step));
const report = {
  version: client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion(),
  capabilities: client.getServerCapabilities(),
  outcomes,
};
if (transport === 'http' && client.getProtocolEra() === 'legacy') await connection.terminateSession();
await client.close();
console.log(JSON.stringify(report));
