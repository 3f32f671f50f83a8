#!/usr/bin/env python3
"""Holds a tuning's winner against the best of a sweep over the row's space, in one process.

  scripts/sweep.sh build/ci/bin "gemm ..." sm_90a build/sweep/tp128 tp128.space.zst --include '...'
  benchmarks/gpu/exhaustive.py --bin build/ci/bin benchmarks/gpu/results/h200 tp128 build/sweep/tp128

The sweep's fastest configs and the winner are timed against each other. Writes a line to sweeps.csv of the results: how many configs the
sweep has timed, and the best one's time over the winner's, with its 95 % interval; above 1 the winner is faster than all of them.
"""
import argparse
import collections
import json
import math
import pathlib
import statistics

from agree import Pairs, keep, read

FIELDS = ["name", "configs", "low", "ratio", "high", "noise", "best", "winner"]
CONTENDERS = 5


def sweep(folder):
    """Of each config that could be timed, its median ratio to the default over the times that it was."""
    ratios = collections.defaultdict(list)
    for path in sorted(folder.glob("r*/records.jsonl")):
        for line in path.read_text().splitlines()[1:]:
            record = json.loads(line)
            if "timing" in record:
                choice = record["template"], " ".join(f"{k}={v}" for k, v in record["config"].items())
                ratios[choice].append((record["timing"]["samples"], record["timing"]["ratio"]))
    return {choice: statistics.median(r for samples, r in found for _ in range(samples)) for choice, found in ratios.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("row")
    parser.add_argument("sweep", type=pathlib.Path, help="the work folder of scripts/sweep.sh")
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of deepgen and deepgen-measure")
    parser.add_argument("--arch", default="sm_90a")
    o = parser.parse_args()
    winner, found = read(o.results / "results.csv")[o.row], sweep(o.sweep)
    best = sorted(found, key=found.get)[:CONTENDERS]
    choices = [(winner["template"], winner["config"]), *best]
    timer = Pairs(o.bin, o.arch)
    compared = timer.compare(o.row, [{"problem": winner["problem"], "template": t, "config": c} for t, c in choices])
    fastest = min(range(1, len(choices)), key=lambda i: compared["kernels"][i].get("ratio", [0, math.inf])[1])
    told = [" ".join(choices[i]) for i in (fastest, 0)]
    line = dict(zip(FIELDS, [o.row, len(found), *compared["kernels"][fastest]["ratio"], compared["noise_floor"], *told]))
    print(", ".join(f"{k} {v}" for k, v in line.items()))
    keep(o.results / "sweeps.csv", FIELDS, {o.row: line})


if __name__ == "__main__":
    main()
