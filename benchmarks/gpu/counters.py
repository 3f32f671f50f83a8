#!/usr/bin/env python3
"""Hardware counters of a tuning's winners, by Nsight Compute, at free clocks: what limits them.

  benchmarks/gpu/counters.py --bin build/ci/bin benchmarks/gpu/results/h200 [rows ...]

Writes counters.csv into the folder. Percentages are of what the device can do in the kernel's time: tensor (cycles in which the
tensor cores' pipe works), dram, l2, shared (L1 and shared memory), issue (slots of active cycles); active: multiprocessors' mean
cycles with work over the longest. stalls: what warps wait for, in shares of their time, the three largest. second_us: the time of
the launch that adds up splits of attention, where there is one; all else is of the first. A profiled call is alone on a device
that Nsight Compute has let rest: neither its time nor its clock is that of the table.
"""
import argparse
import csv
import os
import pathlib
import subprocess

from agree import Pairs, keep, read

STALLS = ("barrier branch_resolving dispatch_stall drain gmma imc_miss lg_throttle long_scoreboard math_pipe_throttle membar "
          "mio_throttle misc no_instruction not_selected selected short_scoreboard sleeping tex_throttle wait").split()
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {"us": "gpu__time_duration.sum", "mhz": "sm__cycles_elapsed.avg.per_second",
           "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
           "dram": "dram__throughput.avg.pct_of_peak_sustained_elapsed", "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
           "shared": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
           "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
           "mean": "sm__cycles_active.avg", "longest": "sm__cycles_active.max"}
FIELDS = ["name", "us", "mhz", "tensor", "dram", "l2", "shared", "issue", "active", "stalls", "second_us"]
FIRST, SECOND = "deepgen_gemm|deepgen_kernel|^deepgen$|deepgen_main", "deepgen_combine"
UNITS = {"us": {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1, "us": 1, "msecond": 1e3, "ms": 1e3},
         "mhz": {"cycle/nsecond": 1e3, "Ghz": 1e3, "GHz": 1e3, "cycle/usecond": 1, "Mhz": 1, "MHz": 1, "hz": 1e-6, "Hz": 1e-6, "cycle/second": 1e-6}}


def ncu(timer, name, kernel, entry, metrics):
    """What one launch of the kernel's entry has: values and units by metric."""
    words = ["ncu", "--clock-control", "none", "--metrics", ",".join(metrics), "--launch-skip", "6", "--launch-count", "1", "--csv",
             "--page", "raw", "-k", "regex:" + entry, "--target-processes", "all", timer.bin / "deepgen-measure", "compare",
             "--device", timer.device, "--seconds", "1", "-o", timer.work / name / "compare.json", kernel]
    done = subprocess.run([str(w) for w in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, DEEPGEN_CACHE="off"))
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        raise SystemExit(f"counters.py: ncu has nothing to say of {name}: {done.stdout.strip()[-500:]}")
    header, units, values = list(csv.reader(lines))[:3]
    return dict(zip(header, values)), dict(zip(header, units))


def profile(timer, name, row):
    kernel, = timer.compile(name, [row])
    found, unit = ncu(timer, name, kernel, FIRST, [*METRICS.values(), *(STALL.format(s) for s in STALLS)])

    def value(field, found=found, unit=unit):
        metric = METRICS[field]
        return float(found[metric].replace(",", "")) * UNITS.get(field, {}).get(unit[metric], 1)

    splits = int(dict(word.split("=") for word in row["config"].split()).get("splits", 1))
    two = row["problem"].startswith("attention") and splits > 1
    second = round(value("us", *ncu(timer, name, kernel, SECOND, [METRICS["us"]])), 1) if two else ""
    stalls = {s: float(found[STALL.format(s)].replace(",", "")) for s in STALLS if s != "selected"}
    largest = sorted(stalls.items(), key=lambda s: -s[1])[:3]
    whole = sum(stalls.values()) + 1 # an issue takes one cycle
    return {"name": name, **{f: round(value(f), 1) for f in FIELDS[1:8]}, "active": round(100 * value("mean") / value("longest"), 1),
            "stalls": ", ".join(f"{s} {cycles / whole:.0%}" for s, cycles in largest), "second_us": second}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("rows", nargs="*", help="none: all")
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of deepgen and deepgen-measure")
    parser.add_argument("--arch", default="sm_90a")
    o = parser.parse_args()
    results = read(o.folder / "results.csv")
    timer = Pairs(o.bin, o.arch)
    for name in o.rows or [n for n in results if results[n]["us"]]:
        line = profile(timer, name, results[name])
        print(", ".join(f"{k} {v}" for k, v in line.items()), flush=True)
        keep(o.folder / "counters.csv", FIELDS, {name: line})


if __name__ == "__main__":
    main()
