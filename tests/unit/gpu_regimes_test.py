"""`deepgen-measure playoff --extra` on the made-up device of tests/fake_cuda/lossy_driver.cpp: a kernel that starts early is
faster sustained and in bursts, and is not where every launch waits. gpu_regimes_test.py DEEPGEN MEASURE DRIVER_FOLDER"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROBLEM = "gemm m=1 n=256 k=512 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2"


def slot(origin, pdl):
    config = dict(form=1, vec=16, width=32, rwarps=1, kwarps=16, unroll=1, splits=1, hint=2, pipe=0, pdl=pdl)
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
        run(measure, "devices", "-o", "device.json")
        assert "leave --extra out" in run(*playoff, "--extra", "serial", expect=1)


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
