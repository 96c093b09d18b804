#!/usr/bin/env python3
"""Measures what replicas and the store that they share cost: the CPU time of a call, a call that has a rate, a call that is
consumed once, a task, a change and an event, with one replica and with three, with a store and without.

    tests/bench/cluster.py                 # build, measure, print the table
    tests/bench/cluster.py --write         # and put it into docs/performance.md, and the figures into results/cluster.json
    tests/bench/cluster.py --no-build
    tests/bench/cluster.py --instructions  # of an `echo` with a store, as a multiple of one without (valgrind)

Needs Linux, cargo, Python 3.10 and `redis-server`. The CPU time of a process is read from its clocks before and after a
load, so that another load on the machine changes little; every reply is checked.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import page

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target" / "bench"))
SERVER = TARGET / "release" / "bench-replica"
KEYS = "4f1a6c0b93d27e58a1f0c3b4d5e697788a9bacbdcedf00112233445566778899"
CONNECTIONS = 24
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
FORMS = {"elicitation": {"form": {}}}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until_accepted(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"nothing listens at {port}")


def cpu(pid):
    """Seconds on a CPU, of all threads that exist."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


class Process:
    def __init__(self, command, port, environment=None):
        self.port = port
        self.child = subprocess.Popen(
            command, env={**os.environ, "MCP_LOG": "off", **(environment or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until_accepted(port)

    def cpu(self):
        return cpu(self.child.pid)

    def stop(self):
        self.child.kill()
        self.child.wait()


def redis_version():
    text = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"v=([\d.]+)", text)[1]


def redis():
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    return Process(command, port)


def replica(store, before=()):
    port = free_port()
    environment = {"MCP_SERVER_KEYS": KEYS}
    if store:
        environment["MCP_SHARED"] = f"redis://127.0.0.1:{store.port}"
    return Process([*before, str(SERVER), "--http", f"127.0.0.1:{port}"], port, environment)


def request(method, params, capabilities=None):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: {method}\r\n"
        + (f"Mcp-Name: {params['name']}\r\n" if "name" in params else "")
        + f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def call(name, arguments, capabilities=None, **more):
    return request("tools/call", {"name": name, "arguments": arguments, **more}, capabilities)


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, rest = self.buffer.split(b"\r\n\r\n", 1)
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        while len(rest) < length:
            self.more()
            rest = self.buffer.split(b"\r\n\r\n", 1)[1]
        self.buffer = rest[length:]
        return json.loads(rest[:length])

    def more(self):
        received = self.socket.recv(65536)
        if not received:
            raise RuntimeError("the connection has ended")
        self.buffer += received


def all_at_once(connections, requests):
    for connection, data in zip(connections, requests):
        connection.send(data)
    return [connection.receive() for connection in connections]


def is_text(reply, text):
    assert reply.get("result", {}).get("content", [{}])[0].get("text") == text, reply


def echoes(connections):
    for reply in all_at_once(connections, [call("echo", {"message": "hello"})] * len(connections)):
        is_text(reply, "hello")


def limited(connections):
    for reply in all_at_once(connections, [call("limited", {"message": "hello"})] * len(connections)):
        is_text(reply, "hello")


def payments(connections):
    asked = all_at_once(connections, [call("pay", {}, FORMS)] * len(connections))
    answer = {"agreed": {"action": "accept", "content": {"value": True}}}
    # each at another replica than the one that has asked
    states = [reply["result"]["requestState"] for reply in asked]
    states = states[1:] + states[:1]
    retries = [call("pay", {}, FORMS, inputResponses=answer, requestState=state) for state in states]
    for reply in all_at_once(connections, retries):
        is_text(reply, "paid")


def tasks(name):
    def load(connections):
        for reply in all_at_once(connections, [call(name, {}, TASKS)] * len(connections)):
            assert reply["result"]["resultType"] == "task", reply

    return load


def polls(connections):
    """Polls of one task for each connection, which the warming up has created."""
    if not POLLED:
        created = all_at_once(connections, [call("job", {}, TASKS)] * len(connections))
        ids = [reply["result"]["taskId"] for reply in created]
        # each at another replica than the one that runs it
        POLLED.extend(ids[1:] + ids[:1])
    for reply in all_at_once(connections, [request("tasks/get", {"taskId": task}, TASKS) for task in POLLED]):
        assert reply["result"]["status"] in ("working", "completed"), reply


def changes(connections):
    for reply in all_at_once(connections, [call("touch", {})] * len(connections)):
        is_text(reply, "touched")


def events(connections):
    for reply in all_at_once(connections, [call("emit", {})] * len(connections)):
        is_text(reply, "emitted")


class Listener(Connection):
    """A stream that a thread reads, so that no buffer of the system fills up."""

    def __init__(self, port, method, params, acknowledged):
        super().__init__(port)
        self.send(request(method, params))
        while acknowledged not in self.buffer:
            self.more()
        self.socket.settimeout(None)
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        try:
            while self.socket.recv(1 << 20):
                pass
        except OSError:
            pass


def listen(port):
    wanted = {"resourceSubscriptions": ["bench://state"]}
    changed = Listener(port, "subscriptions/listen", {"notifications": wanted}, b"acknowledged")
    emitted = Listener(port, "events/stream", {"name": "message.sent"}, b"events/active")
    return [changed, emitted]


# the tasks that are polled
POLLED = []
LOADS = {
    "`echo`": (echoes, 400),
    "a call that has a rate": (limited, 200),
    "a call with `consume_once`, and the call that asks before": (payments, 80),
    "a task, from its creation to its result": (tasks("job"), 60),
    "a task that may run again, with `task(restart)`": (tasks("job_again"), 60),
    "a poll of a task": (polls, 200),
    "a change, with a subscriber at each replica": (changes, 80),
    "an event, with a subscriber at each replica": (events, 80),
}


def measure(replicas, store):
    connections = [Connection(replicas[n % len(replicas)].port) for n in range(CONNECTIONS)]
    listeners = [stream for one in replicas for stream in listen(one.port)]
    time.sleep(0.5)
    figures = {}
    POLLED.clear()
    for name, (load, rounds) in LOADS.items():
        for _ in range(5):
            load(connections)
        time.sleep(0.3)
        began = [sum(one.cpu() for one in replicas), store.cpu() if store else 0]
        for _ in range(rounds):
            load(connections)
        time.sleep(0.3)
        ended = [sum(one.cpu() for one in replicas), store.cpu() if store else 0]
        figures[name] = [(e - b) / (rounds * CONNECTIONS) * 1e6 for b, e in zip(began, ended)]
    for connection in [*connections, *listeners]:
        connection.socket.close()
    return figures


def table():
    columns, rows, runs = [], {name: [] for name in LOADS}, []
    for count, number, shares in ((1, "one", False), (1, "one", True), (3, "three", True)):
        store = redis() if shares else None
        replicas = [replica(store) for _ in range(count)]
        try:
            figures = measure(replicas, store)
        finally:
            for process in [*replicas, *([store] if store else [])]:
                process.stop()
        columns.append(f"{number} replica{'s' if count > 1 else ''}{'' if shares else ', no store'}")
        for name, (servers, of_store) in figures.items():
            rows[name].append(f"{servers:.0f} µs" + (f" + {of_store:.0f} µs" if shares else ""))
            runs.append({"replicas": count, "store": shares, "load": name, "replicas_us": servers, "redis_us": of_store})
    lines = [
        f"{page.machine()}; Redis {redis_version()}.", "",
        "| CPU time of replicas + of Redis | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns),
        *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()),
    ]
    return "\n".join(lines) + "\n", runs


def counted(store, work):
    """The instructions of a server that does that, and how long it took."""
    with tempfile.NamedTemporaryFile("r", suffix=".vg") as log:
        flags = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
        server = replica(store, ["valgrind", *flags, f"--log-file={log.name}"])
        began = time.monotonic()
        connections = [Connection(server.port) for _ in range(8)]
        work(connections)
        lasted = time.monotonic() - began
        server.child.terminate()
        server.child.wait(60)
        found = re.findall(r"I +refs: +([\d,]+)", log.read())
        return int(found[-1].replace(",", "")), lasted


def instructions(shares):
    """Those of an `echo`, and those of each second: a replica looks after others, and after its connection to Redis."""
    store = redis() if shares else None
    try:
        few, of_few = counted(store, lambda connections: time.sleep(3))
        more, of_more = counted(store, lambda connections: time.sleep(13))
        a_second = (more - few) / (of_more - of_few)

        def echo(rounds):
            return lambda connections: [echoes(connections) for _ in range(rounds)]

        few, of_few = counted(store, echo(50))
        more, of_more = counted(store, echo(450))
        return (more - few - a_second * (of_more - of_few)) / (400 * 8), a_second
    finally:
        if store:
            store.stop()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--no-build", action="store_true")
    arguments.add_argument("--instructions", action="store_true")
    arguments.add_argument("--write", action="store_true", help="replace the table of docs/performance.md")
    arguments = arguments.parse_args()
    if not arguments.no_build:
        manifest = HERE / "cluster" / "Cargo.toml"
        build = ["cargo", "build", "--release", "--manifest-path", str(manifest), "--target-dir", str(TARGET)]
        subprocess.run(build, check=True)
    if arguments.instructions:
        (without, alone), (with_store, a_second) = instructions(False), instructions(True)
        print(f"`echo`: {without:.0f} instructions, with a store {with_store:.0f}: {with_store / without:.3f} times")
        print(f"at rest: {alone:.0f} instructions a second, with a store {a_second:.0f}")
        return
    text, runs = table()
    print(text, end="")
    if arguments.write:
        page.write("cluster", text, runs)


if __name__ == "__main__":
    main()
