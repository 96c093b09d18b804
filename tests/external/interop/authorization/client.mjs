// The official TypeScript SDK gets tokens, and a second scope when a call needs it.
//
// usage: node client.mjs SERVER PROVIDER CALLBACK [token]
//
// Prints the texts of three tools as JSON, or else the first token that it gets.

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const [url, provider, callback, printed] = process.argv.slice(2);

/** Keeps everything in memory; the user's browser is the provider's. */
class Memory {
  redirectUrl = callback;
  clientMetadata = {
    client_name: 'typescript',
    redirect_uris: [callback],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  clientInformation() {
    return this.client;
  }
  saveClientInformation(client) {
    this.client = client;
  }
  tokens() {
    return this.saved;
  }
  saveTokens(tokens) {
    this.saved = tokens;
  }
  async redirectToAuthorization(authorization) {
    const browsed = await fetch(`${provider}/browse?url=${encodeURIComponent(authorization)}`, { redirect: 'manual' });
    if (!browsed.headers.has('location')) throw new Error(await browsed.text());
    this.parameters = new URL(browsed.headers.get('location')).searchParams;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  codeVerifier() {
    return this.verifier;
  }
}

const memory = new Memory();

/** Performs something, once more after each authorization that it needs. */
async function authorized(perform) {
  for (let tries = 0; ; tries += 1) {
    const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: memory });
    const client = new Client({ name: 'typescript', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    try {
      await client.connect(transport);
      return await perform(client);
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || tries === 3) throw error;
      await transport.finishAuth(memory.parameters);
    } finally {
      await client.close();
    }
  }
}

if (printed === 'token') {
  await authorized((client) => client.callTool({ name: 'whoami', arguments: {} }));
  console.log(JSON.stringify(memory.saved.access_token));
  process.exit();
}
const texts = [];
for (const name of ['whoami', 'read_notes', 'delete_notes']) {
  texts.push(await authorized(async (client) => (await client.callTool({ name, arguments: {} })).content[0].text));
}
console.log(JSON.stringify(texts));
