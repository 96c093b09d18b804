"""An authorization server whose only user is signed in and consents to everything, so that clients can be run without a
browser. Prints its issuer; ends with its stdin.

    python authlib_server.py LIFETIME

LIFETIME: of access tokens, in seconds. They are JWTs for the resource that the client names.
"""

import secrets
import sys
import threading
import time

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin, ClientMixin, TokenMixin
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter
from flask import Flask, jsonify, request
from joserfc.jwk import ECKey, KeySet
from werkzeug.serving import make_server

LIFETIME = int(sys.argv[1]) if len(sys.argv) > 1 else 3600
SCOPES = ["notes:read", "notes:write"]

app = Flask(__name__)
http = make_server("127.0.0.1", 0, app, threaded=True)
ISSUER = f"http://127.0.0.1:{http.server_port}"
KEYS = KeySet([ECKey.generate_key("P-256", {"kid": "ec", "use": "sig", "alg": "ES256"}, private=True)])

clients, codes, tokens = {}, {}, {}
lock = threading.Lock()


class User:
    def get_user_id(self):
        return "ada"


ADA = User()


class RegisteredClient(ClientMixin):
    def __init__(self, info, metadata):
        self.info, self.metadata = info, metadata

    def get_client_id(self):
        return self.info["client_id"]

    def get_default_redirect_uri(self):
        return self.metadata["redirect_uris"][0]

    def get_allowed_scope(self, scope):
        return " ".join(wanted for wanted in (scope or "").split() if wanted in SCOPES)

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.metadata["redirect_uris"]

    def check_client_secret(self, client_secret):
        return secrets.compare_digest(client_secret, self.info["client_secret"])

    def check_endpoint_auth_method(self, method, endpoint):
        return method == self.metadata.get("token_endpoint_auth_method", "client_secret_basic")

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in self.metadata.get("grant_types", ["authorization_code"])


class Code(dict, AuthorizationCodeMixin):
    def get_redirect_uri(self):
        return self["redirect_uri"]

    def get_scope(self):
        return self["scope"]

    @property
    def code_challenge(self):
        return self["code_challenge"]

    @property
    def code_challenge_method(self):
        return self["code_challenge_method"]


class Token(dict, TokenMixin):
    def check_client(self, client):
        return self["client_id"] == client.get_client_id()

    def get_scope(self):
        return self["scope"]

    def get_expires_in(self):
        return LIFETIME

    def is_expired(self):
        return False

    def is_revoked(self):
        return self.get("revoked", False)

    def get_user(self):
        return ADA

    def get_client(self):
        return clients[self["client_id"]]


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"]

    def save_authorization_code(self, code, request):
        data = request.payload.data
        codes[code] = Code(
            client_id=request.client.get_client_id(),
            redirect_uri=request.payload.redirect_uri,
            scope=request.payload.scope,
            resource=data.get("resource"),
            code_challenge=data.get("code_challenge"),
            code_challenge_method=data.get("code_challenge_method"),
        )

    def query_authorization_code(self, code, client):
        found = codes.get(code)
        return found if found and found["client_id"] == client.get_client_id() else None

    def delete_authorization_code(self, code):
        codes.pop(code.get("code"), None)
        for key in [key for key, value in codes.items() if value is code]:
            del codes[key]

    def authenticate_user(self, authorization_code):
        return ADA


class RefreshGrant(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"]
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        with lock:
            token = tokens.get(refresh_token)
            # a token that is used twice was stolen: neither use may go on
            if token is None or token.is_revoked():
                return None
            return token

    def authenticate_user(self, refresh_token):
        return ADA

    def revoke_old_credential(self, refresh_token):
        with lock:
            refresh_token["revoked"] = True


class Registration(ClientRegistrationEndpoint):
    def authenticate_token(self, request):
        return True

    def get_server_metadata(self):
        return metadata()

    def generate_client_info(self, request):
        return super().generate_client_info(request)

    def save_client(self, client_info, client_metadata, request):
        client = RegisteredClient(client_info, client_metadata)
        clients[client.get_client_id()] = client
        return client


class AccessTokens(JWTBearerTokenGenerator):
    def get_jwks(self):
        return KEYS.as_dict(private=True)

    def get_audiences(self, client, user, scope):
        return request.form.get("resource") or client.get_client_id()


def save_token(token, request):
    if refresh := token.get("refresh_token"):
        with lock:
            tokens[refresh] = Token(client_id=request.client.get_client_id(), scope=token.get("scope", ""))


server = AuthorizationServer(app, query_client=clients.get, save_token=save_token)
server.register_token_generator(
    "default",
    AccessTokens(
        ISSUER,
        alg="ES256",
        refresh_token_generator=lambda **_: secrets.token_urlsafe(32),
        expires_generator=lambda *_: LIFETIME,
    ),
)
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(RefreshGrant)
server.register_endpoint(Registration)


class Issuer(IssuerParameter):
    def get_issuer(self):
        return ISSUER


server.register_extension(Issuer())


def metadata():
    return {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/authorize",
        "token_endpoint": f"{ISSUER}/token",
        "registration_endpoint": f"{ISSUER}/register",
        "jwks_uri": f"{ISSUER}/jwks",
        "scopes_supported": SCOPES,
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


@app.get("/.well-known/oauth-authorization-server")
def discover():
    return jsonify(metadata())


@app.get("/jwks")
def jwks():
    return jsonify(KEYS.as_dict(private=False))


@app.post("/register")
def register():
    return server.create_endpoint_response(Registration.ENDPOINT_NAME)


@app.get("/authorize")
def authorize():
    grant = server.get_consent_grant(end_user=ADA)
    return server.create_authorization_response(grant=grant, grant_user=ADA)


@app.post("/token")
def token():
    return server.create_token_response()


def stop_with_stdin():
    sys.stdin.read()
    http.shutdown()


threading.Thread(target=stop_with_stdin, daemon=True).start()
print(ISSUER, flush=True)
http.serve_forever()
