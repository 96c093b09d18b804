#!/usr/bin/env python3
"""Measures what an event costs that many have subscribed to: the CPU time of the server for each delivery and for each
emission, and the memory that a subscription takes, with one type of event and with more.

    tests/bench/events.py                 # build, measure, print the table
    tests/bench/events.py --write         # and put it into docs/performance.md, and the figures into results/events.json
    tests/bench/events.py --no-build

Needs Linux, cargo and Python 3.10. All subscriptions are streams of one connection over stdio. The CPU time of the server is
read from its clocks before and after each load, so that another load on the machine changes little; every subscription must
get every event once.
"""

import argparse
import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import page

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target" / "bench"))
SERVER = TARGET / "release" / "events"
EMISSIONS = 20
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "events", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def cpu(pid):
    """Seconds on a CPU, of all threads that exist."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def resident(pid):
    """KiB in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


class Server:
    def __init__(self, other_types):
        environment = os.environ | {"OTHER_TYPES": str(other_types)}
        self.child = subprocess.Popen([SERVER], stderr=subprocess.DEVNULL, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.pid = self.child.pid
        self.id = 0

    def send(self, method, params):
        self.id += 1
        message = {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params | {"_meta": META}}
        self.child.stdin.write(json.dumps(message).encode() + b"\n")

    def read(self):
        line = self.child.stdout.readline()
        assert line, "the server has ended"
        return json.loads(line)

    def emit(self):
        """Emits one event, and returns the subscriptions that get it, with how often."""
        self.send("tools/call", {"name": "emit", "arguments": {}})
        self.child.stdin.flush()
        got, replied = Counter(), False
        while not replied or got.total() < self.subscribed:
            message = self.read()
            if message.get("method") == "notifications/events/event":
                assert message["params"]["data"] == {"text": "hello"}, message
                got[json.dumps(message["params"]["_meta"], sort_keys=True)] += 1
            elif message.get("id") == self.id:
                assert message["result"]["content"][0]["text"] == "emitted", message
                replied = True
            else:
                assert message["method"] == "notifications/events/heartbeat", message
        return got

    def subscribe(self, count):
        for room in range(count):
            self.send("events/stream", {"name": "message.sent", "arguments": {"room": room}})
            if room % 200 == 199 or room + 1 == count:
                self.child.stdin.flush()
                for _ in range(room % 200 + 1):
                    message = self.read()
                    assert message.get("method") == "notifications/events/active", message
        self.subscribed = count

    def end(self):
        self.child.stdin.close()
        self.child.stdout.read()
        assert self.child.wait(30) == 0


def measure(subscriptions, other_types):
    server = Server(other_types)
    server.subscribe(0)
    server.emit()
    before = resident(server.pid)
    server.subscribe(subscriptions)
    taken = (resident(server.pid) - before) / max(subscriptions, 1)
    first = server.emit()
    assert len(first) == subscriptions and set(first.values()) <= {1}, "each subscription gets an event once"
    start = cpu(server.pid)
    for _ in range(EMISSIONS):
        assert server.emit() == first, "each subscription gets an event once"
    spent = cpu(server.pid) - start
    loaded = resident(server.pid)
    server.end()
    return spent, taken, loaded


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--write", action="store_true", help="replace the table of docs/performance.md")
    arguments = parser.parse_args()
    if not arguments.no_build:
        manifest = HERE / "cluster" / "Cargo.toml"
        subprocess.run(
            ["cargo", "build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", TARGET, "--bin", "events"],
            check=True,
        )
    lines = [
        f"{page.machine()}.", "",
        "| subscriptions | types of events | CPU per emission | CPU per delivery | memory per subscription | memory in all |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    runs = []
    for subscriptions, other_types in [(100, 0), (1_000, 0), (10_000, 0), (10_000, 20)]:
        spent, taken, loaded = measure(subscriptions, other_types)
        each = spent / EMISSIONS
        lines.append(
            f"| {subscriptions:,} | {other_types + 1} | {each * 1e3:.3g} ms | {each * 1e6 / subscriptions:.1f} µs"
            f" | {taken:.1f} KiB | {loaded / 1024:.0f} MiB |"
        )
        runs.append({
            "subscriptions": subscriptions, "types": other_types + 1, "cpu_s_per_emission": each,
            "kib_per_subscription": taken, "kib_in_all": loaded,
        })
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.write:
        page.write("events", text, runs)


if __name__ == "__main__":
    main()
