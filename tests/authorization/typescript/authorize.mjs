// The official TypeScript SDK as a client of a protected server.
//
//   node authorize.mjs URL CALLBACK SECONDS
//
// Signs in, lists the tools, reads with the first scope, writes with a second one, waits that many seconds until its
// token has expired, and reads again. Prints one JSON line.
import { setTimeout } from 'node:timers/promises';

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

import { browse } from './browse.mjs';

const [target, callback, seconds] = process.argv.slice(2);

let visits = 0;
const kept = {};
const provider = {
  redirectUrl: callback,
  clientMetadata: {
    client_name: 'authorization',
    redirect_uris: [callback],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  state: () => 'state',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  async redirectToAuthorization(url) {
    visits += 1;
    kept.answer = (await browse(url.href, (next) => next.startsWith(callback))).searchParams;
  },
};

let client, transport;

async function connect() {
  client = new Client({ name: 'authorization', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
  transport = new StreamableHTTPClientTransport(new URL(target), { authProvider: provider });
  await client.connect(transport);
}

/** Does it, again after each authorization that it needs. */
async function authorized(action) {
  for (;;) {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error;
      await transport.finishAuth(kept.answer);
    }
  }
}

const call = async (name) => (await authorized(() => client.callTool({ name, arguments: {} }))).content[0].text;

await authorized(connect);
const { tools } = await authorized(() => client.listTools());
const report = { tools: tools.map((tool) => tool.name).sort() };
report.read = await call('read_note');
report.written = await call('write_note');
await setTimeout(Number(seconds) * 1000);
report.again = await call('read_note');
report.visits = visits;
await client.close();
console.log(JSON.stringify(report));
