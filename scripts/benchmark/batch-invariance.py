#!/usr/bin/env python3
"""What BATCH_INVARIANT costs: tunes a function with it and one without, and prints their times by size.

  scripts/benchmark/batch-invariance.py PREFIX FOLDER ARCH "1..8192 4096 4096" "bf16 bf16 bf16" [LAYOUT]

PREFIX: an installed DeepGen. FOLDER gets the project, its build tree and its lock. The ratio at a point is of two searches: where
both have timed the vendor's library, of the times in units of that, as these are of one process each; else of the times.
"""
import json
import math
import subprocess
import sys
from pathlib import Path

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(batch_invariance CXX)
find_package(DeepGen 0.1 REQUIRED)
foreach(word IN ITEMS any BATCH_INVARIANT)
  string(TOLOWER ${{word}} name)
  string(REPLACE any "" word "${{word}}")
  deepgen_add_gemm(kernels NAME ${{name}} SHAPE {shape} TYPES {types} LAYOUT {layout} ARCHS {arch} ${{word}})
endforeach()
"""


def tune(prefix, folder, arch, shape, types, layout):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "CMakeLists.txt").write_text(PROJECT.format(shape=shape, types=types, layout=layout, arch=arch))
    build = folder / "build"
    subprocess.run(["cmake", "-G", "Ninja", "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                    "-DCMAKE_BUILD_TYPE=Release"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "tune"], check=True)
    return json.loads((folder / "deepgen.lock.json").read_text())["entries"]


def ratio_of(any_order, one_order):
    if "vendor_ratio" in any_order and "vendor_ratio" in one_order:
        return any_order["vendor_ratio"] / one_order["vendor_ratio"]
    return one_order["microseconds"] / any_order["microseconds"]


def main():
    if len(sys.argv) not in (6, 7):
        sys.exit(__doc__)
    prefix, folder, arch, shape, types = sys.argv[1:6]
    entries = tune(Path(prefix).resolve(), Path(folder).resolve(), arch, shape, types, (sys.argv[6:] or ["nt"])[0])
    found = {" invariant=rows " in e["problem"]: e for e in entries}
    any_order, one_order = found[False]["evidence"], found[True]["evidence"]
    print(f"order: {one_order.get('sum_order', 'not told')}")
    print(f"cost among the finalists of its own search: {one_order.get('order_cost', 1)}")
    print("| m, n, k, batch | any order, us | one order, us | ratio |\n| --- | --- | --- | --- |")
    logarithms = []
    for x, y in zip(any_order["points"], one_order["points"]):
        logarithms.append(math.log(ratio_of(x, y)))
        at = ", ".join(str(size) for size in x["at"])
        print(f"| {at} | {x['microseconds']} | {y['microseconds']} | {math.exp(logarithms[-1]):.3f} |")
    print(f"geometric mean {math.exp(sum(logarithms) / len(logarithms)):.3f}")


if __name__ == "__main__":
    main()
