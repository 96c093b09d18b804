// Sends lists, calls, reads, prompts and completions to one server.
//
// The usage, the steps' form and the report are those of `connection.mjs`; every expectation is in the Rust modules.

import { STEP, run } from './connection.mjs';

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

await run(perform);
