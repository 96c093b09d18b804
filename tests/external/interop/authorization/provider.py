"""An authorization server with Authlib, whose only user agrees to everything.

usage: provider.py SECONDS

Access tokens are JWTs that live for so many seconds. Prints the issuer's URL. `/browse?url=..` answers as that of
`provider.mjs`: with the redirect to the client.
"""

import sys
import threading
import time
from types import SimpleNamespace
from urllib.parse import urlsplit

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants, list_to_scope, scope_to_list
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, jsonify, redirect, request
from joserfc.jwk import ECKey, KeySet
from werkzeug.serving import make_server

SECONDS = int(sys.argv[1])
SCOPES = ["notes:read", "notes:write"]
KEYS = KeySet([ECKey.generate_key("P-256", {"kid": "authlib", "use": "sig", "alg": "ES256"})])

app = Flask("issuer")
http = make_server("127.0.0.1", 0, app, threaded=True)
ISSUER = f"http://127.0.0.1:{http.port}"
clients, codes, refresh_tokens = {}, {}, {}
USER = SimpleNamespace(get_user_id=lambda: "ada")
# the resource of the token that this thread makes
resource = threading.local()


class Client(ClientMixin):
    """A client that has registered itself."""

    def __init__(self, client_id, metadata):
        self.client_id, self.client_metadata, self.client_info = client_id, metadata, {"client_id": client_id}

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return self.client_metadata["redirect_uris"][0]

    def get_allowed_scope(self, scope):
        return list_to_scope([name for name in scope_to_list(scope) or [] if name in SCOPES])

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.client_metadata["redirect_uris"]

    def check_client_secret(self, client_secret):
        return False

    def check_endpoint_auth_method(self, method, endpoint):
        return method == "none"

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in ("authorization_code", "refresh_token")


class AuthorizationCode(SimpleNamespace):
    """A code, until it is used."""

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]

    def save_authorization_code(self, code, request):
        data = request.payload.data
        codes[code] = AuthorizationCode(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.payload.scope,
            resource=data["resource"],
            code_challenge=data["code_challenge"],
            code_challenge_method=data["code_challenge_method"],
        )

    def query_authorization_code(self, code, client):
        found = codes.get(code)
        return found if found and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code):
        del codes[authorization_code.code]

    def authenticate_user(self, authorization_code):
        resource.value = authorization_code.resource
        return USER


class RefreshGrant(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        return refresh_tokens.get(refresh_token)

    def authenticate_user(self, refresh_token):
        resource.value = refresh_token.resource
        return USER

    def revoke_old_credential(self, refresh_token):
        refresh_tokens.pop(refresh_token.token, None)


class RefreshToken(SimpleNamespace):
    """A refresh token, until it is used."""

    def check_client(self, client):
        return client.client_id == self.client_id

    def get_scope(self):
        return self.scope


class Tokens(JWTBearerTokenGenerator):
    def get_jwks(self):
        return KEYS

    def get_audiences(self, client, user, scope):
        return resource.value

    def _get_expires_in(self, client, grant_type):
        return SECONDS


class Registration(ClientRegistrationEndpoint):
    def authenticate_token(self, request):
        return "anyone"

    def resolve_public_key(self, request):
        return None

    def get_server_metadata(self):
        return None

    def save_client(self, client_info, client_metadata, request):
        client = Client(client_info["client_id"], client_metadata)
        clients[client.client_id] = client
        return client


def save_token(token, oauth_request):
    if "refresh_token" in token:
        refresh_tokens[token["refresh_token"]] = RefreshToken(
            token=token["refresh_token"],
            client_id=oauth_request.client.client_id,
            scope=token["scope"],
            resource=resource.value,
        )


app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
server = AuthorizationServer(app, query_client=clients.get, save_token=save_token)
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(RefreshGrant)
server.register_token_generator("default", Tokens(ISSUER, alg="ES256", refresh_token_generator=lambda **_: f"refresh-{time.time_ns()}"))
server.register_endpoint(Registration)


@app.get("/.well-known/oauth-authorization-server")
def metadata():
    return jsonify(
        issuer=ISSUER,
        authorization_endpoint=f"{ISSUER}/authorize",
        token_endpoint=f"{ISSUER}/token",
        registration_endpoint=f"{ISSUER}/register",
        jwks_uri=f"{ISSUER}/keys",
        response_types_supported=["code"],
        grant_types_supported=["authorization_code", "refresh_token"],
        code_challenge_methods_supported=["S256"],
        token_endpoint_auth_methods_supported=["none"],
        scopes_supported=SCOPES,
    )


@app.get("/keys")
def keys():
    return jsonify(KEYS.as_dict(private=False))


@app.get("/authorize")
def authorize():
    grant = server.get_consent_grant(end_user=USER)
    return server.create_authorization_response(grant_user=USER, grant=grant)


@app.post("/token")
def token():
    return server.create_token_response()


@app.post("/register")
def register():
    return server.create_endpoint_response("client_registration")


@app.get("/browse")
def browse():
    url = urlsplit(request.args["url"])
    answer = app.test_client().get(f"{url.path}?{url.query}", base_url=ISSUER)
    return redirect(answer.headers["location"]) if "location" in answer.headers else (answer.data, 500)


print(ISSUER, flush=True)
http.serve_forever()
