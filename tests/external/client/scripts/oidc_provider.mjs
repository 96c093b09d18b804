// An authorization server that asks no one: its only user signs in and consents at once. It prints its issuer.
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const [scope, lifetime] = process.argv.slice(2);
const server = createServer().listen(0, '127.0.0.1', () => {
    const issuer = `http://127.0.0.1:${server.address().port}`;
    const provider = new Provider(issuer, {
        cookies: { keys: ['a key of this test'] },
        scopes: ['offline_access', scope],
        features: {
            devInteractions: { enabled: false },
            registration: { enabled: true },
            resourceIndicators: {
                enabled: true,
                useGrantedResource: () => true,
                getResourceServerInfo: (_ctx, resource) => ({
                    scope,
                    audience: resource,
                    accessTokenTTL: Number(lifetime),
                    accessTokenFormat: 'jwt',
                    jwt: { sign: { alg: 'RS256' } },
                }),
            },
        },
        interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
        issueRefreshToken: () => true,
        rotateRefreshToken: true,
        findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    });
    for (const event of ['server_error', 'grant.error', 'grant.revoked']) {
        provider.on(event, (_ctx, error) => console.log(`${event} ${error?.error_detail ?? error?.message ?? ''}`));
    }
    provider.on('refresh_token.consumed', () => console.log('refreshed'));
    const callback = provider.callback();
    server.on('request', async (req, res) => {
        if (!req.url.startsWith('/interaction/')) return callback(req, res);
        const { prompt, params, session } = await provider.interactionDetails(req, res);
        if (prompt.name === 'login') {
            return provider.interactionFinished(req, res, { login: { accountId: 'ada' } });
        }
        const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
        grant.addOIDCScope(params.scope);
        grant.addResourceScope(params.resource, scope);
        const consent = { grantId: await grant.save() };
        return provider.interactionFinished(req, res, { consent }, { mergeWithLastSubmission: true });
    });
    console.log(issuer);
});
