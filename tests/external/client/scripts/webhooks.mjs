// A program of the package @ai-sdk/mcp, which subscribes to `incident.opened` and receives it by webhook. Each message is
// verified by the package standardwebhooks as well. Says on stdout what has happened, and reads on stdin what to do.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { createMCPClient, experimental_createMCPEventWebhook as createWebhook } from '@ai-sdk/mcp';
import { Webhook } from 'standardwebhooks';

const say = message => process.stdout.write(`${JSON.stringify(message)}\n`);
const saved = new Map();
const store = {
    get: async key => saved.get(key),
    getById: async id => [...saved.values()].find(one => one.id === id),
    set: async one => void saved.set(one.key, one),
    update: async (key, patch) => void saved.set(key, { ...saved.get(key), ...patch }),
    delete: async key => void saved.delete(key),
};
const texts = [];
let verified = 0, gaps = 0, failures = 0;
const handler = createWebhook({
    store,
    onEvent: async ({ event }) => void texts.push(event.data.title),
    onGap: async () => void (gaps += 1),
    onTerminated: async ({ termination }) => say({ terminated: termination.error.code }),
    onError: error => say({ failed: String(error) }),
});
const receiver = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const url = new URL(request.url, `http://127.0.0.1:${receiver.address().port}`);
    const { secret } = saved.get(url.searchParams.get('mcp_event_subscription')).delivery;
    try {
        new Webhook(secret).verify(body, request.headers);
        verified += 1;
    } catch (error) {
        failures += 1;
    }
    const answer = await handler(new Request(url, { method: request.method, headers: request.headers, body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
});
await new Promise(done => receiver.listen(0, '127.0.0.1', done));

const client = await createMCPClient({
    transport: { type: 'http', url: process.argv[2], headers: { authorization: `Bearer ${process.argv[3]}` } },
    experimental_events: { store },
});
const events = client.experimental_events;
const listed = await events.list();
say({ listed: listed.events.map(event => event.name) });
const url = `http://127.0.0.1:${receiver.address().port}/hook`;
const subscribe = args =>
    events.subscribe({ name: 'incident.opened', arguments: args, delivery: { mode: 'webhook', url, allowInsecureLocalhost: true } });
const { id } = await subscribe({ severity: 2 });
say({ subscribed: id });
const commands = {
    refresh: async () => say({ refreshed: (await events.refresh({ id })).id }),
    refused: async () => {
        try {
            await subscribe({ severity: 'many' });
        } catch (error) {
            say({ refused: error.code });
        }
    },
    unsubscribe: async () => {
        await events.unsubscribe({ id });
        say({ left: saved.size });
    },
    report: async () => say({ texts, verified, gaps, failures }),
};
for await (const line of createInterface(process.stdin)) {
    await commands[line]();
}
await client.close();
receiver.close();
