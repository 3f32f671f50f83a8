#!/usr/bin/env python3
"""Tunes the rows of suite.txt on this machine's NVIDIA GPU and times the winners beside cuBLASLt's best algorithm.

Needs deepgen and deepgen-measure in one folder, Python 3.8 and the driver; README.md tells the rest.

  benchmarks/gpu/run.py --bin PREFIX/bin -o benchmarks/gpu/results/h200               all rows that it lacks
  benchmarks/gpu/run.py --bin PREFIX/bin -o benchmarks/gpu/results/h200 dec1 sq4096   these, again
  benchmarks/gpu/run.py --tables -o benchmarks/gpu/results/h200                       only the tables, without a GPU
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import tables

HERE = pathlib.Path(__file__).resolve().parent
FINALISTS = 7 # the default, and kFinalists of base/search/finalists.h
class Commands:
    """Child processes, of which none outlives this one."""
    def __init__(self):
        self.running, self.lock = set(), threading.Lock()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)

    def run(self, limit, *words):
        with self.lock:
            child = subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.running.add(child)
        try:
            out, err = child.communicate(timeout=max(limit, 1))
        except subprocess.TimeoutExpired:
            child.terminate() # deepgen-measure ends its worker then
            child.communicate()
            raise RuntimeError(f"no time left in: {' '.join(str(w) for w in words[:2])}") from None
        finally:
            self.running.discard(child)
        if child.returncode:
            raise RuntimeError(" ".join((err or out).split()) or f"exit status {child.returncode} of {words[:2]}")
        return (err.strip() or out.strip()).splitlines()[-1:]

    def stop(self, number, _):
        for child in list(self.running):
            child.terminate()
        os._exit(128 + number)


class Turns:
    """One at a time; of those who wait, the earliest row."""
    def __init__(self):
        self.waiting, self.busy, self.changed = set(), False, threading.Condition()

    @contextlib.contextmanager
    def turn(self, place):
        with self.changed:
            self.waiting.add(place)
            self.changed.wait_for(lambda: not self.busy and place == min(self.waiting))
            self.waiting.remove(place)
            self.busy = True
        try:
            yield
        finally:
            with self.changed:
                self.busy = False
                self.changed.notify_all()


class Tuner:
    def __init__(self, options, output, commands):
        self.o, self.output, self.commands, self.turns = options, output, commands, Turns()
        self.deepgen, self.measure = (pathlib.Path(options.bin) / tool for tool in ("deepgen", "deepgen-measure"))
        self.pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
        self.device = output.with_name(output.name + ".work") / "device.json"
        self.device.parent.mkdir(parents=True, exist_ok=True)
        commands.run(60, self.measure, "devices", "--arch", options.arch, "-o", self.device)
        if not json.loads(self.device.read_text())["present"]:
            sys.exit(f"run.py: no {options.arch} device is attached")

    def call(self, row, *words):
        return self.commands.run(row["end"] - time.monotonic(), *words)

    def on_device(self, row, *words):
        start = time.monotonic()
        with self.turns.turn(row["place"]):
            waited = time.monotonic() - start
            row["end"], row["start"] = row["end"] + waited, row["start"] + waited
            said = self.call(row, self.measure, *words, "--device", self.device, "--seconds", self.o.seconds)
        print(f"{row['name']:10} {' '.join(said)}", flush=True)

    def round(self, row, folder, index, slots, records):
        r = folder / f"r{index}"
        r.mkdir()
        earlier = ["--records", *records] if records else []
        kept = ["--search", self.o.search] if self.o.search else []
        self.call(row, self.deepgen, "plan", "--problem", folder / "problem.json", "--arch", self.o.arch, "--device",
                  self.device, "--round", index, "--slots", slots, *kept, *earlier, "-o", r / "plan.json")
        compiles = [self.pool.submit(self.call, row, "nice", self.deepgen, "compile", "--plan", r / "plan.json", "--slot", i,
                                     "--no-awkward", "-o", r / f"s{i:02}.dgk") for i in range(slots)]
        self.wait_for(row, compiles)
        anchor = ["--anchor", folder / "r0/s00.dgk"] if index else []
        self.on_device(row, "run", "--regime", self.o.regime, "--plan", r / "plan.json", "--kernels", r, "--slots", slots, *anchor, *earlier, "-o",
                       r / "records.jsonl")
        return r / "records.jsonl"

    def wait_for(self, row, compiles):
        began = time.monotonic()
        for compiled in compiles:
            compiled.result()
        row["compiling"] += time.monotonic() - began

    def awkward(self, row, folder, records):
        """Kernels of the finalists for awkward shapes: the default and the best others."""
        files = [folder / f"final/f{i}.dgk" for i in range(FINALISTS)]
        self.wait_for(row, [self.pool.submit(self.call, row, "nice", self.deepgen, "compile", "--finalist", i, "--records",
                                             *records, "-o", file) for i, file in enumerate(files)])
        return files

    def tell_time(self, row, logs):
        spent = {"compiling": row["compiling"]}
        for log in logs: # waiting is for other rows, or for their compiles
            for what, seconds in json.loads(log.read_text().splitlines()[0])["environment"].get("spent", {}).items():
                if what != "starts": # a part of "making"
                    spent[what] = spent.get(what, 0) + seconds
        parts = ", ".join(f"{what} {seconds:.1f}" for what, seconds in spent.items())
        print(f"{row['name']:10} {row['seconds']} s: {parts}", flush=True)

    def tune(self, row):
        folder = self.device.parent / row["name"]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "problem.json").write_text(json.dumps({
            "schema": "deepgen.problem/1", "target": "suite", "name": row["name"], "namespace": "suite",
            "problem": row["problem"], "untuned": False}))
        row["start"], row["end"], row["compiling"] = time.monotonic(), time.monotonic() + self.o.row_seconds, 0
        records, final = [], folder / "final.jsonl"
        for index, slots in enumerate(self.o.slots):
            records.append(self.round(row, folder, index, slots, records))
        awkward = self.awkward(row, folder, records)
        for _ in range(2): # an unstable one is repeated once
            extra = ["--extra", self.o.extra] if self.o.extra else []
            self.on_device(row, "playoff", "--regime", self.o.regime, *extra, "--awkward", *awkward, "--records", *records, "-o", final)
            if json.loads(final.read_text().splitlines()[0])["stable"]:
                break
        self.call(row, self.deepgen, "select", "--mode", "auto", "--device", self.device, "--problem",
                  folder / "problem.json", "--arch", self.o.arch, "--records", final, "-o", folder / "choice.json")
        row["seconds"] = round(time.monotonic() - row["start"], 1)
        self.tell_time(row, [*records, final])
        raw = self.output / "raw" / row["name"]
        raw.mkdir(parents=True, exist_ok=True)
        for index, path in enumerate(records):
            shutil.copy(path, raw / f"r{index}.jsonl")
        shutil.copy(final, raw)
        tried = [json.loads(line) for path in records for line in path.read_text().splitlines()]
        row["candidates"] = sum(line["schema"] == "deepgen.record/1" for line in tried)
        row["ok"] = sum(line.get("status") in ("ok", "dropped", "duplicate") for line in tried)
        tables.evaluate(row, json.loads((folder / "choice.json").read_text()),
                 *(json.loads(line) for line in final.read_text().splitlines()))


def main():
    os.environ["DEEPGEN_CACHE"] = "off" # everything is made and measured anew
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="names of rows; none: all that have no result yet")
    parser.add_argument("--bin", help="folder of deepgen and deepgen-measure")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, help="folder of results")
    parser.add_argument("--tables", action="store_true", help="only write the tables again")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--suite", default=HERE / "suite.txt", type=pathlib.Path)
    parser.add_argument("--slots", default=[40, 24], type=int, nargs="+", help="candidates of each round")
    parser.add_argument("--seconds", default=20, type=float, help="budget of a round's measurement")
    parser.add_argument("--regime", default="balanced", choices=["sustained", "burst", "balanced"],
                        help="what is tuned for: see Regimes in docs/tuning.md")
    parser.add_argument("--extra", default="", choices=["", "bursts", "serial", "bursts,serial"],
                        help="sustained: in the hold-out, time these regimes, too, 3 seconds each; the others time all three")
    parser.add_argument("--search", type=pathlib.Path, help="search file: templates and values that rounds may take")
    parser.add_argument("--row-seconds", default=300, type=float, help="after which a row fails")
    parser.add_argument("--at-once", default=3, type=int, help="rows under way; one of them has the GPU")
    parser.add_argument("--jobs", default=max(1, (os.cpu_count() or 1) - 2), type=int, help="compilers at once")
    o = parser.parse_args()
    (o.output / "rows").mkdir(parents=True, exist_ok=True)
    rows = list(tables.read_suite(o.suite))
    unknown = set(o.rows) - {row["name"] for row in rows}
    if unknown:
        parser.error(f"no row of {o.suite} is called {', '.join(sorted(unknown))}")
    if not o.tables:
        if not o.bin:
            parser.error("--bin is missing")
        done = {r["name"] for r in tables.write(o.suite, o.output) if "us" in r}
        rows = [row for row in rows if (row["name"] in o.rows if o.rows else row["name"] not in done)]
        tuner, writing = Tuner(o, o.output.resolve(), Commands()), threading.Lock()

        def one(place, row):
            try:
                row["place"] = place
                tuner.tune(row)
            except Exception as error: # a row of the table; the next one runs
                row["detail"] = f"{type(error).__name__}: {error}"
                print(f"{row['name']:10} failed: {row['detail']}", file=sys.stderr, flush=True)
            with writing:
                (o.output / "rows" / f"{row['name']}.json").write_text(json.dumps(
                    {c: row[c] for c in tables.COLUMNS if c in row}, indent=1) + "\n")
                tables.write(o.suite, o.output)

        with concurrent.futures.ThreadPoolExecutor(o.at_once) as threads:
            list(threads.map(one, range(len(rows)), rows))
    rows = tables.write(o.suite, o.output)
    print((o.output / "results.md").read_text())
    sys.exit(any("us" not in row for row in rows))


if __name__ == "__main__":
    main()
