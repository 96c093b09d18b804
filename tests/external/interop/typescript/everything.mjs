// Plays the application behind a client of `everything`: answers client requests, and records notifications.
//
// The usage, the steps' form and the report are those of `connection.mjs`; every expectation is in `everything.rs`.
// The result of each step includes the messages that the server sent while it ran.

import { setTimeout } from 'node:timers/promises';
import { STEP, run } from './connection.mjs';

// How long to wait for notifications; afterwards the report has those that arrived.
const HEAR = 10_000;
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const QUESTIONS = ['elicitation/create', 'sampling/createMessage', 'roots/list'];
const NEWS = [
  'notifications/message',
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
];

let answers = {};
let asked = {};
let heard = [];
let subscription;

/** Registers what answers and what listens. */
function prepare(client) {
  for (const method of QUESTIONS) {
    client.setRequestHandler(method, ({ params }) => {
      (asked[method] ??= []).push(params ?? {});
      return answers[method].shift();
    });
  }
  for (const method of NEWS) {
    client.setNotificationHandler(method, ({ params }) => void heard.push({ method, params }));
  }
}

/** A tool call; the progress that came before its result is part of the outcome. */
async function call(client, { name, arguments: args, level }) {
  const progress = [];
  const options = { ...STEP, onprogress: (notification) => progress.push(notification) };
  const _meta = level === undefined ? undefined : { [LOG_LEVEL]: level };
  const result = await client.callTool({ name, arguments: args, _meta }, options);
  return { ...result, progress };
}

/** Begins a call, lets another one overtake it, and gives it up; again and again. */
async function cancel(client, { name, arguments: args, meanwhile, times }) {
  let last;
  for (let round = 0; round < times; round += 1) {
    const abort = new AbortController();
    const ended = client.callTool({ name, arguments: args }, { ...STEP, signal: abort.signal }).catch((error) => error);
    last = await client.callTool({ name: meanwhile }, STEP);
    abort.abort('given up');
    const why = await ended;
    // Not because of the cancellation.
    if (!String(why).includes('given up')) return { ended: why instanceof Error ? String(why) : why };
  }
  return { last };
}

async function act(client, step) {
  switch (step.op) {
    case 'call':
      return call(client, step);
    case 'prompt':
      return client.getPrompt({ name: step.name, arguments: step.arguments }, STEP);
    case 'cancel':
      return cancel(client, step);
    case 'level':
      return client.setLoggingLevel(step.level, STEP);
    case 'subscribe':
      return client.subscribeResource({ uri: step.uri }, STEP);
    case 'unsubscribe':
      return client.unsubscribeResource({ uri: step.uri }, STEP);
    case 'listen':
      subscription = await client.listen(step.filter, STEP);
      return { honored: subscription.honoredFilter };
    case 'unlisten':
      await subscription.close();
      return { closed: await subscription.closed };
    case 'ended':
      return { ended: await Promise.race([subscription.closed, setTimeout(HEAR, 'still open')]) };
    default:
      throw new Error(`unknown step \`${step.op}\``);
  }
}

async function perform(client, step) {
  [answers, asked, heard] = [step.answers ?? {}, {}, []];
  const result = await act(client, step);
  const until = Date.now() + HEAR;
  while (heard.length < (step.hear ?? 0) && Date.now() < until) await setTimeout(10);
  return { ...result, asked, heard };
}

await run(perform, { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } }, prepare);
