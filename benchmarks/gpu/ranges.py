#!/usr/bin/env python3
"""A function of a range of M beside the vendor's library, at sizes that it was not tuned for.

  benchmarks/gpu/ranges.py --tool DEEPGEN-MEASURE --search BUILD/_deepgen/<target>/<name>/<arch> -o FILE.csv

Takes the kernels that the search's choice.json links, each for the calls that take it, and times them at 30 sizes from the
least to the most, even in the logarithm, with cuBLASLt's best algorithm of each size in the same process. A row: M, the
config's slot, seconds, the vendor's time over the kernel's with its 95 % interval, the vendor's algorithms.

With --exact FOLDER..., searches of functions of one M each, it takes their sizes, and a row ends with the seconds of that
function's kernel, its ratio to the vendor beside it, and the time of that kernel over the range's by both ratios.
"""
import argparse
import csv
import json
import math
import pathlib
import re
import subprocess
import sys


def kernel_files(search):
    """Of each config that was timed: the file of its kernel."""
    files = {}
    for log in sorted(search.glob("r*/records.jsonl")):
        for line in log.read_text().splitlines()[1:]:
            record = json.loads(line)
            if record["status"] == "ok":
                files.setdefault((record["template"], json.dumps(record["config"])), log.parent / record["kernel_file"])
    return files


def parts(choice):
    """[least M, most M, template, config]: the chosen kernels."""
    least, most = map(int, re.search(r"\bm=(\d+)\.\.(\d+)", choice["problem"]).groups())
    for part in [choice, *choice.get("ranges", [])]:
        low, high = part.get("taken", [[least], [most]])
        yield max(low[0], 1), high[0], part["template"], json.dumps(part["config"])


def compare(options, kernel, *more):
    """Seconds, ratio to the vendor with its interval, the vendor's name and algorithms."""
    result = pathlib.Path(options.output + ".compared.json")
    subprocess.run([options.tool, "compare", "--device", options.device, *more, "--vendor", "--seconds", options.seconds,
                    "-o", result, kernel], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    compared = json.loads(result.read_text())
    result.unlink()
    if not compared.get("vendor"):
        sys.exit(f"no vendor baseline beside {kernel} {' '.join(more)}")
    vendor = compared["vendor"]
    low, ratio, high = vendor["ratio"]
    return [compared["kernels"][0]["seconds"], ratio, low, high, vendor["name"], vendor["algorithms"]]


def exact_kernels(folders):
    """M: the kernel that a search of that one size has chosen."""
    chosen = {}
    for folder in folders:
        choice = json.loads((folder / "choice.json").read_text())
        found = kernel_files(folder)[choice["template"], json.dumps(choice["config"])]
        chosen[int(re.search(r"\bm=(\d+) ", choice["problem"]).group(1))] = found
    return chosen


def say(what, sizes, ratios, bound):
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{what}: {len(ratios)} sizes, geometric mean {mean:.3f}, worst {min(ratios):.3f} "
          f"at m={sizes[ratios.index(min(ratios))]}, {sum(r < bound for r in ratios)} under {bound}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--search", type=pathlib.Path, required=True)
    parser.add_argument("--device", type=pathlib.Path, required=True)
    parser.add_argument("--sizes", type=int, default=30)
    parser.add_argument("--exact", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--seconds", default="2")
    parser.add_argument("-o", dest="output", required=True)
    options = parser.parse_args()
    choice = json.loads((options.search / "choice.json").read_text())
    files, kernels = kernel_files(options.search), sorted(parts(choice))
    exact = exact_kernels(options.exact)
    least, most = kernels[0][0], kernels[-1][1]
    steps = options.sizes - 1
    sizes = sorted(exact) or sorted({round(least * (most / least) ** (i / steps)) for i in range(options.sizes)})
    ratios, shares = [], []
    with open(options.output, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["m", "slot", "seconds", "vendor_ratio", "low", "high", "vendor", "algorithms"] +
                       ["exact_seconds", "exact_vendor_ratio", "exact_over_range"] * bool(exact))
        for m in sizes:
            _, _, template, config = next(k for k in kernels if k[0] <= m <= k[1])
            kernel = files[template, config]
            row = compare(options, kernel, "--at", f"m={m}")
            ratios.append(row[1])
            if exact:
                seconds, ratio, *_ = compare(options, exact[m])
                shares.append(row[1] / ratio)
                row += [seconds, ratio, shares[-1]]
            table.writerow([m, kernel.parent.name + "/" + kernel.stem, *row])
            file.flush()
    name = options.search.parent.name
    say(f"{name} / vendor", sizes, ratios, 0.95)
    if exact:
        say(f"{name} / functions of one size", sizes, shares, 0.92)


main()
