"""Run every benchmark of this folder, print what it prints, and keep it in RESULTS.md.

Run as `make bench` or `python benchmarks/all.py [NAME ...]`. The last lines count the aims that
were met and not met; the exit code says only whether every benchmark ran.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
NOT_MET = re.compile(r"\bnot met\b", re.IGNORECASE)
MET = re.compile(r"(?<!not )\bmet\b", re.IGNORECASE)


def machine() -> str:
    """The processor, cores and Python of this machine, without its name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    cpu = model or platform.processor() or platform.machine()
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}"


def run(script: Path) -> tuple[str, bool]:
    """What one benchmark prints (shown as it comes), and whether it ended well."""
    command = [sys.executable, "-u", str(script)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    # a benchmark whose aims are not met may say so by its exit code: 1
    return "".join(lines), process.wait() in (0, 1) and bool(lines)


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; write RESULTS.md when all were run."""
    scripts = sorted(p for p in HERE.glob("*.py") if p.name != Path(__file__).name)
    chosen = [p for p in scripts if not names or p.stem in names]
    if unknown := set(names) - {p.stem for p in scripts}:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are", *(p.stem for p in scripts))
        return 2
    parts = [f"# Results\n\n{datetime.date.today().isoformat()}, {machine()}."]
    met = missed = 0
    whole = True
    for script in chosen:
        print(f"== {script.stem}", flush=True)
        text, well = run(script)
        whole &= well
        met += len(MET.findall(text))
        missed += len(NOT_MET.findall(text))
        parts.append(f"## {script.stem}\n\n```\n{text.rstrip()}\n```")
    summary = f"aims met: {met}, not met: {missed}"
    print(summary)
    if not names:
        part = RESULTS.with_suffix(".part")
        part.write_text("\n\n".join([parts[0], summary + ".", *parts[1:]]) + "\n")
        part.replace(RESULTS)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
