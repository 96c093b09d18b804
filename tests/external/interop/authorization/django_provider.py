"""An authorization server with django-oauth-toolkit, whose access tokens are opaque.

usage: django_provider.py SECONDS

Access tokens live for so many seconds. The application `machine` gets tokens for itself, and `site` those of the user `ada`
for her password; `mcp` is the protected resource, which introspects them. Prints the issuer's URL.
"""

import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from django.conf import settings
from django.urls import include, path

settings.configure(
    SECRET_KEY="of these tests",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "oauth2_provider"],
    # which says how long a response is
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    OAUTH2_PROVIDER={
        "ACCESS_TOKEN_EXPIRE_SECONDS": int(sys.argv[1]),
        "SCOPES": {"notes:read": "reads", "notes:write": "writes"},
    },
    USE_TZ=True,
)
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from oauth2_provider.models import get_application_model  # noqa: E402

urlpatterns = [path("", include("oauth2_provider.urls"))]


class Silent(WSGIRequestHandler):
    def log_message(self, *_):
        pass


call_command("migrate", verbosity=0)
get_user_model().objects.create_user("ada", password="lovelace")
for name, secret, grant in [
    ("machine", "machine-secret", "client-credentials"),
    ("site", "site-secret", "password"),
    ("mcp", "s&cret", "client-credentials"),
]:
    get_application_model().objects.create(
        client_id=name, client_secret=secret, client_type="confidential", authorization_grant_type=grant
    )
server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Silent)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
