#!/usr/bin/env python3
"""Builds three servers with the same two tools and two clients, measures them, and prints the table of
docs/performance.md.

    tests/bench/run.py              # build, five rounds, print the table
    tests/bench/run.py --write      # and put it into docs/performance.md, and all rounds into results/run.json
    tests/bench/run.py --rounds 1 --no-build

`raw` has no framework, `rmcp` is the official SDK. Every reply is checked. Needs Linux, cargo and Python 3.10, and
nothing else. The machine should be idle: the lowest of the rounds counts.
"""

import argparse
import http.client
import json
import os
import re
import select
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target" / "bench"))

# name in the table: folder, binary, arguments for stdio, arguments for HTTP
PEERS = {
    "raw": ("raw", "bench-raw", ["stdio"], ["http", "{port}"]),
    "rmcp": ("rmcp", "bench-rmcp", ["stdio"], ["http", "{port}"]),
    "mcp-runtime": ("peer", "bench-mcp-runtime", ["stdio"], ["--http", "127.0.0.1:{port}"]),
}
# the same for clients, which call the server of this crate: folder, binary
CLIENTS = {
    "rmcp": ("rmcp_client", "bench-client-rmcp"),
    "mcp-runtime": ("client", "bench-client-mcp-runtime"),
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
# enough that a page fault or a timer of the server does not show
STDIO_REQUESTS, HTTP_REQUESTS = 12_800, 3_200
STARTS = 20
PATIENCE = 30


def build():
    for folder in [*(peer[0] for peer in PEERS.values()), *(client[0] for client in CLIENTS.values())]:
        manifest = HERE / folder / "Cargo.toml"
        command = ["cargo", "build", "--release", "--manifest-path", str(manifest), "--target-dir", str(TARGET)]
        subprocess.run(command, check=True)


def binary(peer):
    return TARGET / "release" / PEERS[peer][1]


def client_binary(client):
    return TARGET / "release" / CLIENTS[client][1]


def cpus():
    """One CPU for this process and one for the server, where there are two."""
    all_of_them = sorted(os.sched_getaffinity(0))
    return {all_of_them[0]}, {all_of_them[-1]}


OWN, SERVERS = cpus()


def spawn(peer, arguments, **options):
    os.sched_setaffinity(0, SERVERS)
    try:
        return subprocess.Popen([str(binary(peer)), *arguments], stderr=subprocess.DEVNULL, **options)
    finally:
        os.sched_setaffinity(0, OWN)


def cpu(process):
    """The CPU time of all threads of a process, in seconds: its CPUCLOCK_SCHED."""
    return time.clock_gettime((~process.pid) << 3 | 2)


def peak_memory(process):
    """The largest resident size of a process, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def call(number, tool, modern):
    if tool == "echo":
        arguments = {"message": f"message {number:010} the quick brown fox jumps over the lazy dog"}
    else:
        arguments = {"a": number, "b": 7}
    params = {"name": tool, "arguments": arguments}
    if modern:
        params["_meta"] = META
    request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(request, separators=(",", ":")).encode(), arguments


def check(reply, tool, arguments):
    result = reply["result"]
    if tool == "echo":
        assert result["content"] == [{"type": "text", "text": arguments["message"]}], reply
    else:
        expected = {"sum": arguments["a"] + 7}
        assert result["structuredContent"] == expected, reply
        assert json.loads(result["content"][0]["text"]) == expected, reply


class Stdio:
    """A server on pipes, which has been initialized."""

    def __init__(self, peer):
        self.process = spawn(peer, PEERS[peer][2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.rest = b""
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.send([json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}).encode()])
        assert self.replies(1)[0]["result"]["protocolVersion"] == "2025-11-25"

    def send(self, messages):
        self.process.stdin.write(b"".join(message + b"\n" for message in messages))

    def replies(self, count):
        lines = []
        while len(lines) < count:
            assert select.select([self.process.stdout], [], [], PATIENCE)[0], "the server does not reply"
            chunk = os.read(self.process.stdout.fileno(), 1 << 20)
            assert chunk, "the server has ended"
            *whole, self.rest = (self.rest + chunk).split(b"\n")
            lines += whole
        assert len(lines) == count, "the server sends more than replies"
        return [json.loads(line) for line in lines]

    def run(self, tool, at_once, count):
        for start in range(1, count + 1, at_once):
            requests = {number: call(number, tool, modern=False) for number in range(start, start + at_once)}
            self.send([message for message, _ in requests.values()])
            for reply in self.replies(at_once):
                check(reply, tool, requests.pop(reply["id"])[1])

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Http:
    """A server on a loopback port, with connections that stay open."""

    def __init__(self, peer):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        arguments = [argument.format(port=port) for argument in PEERS[peer][3]]
        self.process = spawn(peer, arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.port, self.connections = port, []
        started = time.monotonic()
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), PATIENCE).close()
                return
            except ConnectionRefusedError:
                assert self.process.poll() is None and time.monotonic() - started < PATIENCE, "it does not listen"
                time.sleep(0.01)

    def run(self, tool, at_once, count):
        while len(self.connections) < at_once:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections.append(connection)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        for start in range(1, count + 1, at_once):
            pending = []
            for number, connection in enumerate(self.connections[:at_once], start):
                message, arguments = call(number, tool, modern=True)
                connection.request("POST", "/mcp", message, headers)
                pending.append((number, arguments, connection))
            for number, arguments, connection in pending:
                response = connection.getresponse()
                body = response.read()
                assert response.status == 200, (response.status, body)
                reply = json.loads(body)
                assert reply["id"] == number, reply
                check(reply, tool, arguments)

    def close(self):
        for connection in self.connections:
            connection.close()
        self.process.kill()
        self.process.wait()


# row of the table: transport, tool, requests at once, requests in total
LOADS = {
    "stdio, `echo`, one at a time": (Stdio, "echo", 1, STDIO_REQUESTS),
    "stdio, `echo`, 64 at once": (Stdio, "echo", 64, STDIO_REQUESTS),
    "stdio, `add`, 64 at once": (Stdio, "add", 64, STDIO_REQUESTS),
    "HTTP, `echo`, one at a time": (Http, "echo", 1, HTTP_REQUESTS),
    "HTTP, `echo`, 32 at once": (Http, "echo", 32, HTTP_REQUESTS),
    "HTTP, `add`, 32 at once": (Http, "add", 32, HTTP_REQUESTS),
}


# row of the table: over HTTP, calls at once, calls in total
CLIENT_LOADS = {
    "stdio, `echo`, one at a time": (False, 1, STDIO_REQUESTS),
    "stdio, `echo`, 64 at once": (False, 64, STDIO_REQUESTS),
    "HTTP, `echo`, one at a time": (True, 1, HTTP_REQUESTS),
    "HTTP, `echo`, 32 at once": (True, 32, HTTP_REQUESTS),
}


def client_load(client, over_http, at_once, count):
    """CPU seconds of a client per call; it checks the results itself."""
    server = Http("mcp-runtime") if over_http else None
    target = f"http://127.0.0.1:{server.port}/mcp" if over_http else f"{binary('mcp-runtime')} stdio"
    os.sched_setaffinity(0, SERVERS)
    try:
        process = subprocess.Popen(
            [str(client_binary(client)), target, str(at_once)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
        )  # fmt: skip
    finally:
        os.sched_setaffinity(0, OWN)

    def run(calls):
        process.stdin.write(f"{calls}\n".encode())
        assert select.select([process.stdout], [], [], 4 * PATIENCE)[0], "the client does not end"
        assert process.stdout.readline() == b"done\n", "a call failed"

    try:
        run(count // 4)
        before = cpu(process)
        run(count)
        return (cpu(process) - before) / count
    finally:
        process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        if server:
            server.close()


def load(peer, transport, tool, at_once, count):
    """CPU seconds per request, and the peak of memory."""
    server = transport(peer)
    try:
        server.run(tool, at_once, count // 4 // at_once * at_once)
        before = cpu(server.process)
        server.run(tool, at_once, count)
        return (cpu(server.process) - before) / count, peak_memory(server.process)
    finally:
        server.close()


def start(peer):
    """Seconds from the start of the process to its first reply."""
    times = []
    for _ in range(STARTS):
        started = time.perf_counter()
        server = Stdio(peer)
        times.append(time.perf_counter() - started)
        server.close()
    return statistics.median(times)


def stripped_size(program):
    copy = TARGET / "stripped"
    subprocess.run(["strip", "-o", str(copy), str(program)], check=True)
    return copy.stat().st_size


def measure(rounds):
    """The lowest figure of all rounds for each row and peer, and those of each round."""
    figures, runs = {}, []

    def keep(row, peer, value):
        runs.append({"round": number, "row": row, "peer": peer, "value": value})
        known = figures.setdefault(row, {}).get(peer, value)
        figures[row][peer] = min(known, value)

    for number in range(1, rounds + 1):
        for row, (transport, tool, at_once, count) in LOADS.items():
            print(f"round {number} of {rounds}: {row}", file=sys.stderr)
            memory = "stdio" if transport is Stdio else "HTTP"
            for peer in PEERS:
                seconds, peak = load(peer, transport, tool, at_once, count)
                keep(f"CPU per request: {row}", peer, seconds)
                keep_largest = figures.setdefault(f"memory, peak: {memory}", {})
                keep_largest[peer] = max(keep_largest.get(peer, 0), peak)
        for peer in PEERS:
            keep("start to first reply: stdio", peer, start(peer))
        for row, (over_http, at_once, count) in CLIENT_LOADS.items():
            print(f"round {number} of {rounds}: a client, {row}", file=sys.stderr)
            for client in CLIENTS:
                keep(f"CPU per call of a client: {row}", client, client_load(client, over_http, at_once, count))
    for peer in PEERS:
        figures.setdefault("binary, stripped", {})[peer] = stripped_size(binary(peer))
    for client in CLIENTS:
        figures.setdefault("binary of a client, stripped", {})[client] = stripped_size(client_binary(client))
    for row in figures:
        if not row.startswith(("CPU", "start")):
            runs.extend({"row": row, "peer": peer, "value": value} for peer, value in figures[row].items())
    return figures, runs


def shown(row, value):
    if value is None:
        return "–"
    if row.startswith("CPU"):
        return f"{value * 1e6:.1f} µs"
    if row.startswith("start"):
        return f"{value * 1e3:.1f} ms"
    return f"{value / (1 << 20):.1f} MiB"


def version(package):
    lock = (HERE / package / "Cargo.lock").read_text()
    return re.search(rf'name = "{package}"\nversion = "([^"]+)"', lock)[1]


def table(figures):
    order = sorted(figures, key=lambda row: ["CPU", "sta", "mem", "bin"].index(row[:3]))
    lines = [f"{page.machine()}; rmcp {version('rmcp')}.", "", "| | " + " | ".join(PEERS) + " |", "|---|" + "---|" * len(PEERS)]
    for row in order:
        lines.append(f"| {row} | " + " | ".join(shown(row, figures[row].get(peer)) for peer in PEERS) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--write", action="store_true", help="replace the table of docs/performance.md")
    options = parser.parse_args()
    if not options.no_build:
        build()
    figures, runs = measure(options.rounds)
    text = table(figures)
    print(text, end="")
    if options.write:
        page.write("run", text, runs)


if __name__ == "__main__":
    main()
