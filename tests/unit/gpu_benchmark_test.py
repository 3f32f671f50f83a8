"""benchmarks/gpu/run.py with the real `deepgen` and a measurement that is made up: gpu_benchmark_test.py DEEPGEN RUN_PY"""
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

MEASURE = r'''#!/usr/bin/env python3
import json, pathlib, sys
command, words = sys.argv[1], sys.argv[2:]
def option(name): return words[words.index(name) + 1]
def record(stage, slot, kernel, ratio):
    head = json.loads(pathlib.Path(kernel).read_bytes().split(b"\n")[0])
    made = {"schema": "deepgen.record/1", "stage": stage, "slot": slot, "status": "ok", "detail": "", "problem": head["problem"],
            "arch": head["arch"], "template": head["template"], "revision": head["revision"], "config": head["config"],
            "origin": head["origin"], "code_bytes": 1, "workspace": 0, "error": 0.1, "kernel_file": str(kernel), "sha256": head["kernels"][0]["sha256"],
            "timing": {"seconds": 1e-5 * ratio, "quartile1": 1e-5 * ratio, "quartile3": 1e-5 * ratio, "ratio": ratio,
                       "low": ratio, "high": ratio, "samples": 11, "clean": 1.0}}
    return dict(made, bursts=made["timing"]) if "balanced" in words else made
def write(environment, records):
    head = {"schema": "deepgen.env/1", "environment": environment, "noise_floor": 0.001, "stable": True}
    pathlib.Path(option("-o")).write_text("".join(json.dumps(x) + "\n" for x in [head, *records]))
if command == "devices":
    device = json.loads(pathlib.Path(sys.argv[0]).with_name("device.json").read_text())
    pathlib.Path(option("-o")).write_text(json.dumps(device))
elif command == "run":
    folder = pathlib.Path(option("--kernels"))
    if "n=96 " in (folder / "plan.json").read_text(): sys.exit("deepgen-measure: error: it trapped")
    slots = len(json.loads((folder / "plan.json").read_text())["slots"])
    write({}, [record(folder.name, i, folder / f"s{i:02}.dgk", 1 - 0.1 * i) for i in range(slots)])
else:
    logs = [pathlib.Path(w) for w in words[words.index("--records") + 1:words.index("-o")]]
    finals = sorted((json.loads(line) for log in logs for line in log.read_text().splitlines()[1:]),
                    key=lambda r: r["origin"] != "default")[:2]
    for r in finals: r["stage"] = "final"
    best = finals[-1]
    vendor = dict(best, template="vendor", config={}, origin="cublaslt 13.1.0", sha256="", timing=dict(best["timing"], seconds=2e-5))
    write({"clock_mhz": [1, 1500, 2], "driver": "580", "power_limit_watts": 700, "profile": "cold-graph/1",
           "device": {"name": "made up"}, "regime": option("--regime"), "read": {"bytes": 65536, "seconds": 1e-6},
           "vendor": {"name": "cublaslt 13.1.0", "why_not": "", "algorithms": 8, "epilogue": "",
                      "ratios": [{"sha256": r["sha256"], "ratio": 1.4, "low": 1.3, "high": 1.5} for r in finals]},
           "holdout": {"sha256": best["sha256"], "noise_floor": 0.002, "verdict": "win",
                       "vendor": {"name": "cublaslt 13.1.0", "algorithm": "3", "ratio": [0.75, 0.8, 0.85], "verdict": "win"},
                       **({"balanced": {"vendor_ratio": [0.6, 0.625, 0.65], "vendor_verdict": "win"}} if "balanced" in words else {}),
                       "regimes": {regime: {"arms": [{"sha256": "other", "seconds": 1, "vendor": [1, 1, 1], "verdict": "tie"},
                                                     {"sha256": best["sha256"], "seconds": 2e-5, "vendor": [0.8, x, 1.25],
                                                      "verdict": "AMBG"}]}
                                   for regime, x in (("bursts", 0.5), ("serial", 1.0)) if regime in " ".join(words)}}},
          [*finals, vendor, *(dict(r, stage="holdout") for r in [*finals, vendor])])
'''


def main(deepgen, run):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tools, output, suite = folder / "bin", folder / "out.1", folder / "suite.txt"
        tools.mkdir()
        os.symlink(os.path.abspath(deepgen), tools / "deepgen")
        device = {"schema": "deepgen.device/1", "arch": "sm_80", "present": True, "name": "made up", "isa": 0, "features": [],
                  "cores": 108, "l1d": 0, "l2": 41943040, "l3": 0, "uuid": "GPU-0", "shared_block": 166912,
                  "shared_multiprocessor": 167936, "clock_khz": 1410000, "memory_bandwidth": 1555000000000}
        (tools / "device.json").write_text(json.dumps(device))
        (tools / "deepgen-measure").write_text(MEASURE)
        (tools / "deepgen-measure").chmod(0o755)
        gemms = ("good bf16 nt 1 64 64 64 bias_gelu\ntraps f32 nn 1 64 96 64 none # a comment\n"
                 "wide e4m3 nt 2 16 128 64 none\n")
        suite.write_text(gemms)

        def start(*rows, output=output):
            done = subprocess.run([sys.executable, run, "--bin", tools, "--arch", "sm_80", "--suite", suite, "--slots", "2", "1",
                                   "--jobs", "2", "-o", output, *rows], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)
            with open(output / "results.csv") as file:
                return done, {row["name"]: row for row in csv.DictReader(file)}

        done, rows = start()
        assert done.returncode == 1, done.stdout
        assert list(rows) == ["good", "traps", "wide"], rows
        good = rows["good"]
        assert good["ratio"] == "1.25" and good["verdict"] == "win" and good["stable"] == "True", good
        assert good["ratio_low"] == "1.1765" and good["noise"] == "0.002", good # of the hold-out
        assert good["problem"].endswith("epilogue=bias+gelu_tanh align=2"), good
        assert good["candidates"] == good["ok"] == "3", good
        assert good["vendor_us"] == "20.0" and good["read_bandwidth"] == "66", good
        assert "it trapped" in rows["traps"]["detail"] and not rows["traps"]["us"], rows
        assert rows["wide"]["us"], rows
        assert (output / "raw/wide/final.jsonl").exists() and (output / "raw/wide/r1.jsonl").exists()
        table = (output / "results.md").read_text()
        assert "failed: RuntimeError" in table and "Geometric mean of 2 ratios: 1.250" in table, table

        assert not good["burst_ratio"] and "regime burst" not in table, table
        assert (good["regime"], good["balanced_ratio"], good["balanced_verdict"]) == ("balanced", "1.6", "win"), good
        assert "Geometric mean of 2 ratios in the mean of sustained calls and bursts: 1.600" in table, table

        done, rows = start("--regime", "sustained", "--extra", "bursts,serial", "good")
        good = rows["good"]
        assert (good["burst_us"], good["burst_ratio"], good["burst_low"], good["burst_high"]) == ("20.0", "2.0", "0.8", "1.25"), good
        assert good["regime"] == "sustained" and not good["balanced_ratio"], good
        assert good["serial_ratio"] == "1.0" and good["serial_verdict"] == "AMBG" and good["ratio"] == "1.25", good
        table = (output / "results.md").read_text()
        assert "| 2.000 [0.800, 1.250] AMBG | 1.000 [0.800, 1.250] AMBG |" in table, table
        assert "Geometric mean of 1 ratios in the regime burst: 2.000" in table, table
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) == 1, table

        suite.write_text("causal attention bf16/f32 4/2 64 causal lse 16 2x48x64\nwindow attention f16 2 128 window=9 none 0 1x64x64\n")
        done, rows = start(output=folder / "attention")
        assert done.returncode == 0, done.stdout
        causal, window = rows["causal"], rows["window"]
        assert causal["problem"].endswith("out=f32 mask=causal queries=48 keys=64 options=lse page=16 at_batch=2 at_queries=48 at_keys=64")
        # The last query sees all 64 keys, and each one before it one less.
        assert float(causal["tflops"]) == round(4 * 64 * 4 * 2 * sum(64 - i for i in range(48)) / 9e-6 * 1e-12, 2), causal
        assert int(causal["bandwidth"]) == round(2 * 64 * (48 * 4 * (2 + 4) + 2 * 64 * 2 * 2) / 9e-6 * 1e-9), causal
        assert float(window["tflops"]) == round(4 * 128 * 2 * sum(min(i, 9) + 1 for i in range(64)) / 9e-6 * 1e-12, 2), window
        assert "| cuDNN us | cuDNN / DeepGen [95 %] |" in (folder / "attention/results.md").read_text()
        suite.write_text(gemms)

        done, rows = start() # only what failed
        assert "good" not in done.stdout.split("| row |")[0] and "it trapped" in done.stdout, done.stdout
        assert len(rows) == 3
        done, _ = start("nothing")
        assert done.returncode == 2 and "nothing" in done.stdout, done.stdout


def tool(path, text):
    path.write_text("#!/usr/bin/env python3\nimport json, pathlib, sys\nwords = sys.argv\n" + text)
    path.chmod(0o755)


def two_tunings_are_compared(agree):
    columns = "name,problem,template,config,us,ratio,default_ratio,noise"
    first = ["alike,p,t,c=1,1,2.0,0.9,0.001", "close,p,t,c=1,1,2.0,0.9,0.004", "apart,p,t,c=1,1,2.0,0.9,0.004", "failed,,,,,,,"]
    second = ["alike,p,t,c=1,1,2.0,0.8,0.001", "close,p,t,c=2,1,0.5,0.9,0.002", "apart,p,t,c=3,1,2.0,0.9,0.004", "failed,,,,,,,"]
    with tempfile.TemporaryDirectory() as root:
        root = pathlib.Path(root)
        folders = [root / name for name in ("first", "second")]
        for folder, rows in zip(folders, (first, second)):
            folder.mkdir()
            (folder / "results.csv").write_text("\n".join([columns, *rows]) + "\n")

        def say(*words):
            done = subprocess.run([sys.executable, agree, *words, *folders], capture_output=True, text=True)
            assert done.returncode == 0, done
            return done.stdout, {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()[:3]}

        said, verdicts = say()
        assert verdicts == {"alike": "same", "close": "not", "apart": "not"} and "agree: 33.3%" in said, said
        tool(root / "deepgen", """
slot = json.load(open(words[words.index("--plan") + 1]))["slots"][int(words[words.index("--slot") + 1])]
pathlib.Path(words[words.index("-o") + 1]).write_text(json.dumps(slot["config"]))
""")
        tool(root / "deepgen-measure", """
output = pathlib.Path(words[words.index("-o") + 1])
one, other = (json.loads(pathlib.Path(w).read_text())["c"] for w in words[-2:]) if words[1] == "compare" else (0, 0)
kernels = [{}, {"ratio": [1 + 0.01 * (other - 2), 1.002, 1.003], "verdict": "tie" if other == 2 else "loss"}]
output.write_text(json.dumps({"noise_floor": 0.001, "kernels": kernels}))
""")
        for words in (["--arch", "cpu", "--bin", root], []): # then from pairs.csv
            said, verdicts = say(*words)
            assert verdicts == {"alike": "same", "close": "tie", "apart": "loss"}, said
            assert "agree: 66.7%" in said and "1.0020 [1.0100, 1.0030], noise 0.10%" in said, said
            assert "geometric means: 2.0000, 1.2599" in said, said


# What `compile` makes of a config is the config; `compare` takes 1 us and c tenths of it; a profile knows its name alone.
COMPILE = '''
slot = json.load(open(words[words.index("--plan") + 1]))["slots"][int(words[words.index("--slot") + 1])]
pathlib.Path(words[words.index("-o") + 1]).write_text(json.dumps(slot["config"]))
'''
COMPARE = '''
if words[1] == "compare":
    times = [1 + 0.1 * json.load(open(w))["c"] for w in words if w.endswith(".dgk")]
    found = {"noise_floor": 0.001, "kernels": [{"ratio": [t / times[0] - 0.01, t / times[0], t / times[0] + 0.01]} for t in times]}
    pathlib.Path(words[words.index("-o") + 1]).write_text(json.dumps(found))
'''
PROFILE = '''
names = words[words.index("--metrics") + 1].split(",")
values = {"gpu__time_duration.sum": ("nsecond", "2,500"), "sm__cycles_elapsed.avg.per_second": ("cycle/nsecond", "1.5"),
          "sm__cycles_active.avg": ("cycle", "90"), "sm__cycles_active.max": ("cycle", "100")}
values |= {n: ("", {"barrier": "6", "wait": "2", "selected": "1"}.get(n.split("stalled_")[1].split("_per")[0], "0"))
           for n in names if "stalled" in n}
print("==PROF== connected")
for line in (names, [values.get(n, ("%", ""))[0] for n in names], [values.get(n, ("", "50"))[1] for n in names]):
    print(",".join(f'"{word}"' for word in line))
'''


def winners_are_held_against_sweeps_and_profiled(folder):
    with tempfile.TemporaryDirectory() as root:
        root = pathlib.Path(root)
        (root / "results.csv").write_text("name,problem,template,config,us\nrow,p,t,c=1,2.0\n")
        (root / "sweep/r0000").mkdir(parents=True)
        records = [{"template": "t", "config": {"c": c}, "timing": {"samples": 3, "ratio": 1 + c}} for c in (7, 0, 1, 2, 3, 4)]
        (root / "sweep/r0000/records.jsonl").write_text("\n".join(json.dumps(line) for line in [{}, *records, {"status": "failed"}]))
        tool(root / "deepgen", COMPILE), tool(root / "deepgen-measure", COMPARE), tool(root / "ncu", PROFILE)

        def say(script, *words):
            done = subprocess.run([sys.executable, folder / script, "--bin", root, "--arch", "cpu", root, *words], text=True,
                                  capture_output=True, env=dict(os.environ, PATH=f"{root}:{os.environ['PATH']}"))
            assert done.returncode == 0, done

        say("exhaustive.py", "row", root / "sweep")
        with open(root / "sweeps.csv") as file:
            line, = csv.DictReader(file)
        assert (line["configs"], line["best"], line["winner"]) == ("6", "t c=0", "t c=1") and math.isclose(float(line["ratio"]), 1 / 1.1), line
        say("counters.py")
        with open(root / "counters.csv") as file:
            line, = csv.DictReader(file)
        assert [line[f] for f in ("name", "us", "mhz", "tensor", "active")] == ["row", "2.5", "1500.0", "50.0", "90.0"], line
        assert line["stalls"].startswith("barrier 67%, wait 22%"), line


if __name__ == "__main__":
    main(*sys.argv[1:])
    two_tunings_are_compared(pathlib.Path(sys.argv[2]).with_name("agree.py"))
    winners_are_held_against_sweeps_and_profiled(pathlib.Path(sys.argv[2]).parent)
