#!/usr/bin/env python3
"""Measures servers of three tools with Redis and an HTTP service behind them: a workload adapted from the TM Dev Lab MCP
server benchmark v2, a published comparison of languages, and the same tools as 2026-07-28 calls them.

    tests/bench/shop.py                        # build, three rounds of 30 s, print the tables
    tests/bench/shop.py --no-build --rounds 1 --seconds 5
    tests/bench/shop.py --write                # and put the tables into docs/performance.md, all rounds into results/shop.json
    tests/bench/shop.py --servers mcp-runtime,rmcp

Each round runs every server once, in an order that differs from round to round, against a Redis that is filled anew. Every
answer is checked. A table is written only of three rounds of 30 s at least. Needs Linux, cargo, Node, Python 3.11 and
`redis-server`; everything stays on 127.0.0.1.

Differences from it: 50 connections of the driver in `shop/driver` instead of k6's virtual users, no ramp, shorter runs, one
machine for all processes, and an HTTP service in Rust. The numbers of the two cannot be compared.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target" / "bench-shop"))
RUST = ["mcp-runtime", "raw", "rmcp", "tower-mcp", "turbomcp"]
CONNECTIONS = 50
# calls a second that every server here can answer on one connection
RATE = 100
TOOL_COUNTS = [10, 100, 1000]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "shop", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def command(server, port, mode):
    """`mode` is `sessions` or `json`: where a server must be told, the faster of what it has for this load."""
    if server == "mcp-runtime":
        return [TARGET / "release" / "shop-mcp-runtime", "--http", f"127.0.0.1:{port}"]
    if server == "rmcp":
        return [TARGET / "release" / "shop-rmcp", str(port), mode]
    if server in RUST:
        return [TARGET / "release" / f"shop-{server}", str(port)]
    if server == "typescript":
        return ["node", TARGET / "typescript" / "server.mjs", str(port), mode]
    program = {"fastmcp": "with_fastmcp.py", "python": "with_sdk.py"}[server]
    return [TARGET / "python" / "bin" / "python", HERE / "shop" / "python" / program, str(port), mode]


SERVERS = [*RUST, "typescript", "python", "fastmcp"]


def build(servers):
    packages = ["driver", *(server for server in servers if server in RUST)]
    packages = [part for package in packages for part in ("-p", f"shop-{package}")]
    manifest = HERE / "shop" / "Cargo.toml"
    cargo = ["cargo", "build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", TARGET, *packages]
    subprocess.run(cargo, check=True)
    if "typescript" in servers:
        shutil.copytree(HERE / "shop" / "typescript", TARGET / "typescript", dirs_exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=TARGET / "typescript", check=True)
    if {"python", "fastmcp"} & set(servers):
        subprocess.run([sys.executable, "-m", "venv", TARGET / "python"], check=True)
        pip = [TARGET / "python" / "bin" / "pip", "install", "-q", "-r", HERE / "shop" / "python" / "requirements.txt"]
        subprocess.run(pip, check=True)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Process:
    def __init__(self, arguments, port, environment=None, log=subprocess.DEVNULL):
        self.port = port
        self.begun = time.monotonic()
        self.child = subprocess.Popen(
            [str(argument) for argument in arguments], env={**os.environ, "MCP_LOG": "off", **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
        )
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.child.poll() is not None or time.monotonic() > self.begun + 60:
                    self.stop()
                    raise RuntimeError(f"{arguments[0]} does not listen") from None
                time.sleep(0.002)

    def cpu(self):
        """Seconds on a CPU, of all threads that the process has had."""
        return time.clock_gettime((~self.child.pid) << 3 | 2)

    def memory(self, key):
        """MiB; `VmRSS` is what it has now, `VmHWM` the most it had."""
        for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) / 1024
        raise RuntimeError(key)

    def stop(self):
        self.child.kill()
        self.child.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def driver(*arguments):
    run = [TARGET / "release" / "shop-driver", *arguments]
    done = subprocess.run([str(part) for part in run], check=True, capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout) if done.stdout else None


def modern(port, method, params):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    headers = {
        "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": method,
    }
    connection.request("POST", "/mcp", json.dumps(body), headers)
    text = connection.getresponse().read()
    connection.close()
    lines = [line[5:] for line in text.splitlines() if line.startswith(b"data:")]
    return json.loads(lines[-1] if lines else text), len(text)


class Shop:
    """Redis and the HTTP service."""

    def __init__(self, folder):
        ports = free_port(), free_port()
        redis = ["redis-server", "--port", ports[0], "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
        self.redis = Process(redis, ports[0])
        self.api = Process([TARGET / "release" / "shop-driver", "api", ports[1]], ports[1])
        self.environment = {"SHOP_REDIS": f"redis://127.0.0.1:{ports[0]}", "SHOP_API": f"http://127.0.0.1:{ports[1]}"}

    def start(self, server, mode, **environment):
        port = free_port()
        return Process(command(server, port, mode), port, {**self.environment, **environment})

    def stop(self):
        self.redis.stop()
        self.api.stop()

    def load(self, server, mode, seconds, *options):
        """Figures of one run; an error is one, too."""
        driver("seed", self.environment["SHOP_REDIS"])
        kind = "sessions" if mode == "sessions" else "json"
        with self.start(server, kind) as process:
            idle = process.memory("VmRSS")
            before = process.cpu()
            figures = driver(
                "load", process.port, mode, server, "--seconds", seconds, "--warmup", max(1, seconds / 10), *options
            )
            figures["cpu_ms"] = (process.cpu() - before) * 1e6 / max(figures["all_calls"], 1) / 1e3
            figures["idle_mib"], figures["loaded_mib"] = idle, process.memory("VmHWM")
            return figures

    def cold_start(self, server):
        """Milliseconds from the start of a process to its first answer."""
        with self.start(server, "json") as process:
            modern(process.port, "tools/list", {})
            return {"start_ms": (time.monotonic() - process.begun) * 1e3}

    def tools_list(self, server, count):
        """Microseconds of CPU for a `tools/list` of all pages, and its bytes."""
        with self.start(server, "json", SHOP_TOOLS=str(count - 3)) as process:
            def read():
                tools, size, params = 0, 0, {}
                while True:
                    reply, length = modern(process.port, "tools/list", params)
                    tools, size = tools + len(reply["result"]["tools"]), size + length
                    if not reply["result"].get("nextCursor"):
                        return tools, size
                    params = {"cursor": reply["result"]["nextCursor"]}

            tools, size = read()
            assert tools == count, f"{server} lists {tools} tools"
            before, runs = process.cpu(), 20
            for _ in range(runs):
                read()
            return {"list_us": (process.cpu() - before) * 1e6 / runs, "list_bytes": size}


def measure(servers, rounds, seconds):
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(folder)
        try:
            for round_ in range(rounds):
                shift = round_ % len(servers)
                order = servers[shift:] + servers[:shift]
                for server in order:
                    scenarios = {
                        "sessions": lambda: shop.load(server, "sessions", seconds, "--connections", CONNECTIONS),
                        "closed": lambda: shop.load(server, "modern", seconds),
                        "open": lambda: shop.load(server, "modern", seconds, "--rate", RATE),
                        "start": lambda: shop.cold_start(server),
                    }
                    if server != "turbomcp":
                        for count in TOOL_COUNTS:
                            scenarios[f"list {count}"] = lambda count=count: shop.tools_list(server, count)
                    for scenario, run in scenarios.items():
                        try:
                            figures = run()
                        except (RuntimeError, AssertionError, KeyError, ValueError, OSError) as error:
                            figures = {"failed": f"{type(error).__name__}: {error}"}
                        if figures.get("errors"):
                            figures["failed"] = figures["first_error"]
                        print(f"round {round_ + 1}, {server}, {scenario}: {json.dumps(figures)}", file=sys.stderr)
                        runs.append({"round": round_ + 1, "server": server, "scenario": scenario, **figures})
        finally:
            shop.stop()
    return runs


def cell(runs, server, scenario, figure, digits=0):
    """The median, and the lowest and highest where there are several."""
    of_server = [run for run in runs if (run["server"], run["scenario"]) == (server, scenario)]
    if not of_server:
        return "–"
    if any("failed" in run for run in of_server):
        return "failed"
    # the slowest of a thousand says little of fewer calls
    if figure == "p999_ms" and min(run["calls"] for run in of_server) < 2000:
        return "–"
    values = [run[figure] for run in of_server]
    text = f"{statistics.median(values):,.{digits}f}"
    spread = f" ({min(values):,.{digits}f}–{max(values):,.{digits}f})" if len(values) > 1 else ""
    return text + spread


def ahead(runs, servers, columns):
    """Who is ahead of this crate by the median, in which column: what it loses at. Ranges of rounds may overlap."""
    found = []
    for title, scenario, figure in columns:
        def values(server):
            return [run[figure] for run in runs if (run["server"], run["scenario"]) == (server, scenario) and figure in run]

        ours, names = values("mcp-runtime"), []
        for server in servers:
            theirs = values(server)
            if not ours or not theirs or server == "mcp-runtime":
                continue
            sign = -1 if figure == "per_second" else 1
            ours_, theirs = [sign * value for value in ours], [sign * value for value in theirs]
            if statistics.median(theirs) < statistics.median(ours_):
                names.append(f"`{server}`" + ("" if max(theirs) < min(ours_) else " (ranges overlap)"))
        if names:
            found.append(f"{title}: {', '.join(names)}")
    return f"Ahead of this crate: {'; '.join(found) or 'none'}."


def table(head, rows):
    return "\n".join([f"| {' | '.join(head)} |", f"|---{'|---:' * (len(head) - 1)}|", *(f"| {' | '.join(row)} |" for row in rows)])


def tables(runs, servers, rounds, seconds):
    parts = [
        f"{page.machine()}; {rounds} interleaved rounds of {seconds:g} s, median (lowest–highest).",
        f"A session of 2025-11-25 for each call, {CONNECTIONS} connections (adapted from the TM Dev Lab MCP server benchmark v2; "
        "times in ms):",
        table(
            ["", "CPU per call", "calls/s", "p50", "p99", "MiB idle", "MiB loaded"],
            [
                [f"`{server}`", cell(runs, server, "sessions", "cpu_ms", 3), cell(runs, server, "sessions", "per_second"),
                 cell(runs, server, "sessions", "p50_ms", 1), cell(runs, server, "sessions", "p99_ms", 1),
                 cell(runs, server, "sessions", "idle_mib", 1), cell(runs, server, "sessions", "loaded_mib", 1)]
                for server in servers
            ],
        ),
        ahead(runs, servers, [
            ("CPU", "sessions", "cpu_ms"), ("calls/s", "sessions", "per_second"), ("p50", "sessions", "p50_ms"),
            ("p99", "sessions", "p99_ms"), ("MiB idle", "sessions", "idle_mib"), ("MiB loaded", "sessions", "loaded_mib"),
        ]),
        f"2026-07-28 on one connection, one call after another, and {RATE} calls a second from when each was due (ms):",
        table(
            ["", "CPU per call", "calls/s", "p50", "p99", "p99.9", f"p50 at {RATE}/s", "p99", "p99.9"],
            [
                [f"`{server}`", cell(runs, server, "closed", "cpu_ms", 3), cell(runs, server, "closed", "per_second"),
                 *(cell(runs, server, scenario, figure, 2) for scenario in ["closed", "open"] for figure in ["p50_ms", "p99_ms", "p999_ms"])]
                for server in servers
            ],
        ),
        ahead(runs, servers, [
            ("CPU", "closed", "cpu_ms"), ("calls/s", "closed", "per_second"), ("p50", "closed", "p50_ms"),
            ("p99", "closed", "p99_ms"), ("p99.9", "closed", "p999_ms"), (f"p50 at {RATE}/s", "open", "p50_ms"),
            (f"p99 at {RATE}/s", "open", "p99_ms"), (f"p99.9 at {RATE}/s", "open", "p999_ms"),
        ]),
        "From start to first answer (ms), and the CPU time (µs) and bytes of `tools/list` at so many tools, all pages:",
        table(
            ["", "start", *(f"{count} tools" for count in TOOL_COUNTS), *(f"bytes at {count}" for count in TOOL_COUNTS)],
            [
                [f"`{server}`", cell(runs, server, "start", "start_ms"),
                 *(cell(runs, server, f"list {count}", "list_us") for count in TOOL_COUNTS),
                 *(cell(runs, server, f"list {count}", "list_bytes") for count in TOOL_COUNTS)]
                for server in servers
            ],
        ),
    ]
    parts.append(ahead(runs, servers, [
        ("start", "start", "start_ms"), *((f"{count} tools", f"list {count}", "list_us") for count in TOOL_COUNTS),
        *((f"bytes at {count}", f"list {count}", "list_bytes") for count in TOOL_COUNTS),
    ]))
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--servers", default=",".join(SERVERS))
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    servers = options.servers.split(",")
    if unknown := set(servers) - set(SERVERS):
        parser.error(f"unknown servers: {', '.join(unknown)}")
    if options.write and (options.rounds < 3 or options.seconds < 30 or servers != SERVERS):
        parser.error("the page has three rounds of 30 s of all servers")
    if not options.no_build:
        build(servers)
    runs = measure(servers, options.rounds, options.seconds)
    for run in runs:
        for name in ["p50", "p99", "p999", "max"]:
            if f"{name}_us" in run:
                run[f"{name}_ms"] = run[f"{name}_us"] / 1e3
    text = tables(runs, servers, options.rounds, options.seconds)
    print(text)
    if options.write:
        page.write("shop", text, runs)


if __name__ == "__main__":
    main()
