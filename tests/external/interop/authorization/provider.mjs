// An authorization server with `oidc-provider`, whose only user is signed in and agrees to everything.
//
// usage: node provider.mjs jwt|opaque SECONDS
//
// Access tokens are JWTs, or opaque, and live for so many seconds. Prints the issuer's URL. Besides its own endpoints it has
// `/browse?url=..`, which follows the redirects of the authorization endpoint as a browser does, with cookies, and answers
// with the last of them: the one to the client.

import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const [format, seconds] = process.argv.slice(2);
const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const jwk = ({ privateKey }, members) => ({ ...privateKey.export({ format: 'jwk' }), use: 'sig', ...members });
const keys = [
  jwk(generateKeyPairSync('ec', { namedCurve: 'P-256' }), { alg: 'ES256', kid: 'elliptic' }),
  jwk(generateKeyPairSync('rsa', { modulusLength: 2048 }), { alg: 'RS256', kid: 'rsa' }),
];

const redirect_uris = ['http://127.0.0.1:9/callback'];
// the document that describes a client, at a URL that only this server knows
const document = 'https://client.example.com/metadata.json';
const described = { client_id: document, client_name: 'described', redirect_uris, token_endpoint_auth_method: 'none' };

const provider = new Provider(issuer, {
  jwks: { keys },
  clients: [
    { client_id: 'known', client_secret: 'known-secret', redirect_uris, grant_types: ['authorization_code', 'refresh_token'] },
    {
      client_id: 'machine', client_secret: 'machine-secret', scope: 'notes:read',
      redirect_uris: [], response_types: [], grant_types: ['client_credentials'],
    },
    // the protected resource itself, which introspects tokens
    { client_id: 'mcp', client_secret: 's&cret', redirect_uris: [], response_types: [], grant_types: [] },
  ],
  scopes: ['openid', 'offline_access', 'notes:read', 'notes:write'],
  ttl: { AccessToken: Number(seconds), Grant: 600, Session: 600, Interaction: 600, RefreshToken: 600 },
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  features: {
    dPoP: { enabled: true },
    devInteractions: { enabled: false },
    registration: { enabled: true },
    clientCredentials: { enabled: true },
    introspection: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: 'notes:read notes:write',
        audience: resource,
        accessTokenTTL: Number(seconds),
        accessTokenFormat: format,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  fetch: (url, options) =>
    String(url) === document ? Promise.resolve(Response.json(described)) : Promise.reject(new Error(`not fetched: ${url}`)),
  interactions: { url: (ctx, interaction) => `/agree/${interaction.uid}` },
  findAccount: (ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
});
provider.on('server_error', (ctx, error) => console.error(error));

/** Signs the user in, and grants what is asked for. */
async function agree(request, response) {
  const { prompt, params } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId: 'ada' } });
  }
  const grant = new provider.Grant({ accountId: 'ada', clientId: params.client_id });
  const scope = params.scope ?? '';
  // those of the resource count as scopes of the provider as well, since its metadata names them
  grant.addOIDCScope(`openid offline_access ${scope}`);
  for (const resource of [params.resource].flat()) grant.addResourceScope(resource, scope);
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

/** Follows redirects on this server, and answers with the first that leads elsewhere. */
async function browse(url, response) {
  const cookies = new Map();
  for (let steps = 0; steps < 10; steps += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    const location = answer.headers.get('location');
    if (!location) return response.writeHead(500).end(await answer.text());
    url = new URL(location, url);
    if (url.origin !== issuer) return response.writeHead(302, { location: url.href }).end();
  }
  return response.writeHead(500).end('too many redirects');
}

const callback = provider.callback();

/** Registers a client for all scopes: the official ones name those of their first request only, and ask for more later. */
async function register(request, response) {
  const { scope, ...metadata } = JSON.parse(Buffer.concat(await request.toArray()).toString());
  request.body = metadata;
  return callback(request, response);
}

server.on('request', (request, response) => {
  const url = new URL(request.url, issuer);
  const failed = (error) => {
    console.error(error);
    response.writeHead(500).end(String(error));
  };
  if (url.pathname.startsWith('/agree/')) agree(request, response).catch(failed);
  else if (url.pathname === '/browse') browse(url.searchParams.get('url'), response).catch(failed);
  else if (url.pathname === '/reg' && request.method === 'POST') register(request, response).catch(failed);
  else callback(request, response);
});
console.log(issuer);
