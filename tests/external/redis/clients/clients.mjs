// Clients of the official TypeScript SDK, legacy and modern, of servers that are killed and started again meanwhile.
//
// usage: node clients.mjs URL SECONDS
//
// Sends requests until the time is over, and prints one JSON line: for each kind of request, how many had which outcome.
// An outcome that begins with `WRONG` is neither the right result nor an error that says so.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, seconds] = process.argv.slice(2);
const end = Date.now() + Number(seconds) * 1000;
// Longer than anything takes, also on a busy machine.
const ANSWER = 40_000;
const OPTIONS = { timeout: ANSWER };
const URI = 'test://state';
const counts = {};
const paid = [];

const isOver = () => Date.now() > end;

function count(kind, outcome) {
  const outcomes = (counts[kind] ??= {});
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
}

/** What a request that has failed says, without what differs from one to the next. */
function failed(error, era) {
  const timedOut = /timed out/i.test(String(error));
  const status = error.data?.status ?? error.status;
  const code = [error.code ?? error.cause?.code, status].filter((part) => part !== undefined).join(' ');
  // a stream that cannot be resumed ends no request of this SDK
  if (timedOut && era === 'legacy') return 'error of the time limit';
  return timedOut ? 'WRONG: no answer' : `error ${code}: ${error.message}`.replace(/\s+/g, ' ').slice(0, 160);
}

const textOf = (result) => result.content.map((block) => block.text ?? '').join('');

async function ask(kind, era, perform) {
  try {
    count(`${kind}, ${era}`, await perform());
  } catch (error) {
    count(`${kind}, ${era}`, failed(error, era));
    await sleep(100);
  }
}

async function calls(client, era, name, args) {
  for (let n = 0; !isOver(); n += 1) {
    const message = `${name} ${n}`;
    await ask(name, era, async () => {
      const result = await client.callTool({ name, arguments: { ...args, message } }, OPTIONS);
      const text = textOf(result);
      return text === message && !result.isError ? 'right' : `WRONG: ${text}`.slice(0, 200);
    });
    await sleep(30);
  }
}

async function pays(client, era) {
  while (!isOver()) {
    const invoice = randomUUID();
    await ask('pay', era, async () => {
      const result = await client.callTool({ name: 'pay', arguments: { invoice } }, OPTIONS);
      const text = textOf(result);
      if (result.isError) {
        // the last one: the replica that got the answer was killed, and the SDK does not send it again
        const told = ['used before', 'cannot be told', 'no answer to `agreed` came in time'].some((why) => text.includes(why));
        return told ? `error of the tool: ${text}`.slice(0, 80) : `WRONG: ${text}`.slice(0, 200);
      }
      if (text !== `paid ${invoice}`) return `WRONG: ${text}`.slice(0, 200);
      paid.push(invoice);
      return 'right';
    });
    await sleep(50);
  }
}

/** Opens a subscription again and again; a change must follow each time, unless the stream breaks first. */
async function listens(client, changes) {
  while (!isOver()) {
    let subscription;
    try {
      subscription = await client.listen({ resourceSubscriptions: [URI] }, OPTIONS);
    } catch (error) {
      count('subscription', failed(error));
      await sleep(200);
      continue;
    }
    count('subscription', 'opened');
    const opened = Date.now();
    const before = changes.count;
    let closed = false;
    let changed = false;
    void subscription.closed.then(() => (closed = true), () => (closed = true));
    while (!isOver() && !closed) {
      await client.callTool({ name: 'touch', arguments: {} }, OPTIONS).catch(() => {});
      await sleep(500);
      if (!changed && changes.count > before) {
        changed = true;
        count('subscription', 'followed by a change');
      }
      if (!changed && !closed && Date.now() - opened > ANSWER) {
        count('subscription', 'WRONG: no change follows');
        break;
      }
    }
    if (!changed) count('subscription', 'broken before a change');
    await Promise.race([subscription.close().catch(() => {}), sleep(2000)]);
  }
}

async function serve(era) {
  const options = {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } },
  };
  while (!isOver()) {
    const client = new Client({ name: 'clients', version: '1.0.0' }, options);
    const changes = { count: 0 };
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { value: true } }));
    client.setNotificationHandler('notifications/resources/updated', () => void (changes.count += 1));
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(url)), OPTIONS);
    } catch (error) {
      count('client', failed(error));
      await sleep(200);
      continue;
    }
    count('client', `connected, ${era}`);
    await Promise.all([
      calls(client, era, 'echo', {}),
      calls(client, era, 'echo', {}),
      calls(client, era, 'nap', { ms: 300 }),
      pays(client, era),
      era === 'modern' ? listens(client, changes) : undefined,
    ]);
    await Promise.race([client.close().catch(() => {}), sleep(2000)]);
  }
}

process.on('unhandledRejection', (error) => console.error('unhandled', error));
await Promise.all(['legacy', 'modern'].map(serve));
// a pipe takes what is long in parts
process.stdout.write(`${JSON.stringify({ counts, paid })}\n`, () => process.exit(0));
