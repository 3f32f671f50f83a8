"""What importing a long log costs: lines.py DEEPGEN -o lines.json [--lines 1000000]

For each log of tests/workload/logs, one of so many lines: its own lines over and over, with the first number of each changed, so that
problems differ. The lines of a trace in JSON are events. Wall time, CPU time, and the most memory that the process had; medians of the
runs.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import tempfile
import time

LOGS = pathlib.Path(__file__).resolve().parents[2] / "tests/workload/logs"
SIZES = 500  # as many numbers take the place of the first one


def lines_of(text, count):
    """So many lines; headers of CSV once."""
    own = text.splitlines()
    first = [own.pop(0)] if "," in own[0] and not re.search(r"\d", own[0]) else []
    yield from first
    for i in range(count - len(first)):
        line = own[i % len(own)]
        yield re.sub(r"(?<![\w.-])(\d{2,4})(?![\w.])", str(64 + i // len(own) % SIZES * 8), line, count=1)


def write(log, path, count):
    text = log.read_text()
    if log.suffix == ".json":
        trace = json.loads(text)
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        with open(path, "w") as file:
            file.write("[\n" + ",\n".join(json.dumps(dict(events[i % len(events)], ts=i)) for i in range(count)) + "\n]\n")
        return
    with open(path, "w") as file:
        for line in lines_of(text, count):
            file.write(line + "\n")


def measure(deepgen, log, folder):
    """Seconds, MiB, seconds of CPU."""
    begin = time.monotonic()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writer, 1)
        os.execl(deepgen, deepgen, "import", str(log), "-o", str(folder / "out.json"), "--rows", "1")
    os.close(writer)
    said = open(reader).read()
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{log.name}: the import failed\n{said}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("deepgen")
    parser.add_argument("-o", required=True)
    parser.add_argument("--lines", type=int, default=1000000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--logs", nargs="+", default=sorted(log.name for log in LOGS.iterdir()))
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for log in (LOGS / name for name in options.logs):
            path = folder / log.name
            write(log, path, options.lines)
            runs = [measure(os.path.abspath(options.deepgen), path, folder) for _ in range(options.runs)]
            results[log.name] = {"lines": options.lines, "mebibytes_of_log": round(path.stat().st_size / 2**20, 1),
                                 "seconds": round(statistics.median(r[0] for r in runs), 3),
                                 "cpu_seconds": round(statistics.median(r[2] for r in runs), 3),
                                 "mebibytes": round(max(r[1] for r in runs), 1),
                                 "problems": len(json.loads((folder / "out.json").read_text())["problems"])}
            print(log.name, results[log.name], flush=True)
            path.unlink()
    pathlib.Path(options.o).write_text(json.dumps(results, indent=1) + "\n")


main()
