#!/usr/bin/env python3
"""Tunes the same problems several times over and tells whether the winners agree.

  scripts/benchmark/repeat-tuning.py --bin build/ci/bin --work DIR [--arch cpu] [--repeats 5] [--slots 40 24] [--seconds 20]
                           "gemm m=512 n=512 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4" ...

Every repetition plans, compiles, measures and decides as a build does, and takes no measurement from the cache. Winners that
differ are then timed against each other in one process (`deepgen-measure compare`): they agree when they are the same config,
or when the 95 % interval of their ratio reaches within the noise that the searches and that comparison state. A repetition
that stays unstable decided nothing and does not count; with fewer than two others nothing is said of a problem. DIR gets
everything, and results.json. Exit status 1 unless all agree.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys

FINALISTS = 7  # the default, and kFinalists of base/search/finalists.h
ATTEMPTS = 3  # at a playoff that is unstable


class Tuner:
    def __init__(self, options):
        self.o = options
        self.pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
        self.device = options.work / "device.json"
        self.brief = [] if options.arch == "cpu" else ["--no-awkward"]  # as builds do it
        options.work.mkdir(parents=True, exist_ok=True)
        self.call("deepgen-measure", "devices", "--arch", options.arch, "-o", self.device)
        if not json.loads(self.device.read_text())["present"]:
            sys.exit(f"repeat-tuning.py: no {options.arch} device is attached")

    def call(self, tool, *words):
        environment = dict(os.environ, DEEPGEN_CACHE_DIR=str(self.o.work.resolve() / "cache"))
        if tool == "deepgen-measure":
            environment["DEEPGEN_CACHE"] = "off"
        done = subprocess.run([str(w) for w in (self.o.bin / tool, *words)], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise RuntimeError(f"{tool} {words[0]}: {done.stdout.strip()}")
        return done.stdout.strip()

    def search(self, folder, problem):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "problem.json").write_text(json.dumps({
            "schema": "deepgen.problem/1", "target": "repeat", "name": "f", "namespace": "repeat", "problem": problem,
            "untuned": False}))
        where, records = ["--device", self.device], []
        for index, slots in enumerate(self.o.slots):
            r = folder / f"r{index}"
            earlier = ["--records", *records] if records else []
            self.call("deepgen", "plan", "--problem", folder / "problem.json", "--arch", self.o.arch, *where, "--round", index,
                      "--slots", slots, *earlier, "-o", r / "plan.json")
            list(self.pool.map(lambda slot: self.call("deepgen", "compile", "--plan", r / "plan.json", "--slot", slot, *self.brief,
                                                      "-o", r / f"s{slot:02}.dgk"), range(slots)))
            anchor = ["--anchor", folder / "r0/s00.dgk"] if index else []
            self.call("deepgen-measure", "run", "--plan", r / "plan.json", "--kernels", r, "--slots", slots, *anchor, *earlier,
                      *where, "--seconds", self.o.seconds, "-o", r / "records.jsonl")
            records.append(r / "records.jsonl")
        return self.playoff(folder, where, records)

    def playoff(self, folder, where, records):
        final, awkward = folder / "final.jsonl", []
        if self.brief:
            files = [folder / f"final/f{i}.dgk" for i in range(FINALISTS)]
            list(self.pool.map(lambda i: self.call("deepgen", "compile", "--finalist", i, "--records", *records, "-o", files[i]),
                               range(len(files))))
            awkward = ["--awkward", *files]
        for attempt in range(1, ATTEMPTS + 1):
            self.call("deepgen-measure", "playoff", *where, *awkward, "--records", *records, "--seconds", self.o.seconds, "-o", final)
            head, *lines = (json.loads(line) for line in final.read_text().splitlines())
            if head["stable"]:
                break
        self.call("deepgen", "select", "--mode", "auto", *where, "--problem", folder / "problem.json", "--arch", self.o.arch,
                  "--records", final, "-o", folder / "choice.json")
        choice = json.loads((folder / "choice.json").read_text())
        winner = next(r for r in reversed(lines) if (r["template"], r["config"]) == (choice["template"], choice["config"]))
        holdout = head["environment"].get("holdout", {})
        result = {"config": " ".join([winner["template"], *(f"{k}={v}" for k, v in winner["config"].items())]),
                  "kernel": str((folder / winner["kernel_file"]).resolve()), "sha256": winner["sha256"],
                  "origin": winner["origin"], "stable": head["stable"], "attempts": attempt,
                  "noise_floor": max(head["noise_floor"], holdout.get("noise_floor", 0)),
                  "clean": head["environment"]["finals"]["clean"], "unstable": head["environment"].get("unstable", "")}
        if "timing" in winner:
            result["ratio"] = [round(winner["timing"][k], 4) for k in ("low", "ratio", "high")]
        print(f"  {folder.name}: {'' if head['stable'] else 'UNSTABLE, '}noise {100 * result['noise_floor']:.2f} %, "
              f"{result.get('ratio')} of the default's time, {result['config']}", flush=True)
        return result

    def compare(self, folder, one, other):
        path = folder / "compare.json"
        self.call("deepgen-measure", "compare", "--device", self.device, "--seconds", self.o.seconds, "-o", path, one["kernel"],
                  other["kernel"])
        found = json.loads(path.read_text())
        ratio = found["kernels"][1].get("ratio")
        noise = max(found["noise_floor"], one["noise_floor"], other["noise_floor"], 0.005)
        return {"one": one["config"], "other": other["config"], "ratio": ratio, "noise": round(noise, 5),
                "agree": bool(ratio) and ratio[0] <= 1 + noise and ratio[2] >= 1 - noise,
                "within_noise": bool(ratio) and abs(ratio[1] - 1) <= noise}

    def problem(self, number, problem):
        print(problem, flush=True)
        folder = self.o.work / f"p{number}"
        runs = [self.search(folder / f"t{i}", problem) for i in range(self.o.repeats)]
        decided = [run for run in runs if run["stable"]]
        winners = {run["sha256"]: run for run in decided}
        pairs = [self.compare(folder, *pair) for pair in itertools.combinations(winners.values(), 2)]
        for p in pairs:
            print(f"  {p['one']}\n  {p['other']}\n    {p['ratio']}, noise {100 * p['noise']:.2f} %: "
                  f"{'agree' if p['agree'] else 'DISAGREE'}{'' if p['within_noise'] else ', the median beyond the noise'}")
        most = max((sum(run["sha256"] == sha for run in decided) for sha in winners), default=0)
        verdict = "undecided" if len(decided) < 2 else "agree" if all(p["agree"] for p in pairs) else "disagree"
        print(f"  {verdict}: {most} of {len(decided)} chose the same, {len(winners)} different winners; "
              f"{len(runs) - len(decided)} were unstable", flush=True)
        return {"problem": problem, "runs": runs, "pairs": pairs, "verdict": verdict}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="+", help="problem keys, as `deepgen space` takes them")
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of deepgen and deepgen-measure")
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--arch", default="cpu")
    parser.add_argument("--repeats", default=5, type=int)
    parser.add_argument("--slots", default=[40, 24], type=int, nargs="+", help="candidates of each round")
    parser.add_argument("--seconds", default=20, type=float, help="budget of a round's measurement")
    parser.add_argument("--jobs", default=max(1, (os.cpu_count() or 2) - 1), type=int, help="compilers at once")
    tuner = Tuner(parser.parse_args())
    results = [tuner.problem(i, p) for i, p in enumerate(tuner.o.problems)]
    (tuner.o.work / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    agreeing = sum(r["verdict"] == "agree" for r in results)
    print(f"{agreeing} of {len(results)} problems agree")
    sys.exit(agreeing < len(results))


if __name__ == "__main__":
    main()
