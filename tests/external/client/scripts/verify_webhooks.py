# Verifies messages by the package standardwebhooks: one of JSON a line, with its headers, its body and a secret.
import json, sys
from standardwebhooks.webhooks import Webhook

verified = 0
for line in sys.stdin:
    message = json.loads(line)
    Webhook(message["secret"]).verify(message["body"], message["headers"])
    verified += 1
print(verified)
