#!/usr/bin/env python3
"""Counts the instructions of a request of which thousands are in one pipe, so that most are read before the replies to others:
those of 4,200 lines in addition to those of 200, of this crate's server and of the one without a framework.

    tests/bench/pipelined.py               # build, count, print
    tests/bench/pipelined.py --no-build

Needs Linux, cargo, Python 3.10 and valgrind. Every reply is checked.
"""

import argparse
import json
import re
import subprocess
import tempfile

import run

FEW, MANY = 200, 4_200
FLAGS = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]


def lines(count):
    params = {"name": "echo", "arguments": {"message": "hello"}, "_meta": run.META}
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": params}
    return "".join(json.dumps({**call, "id": id}) + "\n" for id in range(count)).encode()


def instructions(peer, count):
    with tempfile.NamedTemporaryFile("r", suffix=".vg") as log:
        command = ["valgrind", *FLAGS, f"--log-file={log.name}", str(run.binary(peer)), *run.PEERS[peer][2]]
        ended = subprocess.run(command, input=lines(count), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        replies = [json.loads(line) for line in ended.stdout.splitlines()]
        assert sorted(reply["id"] for reply in replies) == list(range(count))
        assert all(reply["result"]["content"][0]["text"] == "hello" for reply in replies)
        return int(re.findall(r"I +refs: +([\d,]+)", log.read())[-1].replace(",", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-build", action="store_true")
    if not parser.parse_args().no_build:
        run.build()
    raw = None
    for peer in ["raw", "mcp-runtime"]:
        each = (instructions(peer, MANY) - instructions(peer, FEW)) / (MANY - FEW)
        raw = raw or each
        print(f"{peer}: {each:,.0f} instructions a request, {each / raw:.2f} times as many as without a framework")


if __name__ == "__main__":
    main()
