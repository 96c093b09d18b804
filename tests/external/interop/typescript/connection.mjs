// One connection of the official TypeScript SDK to a server.
//
// usage: node SCRIPT stdio|http COMMAND|URL legacy|auto|VERSION < steps.json
//
// Reads a JSON array of steps, performs them in order on one connection, and prints one JSON line: what was
// negotiated, and for each step its result or its JSON-RPC error. Anything else that goes wrong is thrown.

import { readFileSync } from 'node:fs';
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export const STEP = { timeout: 20_000 };

async function outcome(perform, client, step) {
  try {
    return { result: await perform(client, step) };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { error: { code: error.code, message: error.message, data: error.data } };
  }
}

/** Performs the steps with `perform(client, step)`, on a client with these options that `prepare` has seen. */
export async function run(perform, options = {}, prepare = () => {}) {
  const [transport, target, mode] = process.argv.slice(2);
  const steps = JSON.parse(readFileSync(0, 'utf8'));
  const client = new Client(
    { name: 'interop', version: '1.0.0' },
    { ...options, versionNegotiation: { mode: mode === 'legacy' || mode === 'auto' ? mode : { pin: mode } } },
  );
  prepare(client);
  const connection =
    transport === 'http' ? new StreamableHTTPClientTransport(new URL(target)) : new StdioClientTransport({ command: target });
  await client.connect(connection, STEP);

  // The SDK passes a progress notification to its listener one event loop turn after it arrives, and removes the
  // listener as soon as the result arrives. Messages that arrive in one read are therefore delivered one per turn.
  const deliver = connection.onmessage;
  let delivered = Promise.resolve();
  connection.onmessage = (...message) => {
    // The result of a listen stream, whose ids are strings, must come before the end of its stream.
    if (typeof message[0].id === 'string' && !('method' in message[0])) return deliver(...message);
    delivered = delivered.then(() => new Promise(setImmediate)).then(() => deliver(...message));
  };

  const outcomes = [];
  for (const step of steps) outcomes.push(await outcome(perform, client, step));
  const report = {
    version: client.getNegotiatedProtocolVersion(),
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    outcomes,
  };
  if (transport === 'http' && client.getProtocolEra() === 'legacy') await connection.terminateSession();
  await client.close();
  console.log(JSON.stringify(report));
}
