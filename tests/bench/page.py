"""The page with the figures, docs/performance.md, and the files of all rounds that its tables are made of."""

import datetime
import json
import os
import platform
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = HERE / "results"
END = "<!-- end of the figures -->\n"


def machine():
    """The day, and what the figures were measured on."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    return (
        f"{datetime.date.today().isoformat()}; {model[1] if model else platform.machine()}, {os.cpu_count()} CPUs; "
        f"Linux {platform.release().split('-')[0]}; rustc {rustc}"
    )


def write(script, text, runs):
    """Replaces the tables that a script has made, and writes the figures of each of its runs, one a line."""
    begin = f"<!-- figures: tests/bench/{script}.py --write -->\n"
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(before + begin + "\n" + text.rstrip("\n") + "\n\n" + END + rest.split(END, 1)[1])
    lines = ",\n".join(json.dumps(run) for run in runs)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{script}.json").write_text(f'{{"measured": {json.dumps(machine())}, "runs": [\n{lines}\n]}}\n')
