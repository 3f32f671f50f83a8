"""`deepgen-measure playoff --extra` on the made-up device of tests/fake_cuda/lossy_driver.cpp: a kernel that starts early is
faster sustained and in bursts, and is not where every launch waits. Then `--regime`, where another kernel wins in bursts.
gpu_regimes_test.py DEEPGEN MEASURE DRIVER_FOLDER"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROBLEM = "gemm m=1 n=256 k=512 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2"


def slot(origin, pdl, kwarps=16):
    config = dict(form=1, vec=16, width=32, rwarps=1, kwarps=kwarps, unroll=1, splits=1, hint=2, pipe=0, pdl=pdl)
    return {"template": "gemv", "config": config, "origin": origin}


def main(deepgen, measure, driver):
    os.environ.update(LD_LIBRARY_PATH=driver, DEEPGEN_PTXAS="none", DEEPGEN_CACHE="off")
    with tempfile.TemporaryDirectory() as folder:
        def run(*words, expect=0):
            done = subprocess.run([str(w) for w in words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert done.returncode == expect, (words, done.stdout)
            return done.stdout

        path = pathlib.Path(folder)
        run(measure, "devices", "--arch", "sm_90", "-o", "device.json")
        slots = [slot("default", 0), slot("model", 1)]
        (path / "plan.json").write_text(json.dumps({"schema": "deepgen.plan/1", "problem": PROBLEM, "arch": "sm_90", "round": 0,
                                                    "slots": slots}))
        for i in range(len(slots)):
            run(deepgen, "compile", "--plan", "plan.json", "--slot", i, "-o", f"s{i:02}.dgk")
        common = ["--device", "device.json", "--seconds", 1]
        run(measure, "run", "--plan", "plan.json", "--kernels", ".", "--slots", len(slots), *common, "-o", "records.jsonl")
        playoff = [measure, "playoff", "--records", "records.jsonl", *common, "--no-vendor", "-o", "final.jsonl"]
        told = run(*playoff, "--extra", "bursts,serial")
        head, *records = map(json.loads, (path / "final.jsonl").read_text().splitlines())
        # NVML, where there is one, does not know the fake device.
        assert "were not watched: " + head["environment"]["unwatched"] in told, told
        holdout = head["environment"]["holdout"]
        default, winner = [r for r in records if r["stage"] == "holdout"]
        assert head["stable"] and winner["config"]["pdl"] == 1 and abs(winner["timing"]["ratio"] - 0.8) < 0.01, head

        def check(regime, default_us, winner_us):
            facts = holdout["regimes"][regime]
            assert facts["rounds"] >= 7 and facts["noise_floor"] < 1e-3 and "unstable" not in facts, facts
            assert [a["sha256"] for a in facts["arms"]] == [default["sha256"], winner["sha256"]], facts
            for arm, us in zip(facts["arms"], (default_us, winner_us)):
                assert abs(arm["seconds"] * 1e6 / us - 1) < 0.02, facts # the first launch of a graph waits for none
                assert abs(arm["default"][1] - us / default_us) < 0.01, facts

        check("serial", 10, 10)
        check("bursts", 0.9 * 10, 0.9 * 8)
        run(*playoff)
        assert "regimes" not in json.loads((path / "final.jsonl").read_text().splitlines()[0])["environment"]["holdout"]
        tuned_for_regimes(deepgen, measure, run, path)
        run(measure, "devices", "-o", "device.json")
        assert "leave --extra out" in run(*playoff, "--extra", "serial", expect=1)


def tuned_for_regimes(deepgen, measure, run, path):
    """Sustained a launch takes 10, 8 and 10 us. In bursts those of 512 threads take twice as long: 18, 14.4 and 9."""
    os.environ["FAKE_DRIVER_BURST"] = "512 2"
    slots = [slot("default", 0), slot("model", 1), slot("model", 0, 8)]
    (path / "plan.json").write_text(json.dumps({"schema": "deepgen.plan/1", "problem": PROBLEM, "arch": "sm_90", "round": 0,
                                                "slots": slots}))
    (path / "problem.json").write_text(json.dumps({"schema": "deepgen.problem/1", "target": "t", "name": "f", "namespace": "t",
                                                   "problem": PROBLEM, "untuned": False}))
    for i in range(len(slots)):
        run(deepgen, "compile", "--plan", "plan.json", "--slot", i, "-o", f"s{i:02}.dgk")
    common = ["--device", "device.json", "--seconds", 3]

    def tuned(regime):
        how = [*common, "--regime", regime]
        run(measure, "run", "--plan", "plan.json", "--kernels", ".", "--slots", len(slots), *how, "-o", "records.jsonl")
        run(measure, "playoff", "--records", "records.jsonl", *how, "--no-vendor", "-o", "final.jsonl")
        run(deepgen, "select", "--mode", "auto", "--device", "device.json", "--problem", "problem.json", "--arch", "sm_90",
            "--records", "final.jsonl", "-o", "choice.json")
        logs = [[json.loads(line) for line in (path / name).read_text().splitlines()] for name in ("records.jsonl", "final.jsonl")]
        for head, *_ in logs:
            assert head["environment"].get("regime", "sustained") == regime and head["stable"], head
        return json.loads((path / "choice.json").read_text())["config"], logs

    def near(x, y):
        assert abs(x / y - 1) < 0.02, (x, y)

    config, logs = tuned("sustained")
    assert (config["pdl"], config["kwarps"]) == (1, 16) and "burst" not in json.dumps(logs), config
    config, logs = tuned("burst")
    assert (config["pdl"], config["kwarps"]) == (0, 8), config
    near(logs[0][3]["timing"]["ratio"], 0.5)
    assert set(logs[1][0]["environment"]["holdout"]["regimes"]) == {"sustained", "bursts", "serial"}, logs[1][0]
    near(logs[1][0]["environment"]["holdout"]["regimes"]["sustained"]["arms"][1]["default"][1], 1)

    config, ((_, *records), (head, *finals)) = tuned("balanced")
    assert (config["pdl"], config["kwarps"]) == (0, 8), config # 0.707 in the mean, before 0.8
    for one in (records, [r for r in finals if r["stage"] == "final"]):
        one.sort(key=lambda r: (r["config"]["kwarps"] == 8, r["config"]["pdl"])) # finalists are in the order of their means
        for record, sustained, bursts in zip(one, (1, 0.8, 1), (1, 0.8, 0.5)):
            near(record["timing"]["ratio"], sustained), near(record["bursts"]["ratio"], bursts)
    holdout = head["environment"]["holdout"]
    assert set(holdout["regimes"]) == {"sustained", "bursts", "serial"} and holdout["balanced"]["verdict"] == "win", holdout
    near(holdout["balanced"]["ratio"][1], 0.5 ** 0.5)
    run(deepgen, "lock", "merge", "--lock", "lock.json", "--device", "device.json", "--problem", "problem.json", "--arch", "sm_90",
        "--records", "records.jsonl", "final.jsonl")
    evidence = json.loads((path / "lock.json").read_text())["entries"][0]["evidence"]
    assert evidence["regime"] == "balanced" and set(evidence["regimes"]) == {"sustained", "bursts", "serial"}, evidence
    near(evidence["ratio"][1], 0.5 ** 0.5), near(evidence["regimes"]["bursts"]["ratio"][1], 0.5)
    shown = run(deepgen, "lock", "show", "--lock", "lock.json")
    assert all(words in shown for words in ("tuned for balanced calls; ", "bursts: 2.0", "sustained: 1.0")), shown


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
