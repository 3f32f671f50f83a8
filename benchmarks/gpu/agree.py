#!/usr/bin/env python3
"""Compares two tunings of the suite: for each row whether they chose the same config, or ones that are as fast.

  benchmarks/gpu/agree.py benchmarks/gpu/results/h200 benchmarks/gpu/results/h200_again

How fast a choice is is told by its time over the default config's, which both have timed in the same rounds, each on its own
device. Two are a tie when that differs by no more than the larger noise floor of the two.
"""
import csv
import math
import pathlib
import sys


def read(folder):
    with open(pathlib.Path(folder) / "results.csv", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file) if row["us"]}


def geometric_mean(rows):
    return math.exp(sum(math.log(float(row["ratio"])) for row in rows) / len(rows))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    first, second = (read(folder) for folder in sys.argv[1:])
    counts = {"same": 0, "tie": 0, "differ": 0}
    differences = []
    print(f"{'row':10}  of default's time  difference   noise")
    for name in (n for n in first if n in second):
        x, y = first[name], second[name]
        times = [float(row["default_ratio"]) for row in (x, y)]
        difference, noise = abs(math.log(times[0] / times[1])), max(float(row["noise"]) for row in (x, y))
        same = (x["template"], x["config"]) == (y["template"], y["config"])
        verdict = "same" if same else "tie" if difference <= noise else "differ"
        counts[verdict] += 1
        differences.append(0 if same else difference)
        print(f"{name:10}  {times[0]:.4f}    {times[1]:.4f}   {difference:8.2%}  {noise:7.2%}  {verdict}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()) + f"; of {len(differences)} rows")
    for limit in (0.005, 0.01, 0.015, 0.025):
        print(f"the same, or within {limit:.1%}: {sum(d <= limit for d in differences)}")
    print("geometric means:", ", ".join(f"{geometric_mean(rows.values()):.4f}" for rows in (first, second)))


if __name__ == "__main__":
    main()
