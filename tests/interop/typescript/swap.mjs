// Replaces the server behind one connection again and again, and calls a tool of each.
//
// The usage and the report are those of `connection.mjs`. A step copies a program to the place of the running one, and
// calls a tool until the new program answers.

import { copyFileSync, renameSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ProtocolError } from '@modelcontextprotocol/client';
import { STEP, run } from './connection.mjs';

async function perform(client, { from, to, tool }) {
  copyFileSync(from, `${to}.new`);
  renameSync(`${to}.new`, to);
  const until = Date.now() + STEP.timeout;
  while (Date.now() < until) {
    try {
      const result = await client.callTool({ name: tool, arguments: {} }, STEP);
      if (!result.isError) return { text: result.content[0].text };
    } catch (error) {
      // the old program, or the call was in flight
      if (!(error instanceof ProtocolError)) throw error;
    }
    await sleep(20);
  }
  throw new Error(`${tool} never answered`);
}

await run(perform);
