#!/usr/bin/env python3
"""Measures what authentication and telemetry add to a call: the instructions that valgrind counts, and the CPU time.

    tests/bench/additions.py               # build, measure, print the table
    tests/bench/additions.py --write       # and put it into docs/performance.md, and the figures into results/additions.json
    tests/bench/additions.py --no-build

Needs Linux, cargo, Python 3.10 and valgrind. The call is an `echo` of 2026-07-28 over HTTP with keep-alive, 24 at once; every
reply is checked. The CPU time is the lowest of five rounds, each with every server.
"""

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

import cluster
import page

HERE = Path(__file__).resolve().parent
SERVER = cluster.TARGET / "release" / "bench-additions"
ROUNDS, CALLS = 5, 20_000
ROWS = {
    "nothing": "",
    "a JWT of 1 KiB (ES256), verified before and valid": "jwt",
    "spans for a subscriber that keeps them, and metrics for Prometheus": "spans",
    "all of them": "jwt,spans",
}


class Server:
    def __init__(self, additions, before=()):
        port = cluster.free_port()
        environment = os.environ | {"ADDITIONS": additions, "MCP_LOG": "off"}
        command = [*before, str(SERVER), f"127.0.0.1:{port}"]
        self.child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        token = self.child.stdout.readline().strip()
        assert not token or 900 < len(token) < 1150, f"the token has {len(token)} bytes"
        cluster.until_accepted(port)
        self.connections = [cluster.Connection(port) for _ in range(cluster.CONNECTIONS)]
        call = cluster.call("echo", {"message": "hello"})
        authorization = f"Authorization: Bearer {token}\r\n".encode() if token else b""
        self.call = call.replace(b"Content-Length", authorization + b"Content-Length", 1)

    def run(self, calls):
        for _ in range(calls // cluster.CONNECTIONS):
            for reply in cluster.all_at_once(self.connections, [self.call] * cluster.CONNECTIONS):
                cluster.is_text(reply, "hello")

    def stop(self):
        self.child.terminate()
        self.child.wait(60)


def cpu_time(additions):
    """Microseconds of a call."""
    server = Server(additions)
    try:
        server.run(cluster.CONNECTIONS * 20)
        before = cluster.cpu(server.child.pid)
        server.run(CALLS)
        return (cluster.cpu(server.child.pid) - before) / CALLS * 1e6
    finally:
        server.stop()


def instructions(additions):
    """Those of a call: what a server with more calls takes in addition."""
    counted = []
    calls = [cluster.CONNECTIONS * 20, cluster.CONNECTIONS * 120]
    for count in calls:
        with tempfile.NamedTemporaryFile("r", suffix=".vg") as log:
            flags = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={log.name}"]
            server = Server(additions, ["valgrind", *flags])
            server.run(count)
            server.stop()
            counted.append(int(re.findall(r"I +refs: +([\d,]+)", log.read())[-1].replace(",", "")))
    return (counted[1] - counted[0]) / (calls[1] - calls[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--write", action="store_true", help="replace the table of docs/performance.md")
    options = parser.parse_args()
    if not options.no_build:
        manifest = HERE / "additions" / "Cargo.toml"
        command = ["cargo", "build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", cluster.TARGET]
        subprocess.run(command, check=True)
    runs = [
        {"round": number + 1, "additions": additions, "cpu_us": cpu_time(additions)}
        for number in range(ROUNDS) for additions in ROWS.values()
    ]
    lines = [f"{page.machine()}.", "", "| | instructions | CPU time |", "|---|---|---|"]
    plain = None
    for row, additions in ROWS.items():
        counted = instructions(additions)
        runs.append({"additions": additions, "instructions": counted})
        lowest = min(run["cpu_us"] for run in runs if run["additions"] == additions and "cpu_us" in run)
        plain = plain or (counted, lowest)
        lines.append(f"| {row} | {counted:,.0f} ({counted / plain[0]:.2f}) | {lowest:.1f} µs ({lowest / plain[1]:.2f}) |")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.write:
        page.write("additions", text, runs)


if __name__ == "__main__":
    main()
