#!/usr/bin/env python3
"""Compares two tunings of the suite: for each row whether they chose the same config, or two that are as fast.

  benchmarks/gpu/agree.py --bin build/ci/bin benchmarks/gpu/results/h200 benchmarks/gpu/results/h200_again [rows ...]
  benchmarks/gpu/agree.py benchmarks/gpu/results/h200 benchmarks/gpu/results/h200_again

With --bin, winners that differ are compiled and timed against each other in one process, on as many GPUs as are attached; what was
found goes to pairs.csv of the second folder, and without --bin is read from there. Verdicts are those of `deepgen-measure compare`:
a tie where the 95 % interval of the ratio lies within its noise floor (at least 0.5 %), AMBG where it reaches over the border, and
the second one's win or loss. Tunings agree where they chose the same, or where neither wins.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import subprocess
import tempfile

FIELDS = ["name", "low", "ratio", "high", "noise", "verdict"]


def read(path):
    with open(path, newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def keep(path, fields, rows):
    """Lines by name, after those that the file has of other names."""
    lines = (read(path) if path.exists() else {}) | rows
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, fields, lineterminator="\n")
        out.writeheader()
        out.writerows(lines.values())


def geometric_mean(rows):
    return math.exp(sum(math.log(float(row["ratio"])) for row in rows) / len(rows))


class Pairs:
    """Times two configs of a problem against each other."""

    def __init__(self, folder, arch):
        self.bin, self.arch = folder.resolve(), arch
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="deepgen_agree_"))
        self.device = self.work / "device.json"
        self.call("deepgen-measure", "devices", "--arch", arch, "-o", self.device)

    def call(self, tool, *words):
        done = subprocess.run([str(w) for w in (self.bin / tool, *words)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=dict(os.environ, DEEPGEN_CACHE="off"))
        if done.returncode:
            raise SystemExit(f"agree.py: {tool} {words[0]}: {done.stdout.strip()}")

    def compile(self, name, rows):
        folder = self.work / name
        folder.mkdir()
        slots = [{"template": row["template"], "origin": "model",
                  "config": {k: int(v) for k, v in (word.split("=") for word in row["config"].split())}} for row in rows]
        (folder / "plan.json").write_text(json.dumps({"schema": "deepgen.plan/1", "problem": rows[0]["problem"],
                                                      "arch": self.arch, "round": 0, "slots": slots}))
        files = [folder / f"s{i}.dgk" for i in range(len(rows))]
        for i, file in enumerate(files):
            self.call("deepgen", "compile", "--plan", folder / "plan.json", "--slot", i, "-o", file)
        return files

    def compare(self, name, rows):
        """All against the first, as `deepgen-measure compare` tells it."""
        output = self.work / name / "compare.json"
        self.call("deepgen-measure", "compare", "--device", self.device, "-o", output, *self.compile(name, rows))
        return json.loads(output.read_text())

    def time(self, name, rows):
        found = self.compare(name, rows)
        other = found["kernels"][1]
        if "ratio" not in other:
            raise SystemExit(f"agree.py: {name}: {other['failure']}")
        return dict(zip(FIELDS, [name, *other["ratio"], found["noise_floor"], other["verdict"]]))


def gpus(arch):
    if not arch.startswith("sm_"):
        return 1
    listed = subprocess.run(["nvidia-smi", "-L"], text=True, stdout=subprocess.PIPE).stdout.count("GPU ")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return max(1, min(listed, len(visible.split(","))) if visible else listed)


def chose_the_same(x, y):
    return (x["template"], x["config"]) == (y["template"], y["config"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=pathlib.Path)
    parser.add_argument("second", type=pathlib.Path)
    parser.add_argument("rows", nargs="*", help="none: all")
    parser.add_argument("--bin", type=pathlib.Path, help="folder of deepgen and deepgen-measure")
    parser.add_argument("--arch", default="sm_90a")
    o = parser.parse_args()
    first, second = (read(folder / "results.csv") for folder in (o.first, o.second))
    names = [n for n in first if n in second and first[n]["us"] and second[n]["us"] and (not o.rows or n in o.rows)]
    differ = [n for n in names if not chose_the_same(first[n], second[n])]
    pairs = read(o.second / "pairs.csv") if (o.second / "pairs.csv").exists() else {}
    if o.bin:
        timer = Pairs(o.bin, o.arch)
        with concurrent.futures.ThreadPoolExecutor(gpus(o.arch)) as pool:
            timed = {n: found for n, found in zip(differ, pool.map(lambda n: timer.time(n, [first[n], second[n]]), differ))}
        keep(o.second / "pairs.csv", FIELDS, timed)
        pairs |= timed
    counts = collections.Counter()
    for name in names:
        pair = None if name not in differ else pairs.get(name, {"verdict": "not timed"})
        verdict = pair["verdict"] if pair else "same"
        counts[verdict] += 1
        known = pair and "ratio" in pair
        numbers = "{:.4f} [{:.4f}, {:.4f}], noise {:.2%}".format(*(float(pair[f]) for f in ("ratio", "low", "high", "noise"))) if known else ""
        print(f"{name:10}  {verdict:9}  {numbers}")
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()) + f"; of {len(names)} rows")
    print(f"agree: {(counts['same'] + counts['tie'] + counts['AMBG']) / max(1, len(names)):.1%}")
    print("geometric means:", ", ".join(f"{geometric_mean([t[n] for n in names]):.4f}" for t in (first, second)))


if __name__ == "__main__":
    main()
