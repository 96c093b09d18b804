// An authorization server whose only user is signed in and consents to everything, so that clients can be run without a
// browser. Prints its issuer; ends with its stdin.
//
//   node oidc_provider.mjs LIFETIME
//
// LIFETIME: of access tokens, in seconds. They are JWTs for the resource that the client names.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';

import Provider, { errors } from 'oidc-provider';

const lifetime = Number(process.argv[2] ?? 3600);
const SCOPES = ['notes:read', 'notes:write'];

const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const jwk = (type, options, use) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }),
  kid: type,
  ...use,
});

const provider = new Provider(issuer, {
  adapter: undefined,
  jwks: {
    keys: [
      jwk('ec', { namedCurve: 'P-256' }, { use: 'sig', alg: 'ES256' }),
      jwk('rsa', { modulusLength: 2048 }, { use: 'sig', alg: 'RS256' }),
    ],
  },
  cookies: { keys: ['not a secret'] },
  clients: [
    {
      client_id: 'registered-before',
      client_secret: 'registered-secret',
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
      redirect_uris: ['http://localhost:1/callback'],
      response_types: ['code'],
      scope: [...SCOPES, 'offline_access'].join(' '),
    },
  ],
  // clients of MCP run on their users' machines and receive the code there
  clientDefaults: { application_type: 'native', id_token_signed_response_alg: 'ES256' },
  scopes: ['openid', 'offline_access', ...SCOPES],
  async findAccount(_context, id) {
    return { accountId: id, claims: async () => ({ sub: id }) };
  },
  interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
  ttl: { AccessToken: lifetime, Interaction: 60, Session: 600, Grant: 600 },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    introspection: { enabled: true, allowedPolicy: async () => true },
    revocation: { enabled: true },
    clientCredentials: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    dPoP: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: async () => true,
      async getResourceServerInfo(_context, resource) {
        if (!resource.startsWith('http')) throw new errors.InvalidTarget();
        return {
          scope: SCOPES.join(' '),
          audience: resource,
          accessTokenTTL: lifetime,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        };
      },
    },
  },
});

/** Answers what a user would be asked: signs in as `ada`, and grants what the client wants. */
async function interact(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    const result = { login: { accountId: 'ada' } };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }
  const grant =
    (grantId && (await provider.Grant.find(grantId))) ||
    new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  const result = { consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

/** Registers a client without its `scope`, which would limit what it may ask for later to what it asks for first. */
async function register(request, response) {
  const chunks = await request.toArray();
  const { scope: _, ...metadata } = JSON.parse(Buffer.concat(chunks));
  request.body = metadata;
  return answer(request, response);
}

const answer = provider.callback();
server.on('request', (request, response) => {
  if (request.method === 'POST' && request.url === '/reg') return register(request, response);
  if (!request.url.startsWith('/interaction/')) return answer(request, response);
  interact(request, response).catch((error) => {
    response.writeHead(500).end(String(error));
  });
});

console.log(issuer);
process.stdin.resume().on('end', () => process.exit(0));
