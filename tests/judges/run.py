#!/usr/bin/env python3
"""Runs programs of others that judge MCP servers on four examples, and holds what they find against `accepted.toml`.

A finding that is not accepted fails the run, and so does an accepted one that no longer occurs. `.ci/judges` installs the
judges and calls this. What depends on the time of the machine is left out: load, durations. Everything is on 127.0.0.1.
"""

import argparse
import collections
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs/conformance.md"
VENV = Path(sys.executable).parent.parent
BIN = {"ghostprobe": VENV.parent / "ghostprobe/venv/bin"}
SEED = "42"
LIMIT = 600


class Failure(Exception):
    """A judge that did not judge."""


class Issuer:
    """An authorization server: metadata, keys, and one token."""

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps(issuer.document(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def document(self, path):
        if path == "/keys":
            key = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
            return {"keys": [key | {"kid": "one", "use": "sig", "alg": "RS256"}]}
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }

    def token(self, resource):
        now = int(time.time())
        claims = {"iss": self.url, "aud": resource, "sub": "ada", "client_id": "judges", "jti": "one"}
        claims |= {"iat": now, "exp": now + 3600, "scope": "notes:read notes:write"}
        return jwt.encode(claims, self.key, "RS256", headers={"kid": "one", "typ": "at+jwt"})


class Server:
    """What is judged: a command, or a URL with a token."""

    def __init__(self, name, command=None, url=None, token=None):
        self.name, self.command, self.url, self.token = name, command, url, token
        self.tools = None

    def has_tools(self, count):
        """A judge has seen that many tools, as the others have: one that has not reached the server has seen none."""
        self.tools = count if self.tools is None else self.tools
        if not count or count != self.tools:
            raise Failure(f"{count} tools were seen, not {self.tools}")

    def target(self):
        return self.url or self.command

    def header(self, flag, separator=": "):
        return [flag, f"Authorization{separator}Bearer {self.token}"] if self.token else []


def start_protected(program, issuer):
    """The example `protected`, and the URL of its endpoint."""
    process = subprocess.Popen([program, "127.0.0.1:0", issuer.url], stderr=subprocess.PIPE, text=True)
    line = next((line for line in process.stderr if "listening on" in line), None)
    if line is None:
        raise Failure("`protected` has not started")
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return process, line.split()[-1] + "/mcp"


def run(judge, *arguments):
    """The standard output of a judge; its exit code only repeats what is in it."""
    program = BIN.get(judge, VENV / "bin") / judge
    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
    run.last = f"{judge} {' '.join(map(str, arguments))}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def quality(server):
    families = ["--security", "--safety", "--experimental", "--response-bloat"]
    found = json.loads(run("mcp-quality", "run", server.target(), "--json", *families, *server.header("--header")))
    findings = [(f["code"], f.get("tool")) for family in found["families"].values() for f in family["findings"]]
    return f"{found['overall']['score']:.0f} of 100", findings


def lighthouse(server):
    transport = ["--http", server.url, *server.header("--http-header", "=")] if server.url else ["--stdio", server.command]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.md"
        run("mcp-lighthouse", "scan", *transport, "--report", report)
        text = report.read_text()
    score = re.search(r"Overall Score: \*\*(\d+)/100\*\*", text)[1]
    rows = re.findall(r"^\| (\w+) \| `([\w-]+)` \| (\w+) \|", text, re.M)
    if len(rows) < 20:
        raise Failure("too few checks")
    kept = [(code, None) for status, code, family in rows if status != "Passed" and family != "performance"]
    return f"{score} of 100", kept


def probe(server):
    target = ["--url", server.url, *server.header("--header")] if server.url else ["--", server.command]
    found = json.loads(run("amagi-mcp-probe", "--strict", "--format", "json", *target))["servers"][0]
    findings = [(f["check"], f.get("tool")) for f in found["findings"]]
    statuses = collections.Counter(tool["status"] for tool in found["tools"])
    if statuses:
        server.has_tools(len(found["tools"]))
    for tool in found["tools"]:
        findings += [(f["check"], tool["name"]) for f in tool["findings"]]
    words = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    return words or "refused", sorted(set(findings), key=str)


def mcp_assert(command, *options):
    def judge(server):
        transport = ["--transport", "http", *server.header("--headers", "=")] if server.url else []
        arguments = [command, "--json", *options, *transport, "--server", server.target()]
        return json.loads(run("mcp-assert", *arguments))

    return judge


def audit(server):
    results = mcp_assert("audit")(server)["results"]
    server.has_tools(len(results))
    wrong = [(r["error_code"], r["tool"]) for r in results if r["status"] not in ("healthy", "skipped")]
    skipped = sum(r["status"] == "skipped" for r in results)
    healthy = len(results) - len(wrong) - skipped
    return f"{healthy} healthy" + (f", {skipped} skipped" if skipped else "") + (f", {len(wrong)} not" if wrong else ""), wrong


def fuzz(server):
    found = mcp_assert("fuzz", "--seed", SEED, "--timeout", "10s")(server)
    server.has_tools(len(found["tools"]))
    findings = {(f["status"], tool["tool"]) for tool in found["tools"] for f in tool.get("failures", [])}
    passed = len(found["tools"]) - len({tool for _, tool in findings})
    return f"{passed} of {len(found['tools'])} tools pass", sorted(findings)


def lint(server):
    found = mcp_assert("lint", "--strict")(server)
    server.has_tools(found["tools"])
    found = found["findings"]
    return f"{len(found)} remark{'s' * (len(found) != 1)}", sorted({(f["code"], f["tool"]) for f in found})


def ghost(server):
    findings, words = set(), []
    if server.url:
        outputs = [run("ghostprobe", "canary-http", "--json", *server.header("-H"), server.url)]
    else:
        outputs = [run("ghostprobe", command, "--json", server.command) for command in ("stdio", "canary")]
    # the report of the last one has no tools without findings; what it prints beside has their number
    seen = re.search(r"of (\d+) tools", run.last)
    server.has_tools(int(seen[1]) if seen else 0)
    for output in outputs:
        found = json.loads(output)
        findings |= {(f["owasp"], f["tool"]) for f in found["findings"]}
        words += [f"{count} {name}" for name, count in found["summary"].items() if count]
    return ", ".join(words) or "nothing", sorted(findings)


JUDGES = {
    "mcp-quality": quality,
    "mcp-lighthouse": lighthouse,
    "amagi-mcp-probe --strict": probe,
    "mcp-assert audit": audit,
    "mcp-assert fuzz": fuzz,
    "mcp-assert lint --strict": lint,
    "ghostprobe": ghost,
}


def accepted():
    with (HERE / "accepted.toml").open("rb") as file:
        return tomllib.load(file)["accepted"]


def fits(entry, judge, server, code, item):
    wanted = entry.get("items")
    return entry["judge"] == judge and server in entry["servers"] and code in entry["codes"] and (not wanted or item in wanted)


def table(scores, servers, entries, used):
    lists = [HERE / "requirements.txt", HERE / "ghostprobe/requirements.txt"]
    versions = dict(line.split("==") for file in lists for line in file.read_text().splitlines() if "==" in line)
    lines = ["| judge | " + " | ".join(f"`{name}`" for name in servers) + " |", "|---|" + "---|" * len(servers)]
    for judge in JUDGES:
        program, *rest = judge.split(" ", 1)
        name = f"`{program}` {versions[program]}" + (f", `{rest[0]}`" if rest else "")
        lines.append(f"| {name} | " + " | ".join(scores[judge, server] for server in servers) + " |")
    lines += ["", "Accepted findings:", "", "| judge | finding | in | reason |", "|---|---|---|---|"]
    for number, entry in enumerate(entries):
        codes = ", ".join(f"`{code}`" for code in entry["codes"])
        counts = ", ".join(f"`{server}` {used[number, server]}" for server in entry["servers"])
        lines.append(f"| `{entry['judge']}` | {codes} | {counts} | {entry['reason']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True, type=Path, help="where cargo builds")
    parser.add_argument("--write", action="store_true", help="put the results into docs/conformance.md")
    options = parser.parse_args()
    debug = options.target.resolve() / "debug"
    entries, used, scores, wrong = accepted(), collections.Counter(), {}, []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NOTES_DB"] = str(Path(folder) / "notes.sqlite")
        issuer = Issuer()
        protected, url = start_protected(debug / "examples/protected", issuer)
        try:
            servers = [
                Server("hello", str(debug / "hello")),
                Server("notes", str(debug / "examples/notes")),
                Server("everything", str(debug / "examples/everything")),
                Server("protected", url=url, token=issuer.token(url)),
            ]
            for server in servers:
                for judge, look in JUDGES.items():
                    try:
                        scores[judge, server.name], findings = look(server)
                    except (Failure, KeyError, OSError, TypeError, ValueError) as error:
                        raise SystemExit(f"{judge} on {server.name}: {error!r}\n{getattr(run, 'last', '')}") from error
                    print(f"{judge} on {server.name}: {scores[judge, server.name]}", flush=True)
                    for code, item in findings:
                        taken = [n for n, entry in enumerate(entries) if fits(entry, judge, server.name, code, item)]
                        used.update((n, server.name) for n in taken[:1])
                        if not taken:
                            wrong.append(f"{judge} on {server.name}: {code} in {item}")
            # without a token nothing is answered
            words, findings = probe(Server("protected", url=url))
            if not findings or words != "refused":
                wrong.append(f"`protected` answers a caller without a token: {words}")
        finally:
            protected.kill()
            protected.wait()
    for number, entry in enumerate(entries):
        for server in entry["servers"]:
            if not used[number, server]:
                wrong.append(f"accepted, but not found: {entry['judge']} on {server}: {', '.join(entry['codes'])}")
    if options.write and not wrong:
        page = PAGE.read_text()
        start, end = "<!-- results: .ci/judges --write -->\n", "<!-- end of the results -->"
        before, rest = page.split(start)
        results = table(scores, [server.name for server in servers], entries, used)
        PAGE.write_text(f"{before}{start}\n{results}\n\n{end}{rest.split(end)[1]}")
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(scores)} judgements, {len(wrong)} findings that are not accepted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
