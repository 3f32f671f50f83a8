"""What it costs to have a kernel compiled by a worker: overhead.py --prefix PREFIX -o results.json [--slurm] [--rounds 15]

The workers' cache has all kernels, so that what is timed is the way there and back. Variants take turns, in each round in
another order. Seconds a slot: of 8 slots of one plan, one after the other. --slurm: also by srun, as a job each and as steps in an
allocation, on the Slurm of two nodes on this machine that tests/cluster/slurm.py starts (as root).
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

SLOTS = 8
PROBLEM = "gemm m=96 n=96 k=96 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4"
OWN = ["env", "-u", "SLURM_JOB_ID", "-u", "SLURM_JOBID"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefix", required=True)
    parser.add_argument("-o", required=True)
    parser.add_argument("--slurm", action="store_true", help="also by srun")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if not options.slurm:
        return measure(options, {})
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/cluster"))
    from slurm import Slurm
    slurm = Slurm(pathlib.Path(tempfile.mkdtemp()) / "daemons")
    try:
        slurm.start()
        done = subprocess.run(["salloc", "-n4", "-c1", "--mem=0", "--no-shell"], check=True, text=True, stderr=subprocess.PIPE)
        job = re.search(r"Granted job allocation (\d+)", done.stderr)[1]
        step = ["srun", f"--jobid={job}", "-Q", "-n1", "-c1", "--exact", "--mem=0"]
        measure(options, {"srun step": [*step, "env", "DEEPGEN_CACHE=on"]}, lambda: subprocess.run(["scancel", job], check=True))
    finally:
        slurm.stop()


def measure(options, steps, cancel=None):
    """`cancel` ends the allocation of `steps`; then there is room for jobs."""
    folder = pathlib.Path(tempfile.mkdtemp())
    tool = f"{os.path.abspath(options.prefix)}/bin/deepgen"
    os.environ["DEEPGEN_CACHE_DIR"] = str(folder / "cache")
    problem = {"schema": "deepgen.problem/1", "target": "t", "name": "f", "namespace": "t", "problem": PROBLEM, "untuned": False}
    (folder / "problem.json").write_text(json.dumps(problem))

    def run(*words, **environment):
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    run(tool, "plan", "--problem", "problem.json", "--round", "0", "--slots", str(SLOTS), "-o", "plan.json")
    run(tool, "compile", "--plan", "plan.json", "--slot", "0", "--count", str(SLOTS), "-o", "warm/s00.list")  # the cache is filled
    launchers = {"env": ["env", "DEEPGEN_CACHE=on"], **steps}
    if cancel:
        launchers["srun job"] = [*OWN, "srun", "-Q", "-n1", "-c1", "--mem=0", "env", "DEEPGEN_CACHE=on"]
    sites = [{"name": name.replace(" ", "_"), "arch": "cpu", "compile": words, "worker": tool} for name, words in launchers.items()]
    (folder / "sites.json").write_text(json.dumps({"schema": "deepgen.sites/1", "sites": sites}))

    def once(variant):
        if variant is None:
            for slot in range(SLOTS):
                run(tool, "compile", "--plan", "plan.json", "--slot", str(slot), "-o", f"local/s{slot:02}.dgk")
            return
        name, batch = variant
        for slot in range(0, SLOTS, batch):
            run(tool, "remote", "--sites", "sites.json", "--site", name.replace(" ", "_"), "--", "compile", "--plan", "plan.json",
                "--slot", str(slot), "--count", str(batch), "-o", f"{name}{batch}/s{slot:02}.list", DEEPGEN_CACHE="off")

    def rounds(names):
        variants = {"local": None, **{f"{name}, batch {batch}": (name, batch) for name in names for batch in (1, 4, 8)}}
        times = {name: [] for name in variants}
        for _ in range(options.rounds):
            for name in random.sample(sorted(variants), len(variants)):
                start = time.monotonic()
                once(variants[name])
                times[name].append((time.monotonic() - start) / SLOTS)
        return times
    times = rounds([name for name in launchers if name != "srun job"])
    if cancel:
        cancel()
        times.update({f"{name}{' beside jobs' if name == 'local' else ''}": values for name, values in rounds(["srun job"]).items()})
    for name, values in times.items():
        print(f"{name:20} {1000 * statistics.median(values):7.1f} ms a slot, fastest {1000 * min(values):7.1f}")
    pathlib.Path(options.o).write_text(json.dumps({"slots": SLOTS, "seconds a slot": times}, indent=1) + "\n")


sys.exit(main())
