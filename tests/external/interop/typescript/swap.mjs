// Replaces the server behind one connection, or a source of it, again and again, and uses each.
//
// The usage and the report are those of `connection.mjs`. The first step subscribes. Each other one copies a file to the
// place of the one that is used, waits until the server says that its tools have changed, lists and calls them, and waits for a
// change of the subscribed resource if the program has a tool that makes one.

import { copyFileSync, renameSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { STEP, run } from './connection.mjs';

// a step may build a few lines, and wait for other builds in the same folder
STEP.timeout = 900_000;

const TOOLS = 'notifications/tools/list_changed';
const UPDATED = 'notifications/resources/updated';

let heard = [];
let subscription;

/** Registers what listens. */
function prepare(client) {
  for (const method of [TOOLS, UPDATED]) {
    client.setNotificationHandler(method, ({ params }) => void heard.push({ method, params }));
  }
}

/** Waits until the server has sent such a notification; forgets those before it. */
async function wait(method) {
  const until = Date.now() + STEP.timeout;
  while (Date.now() < until) {
    const at = heard.findIndex((message) => message.method === method);
    if (at >= 0) return heard.splice(0, at + 1)[at];
    await sleep(10);
  }
  throw new Error(`${method} never came`);
}

async function subscribe(client, uri) {
  if (client.getProtocolEra() === 'legacy') {
    await client.subscribeResource({ uri }, STEP);
  } else {
    subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] }, STEP);
  }
  return {};
}

async function perform(client, { op, uri, from, to, tool, before, trigger, arguments: args = {} }) {
  if (op === 'subscribe') return subscribe(client, uri);
  heard = [];
  copyFileSync(from, `${to}.new`);
  renameSync(`${to}.new`, to);
  await wait(TOOLS);
  const names = (await client.listTools({}, STEP)).tools.map(({ name }) => name);
  const result = await client.callTool({ name: tool, arguments: args }, STEP);
  const report = { has: names.includes(tool), had: names.includes(before), text: result.content[0].text };
  if (trigger) {
    await client.callTool({ name: trigger, arguments: {} }, STEP);
    report.updated = (await wait(UPDATED)).params.uri;
  }
  return report;
}

await run(perform, {}, prepare);
