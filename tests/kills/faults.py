"""A full disk, a read-only source tree, a clock that runs backwards, too little memory, a GPU that is reset: clear messages, nothing lost, and
the next run goes on.

Runs the tools with faults.c preloaded. Every command of a search meets a disk that is full from its n-th change on, for
each n until it meets none: it must fail with the name of a file, or succeed whole, and leave old or new files and no
temporary ones. Then `ninja tune` with a source tree that cannot be written, and with a clock that runs backwards.

  faults.py --deepgen deepgen --measure deepgen-measure --faults libfaults.so
            --driver libcuda.so.1 --prefix PREFIX --work FOLDER [--cxx c++]
"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REFUSED = "faults: refused"


def fail(why):
    sys.exit(f"faults: {why}")


def run(command, folder, faults=None, must_succeed=True, memory=None):
    """Status and output; `faults` are the variables of faults.c, `memory` is a limit on address space."""
    environment = os.environ | (faults or {})
    limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))) if memory else None
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=limit)
    if must_succeed and done.returncode != 0:
        fail(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.returncode, done.stdout


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def commands():
    """Of one search, with what each writes, and what of that may differ from one run to the next."""
    tool, measure = options.deepgen, options.measure
    problem = ["--problem", "problem.json"]
    records = ["--records", "r0/records.jsonl"]
    yield [measure, "devices", "--arch", "cpu", "-o", "device.json"], ["device.json"], False
    yield [tool, "--codegen-id", "-o", "codegen.id"], ["codegen.id"], False
    yield [tool, "plan", *problem, "--device", "device.json", "--round", 0, "--slots", 2, "-o", "r0/plan.json"], ["r0/plan.json"], False
    for slot in (0, 1):
        output = f"r0/s{slot:02}.dgk"
        yield [tool, "compile", "--plan", "r0/plan.json", "--slot", slot, "-o", output], [output], False
    budget = ["--seconds", 0.1, "--device", "device.json"]
    yield [measure, "run", "--plan", "r0/plan.json", "--kernels", "r0", "--slots", 2, *budget, "-o", "r0/records.jsonl"], ["r0/records.jsonl"], True
    # OpenBLAS that finds no memory asks for it without end: it is given up after 2 s, not 10.
    yield [measure, "playoff", *records, *budget, "--timeout", 2, "-o", "final.jsonl"], ["final.jsonl"], True
    yield [tool, "select", "--device", "device.json", *problem, "-o", "choice.json"], ["choice.json"], False
    yield [tool, "compile", "--choice", "choice.json", "-o", "winner.dgk"], ["winner.dgk"], False
    yield [tool, "header", "--target", "t", "--header", "include/t.h", "--arch", "cpu", *problem], ["include/t.h"], False
    yield [tool, "embed", "--target", "t", "--header", "include/t.h", "--source", "t.cpp", *problem, "--kernel", "winner.dgk"], ["t.cpp"], False


def meet_full_disks(command, outputs, folder):
    """The folder is as it was before the command; afterwards as the command leaves it. Returns how many failures it met."""
    before = contents(folder)
    for at in range(1, 100):
        status, text = run(command, folder, {"FAULTS_IN": str(folder), "FAULTS_FULL_AT": str(at)}, must_succeed=False)
        after = contents(folder)
        if REFUSED not in text:
            if status != 0:
                fail(f"{command} failed without a fault:\n{text}")
            return at - 1
        if status == 0 or "No space left on device" not in text or "free space" not in text:
            fail(f"{command} with a disk full at change {at} ended with {status} and:\n{text}")
        if not any(pathlib.Path(output).name in text for output in outputs):
            fail(f"the message names none of {outputs}:\n{text}")
        unexpected = after.keys() - before.keys() - {pathlib.Path(o) for o in outputs}
        allowed = outputs if len(outputs) > 1 else []  # the first may be new when the second one fails
        changed = [p for p in before if after.get(p) != before[p] and str(p) not in allowed]
        if unexpected or changed:
            fail(f"{command} with a disk full at change {at} left {unexpected} and changed {changed}")
    fail(f"{command} has no end of changes")


def full_disks():
    folder = options.work / "disk"
    folder.mkdir()
    shutil.copyfile(HERE.parent / "fuzz/corpus/problem/one", folder / "problem.json")
    met = 0
    for command, outputs, varies in commands():
        met += meet_full_disks(command, outputs, folder)
        for output in outputs:  # now there is an old one
            path = folder / output
            good = path.read_bytes()
            path.write_bytes(good[:-9])
            met += meet_full_disks(command, outputs, folder)
            if not varies and path.read_bytes() != good:
                fail(f"{path} is not as it was written first")
    print(f"faults: {met + full_disks_of_merge(folder)} full disks")


def full_disks_of_merge(folder):
    lock = folder / "lock.json"
    records = ["--records", "r0/records.jsonl", "final.jsonl"]
    merge = [options.deepgen, "lock", "merge", "--lock", "lock.json", "--device", "device.json", "--problem", "problem.json", *records]
    for _ in range(6):  # an unstable playoff is not merged
        status, text = run(merge, folder, must_succeed=False)
        if "too much interference" not in text:
            break
        for command, outputs, _ in commands():
            if outputs == ["final.jsonl"]:
                run(command, folder)
    if status != 0:
        fail(f"cannot merge:\n{text}")
    lock.unlink()
    met = meet_full_disks(merge, ["lock.json"], folder)
    shutil.copyfile(HERE.parent / "fuzz/corpus/lock/one", lock)
    met += meet_full_disks(merge, ["lock.json"], folder)
    if lock.read_bytes().count(b'"problem"') != 2:
        fail(f"the lock lost an entry: {lock.read_text()}")
    return met


def configure(name):
    project, build = options.work / name, options.work / f"{name}-build"
    shutil.copytree(HERE / "project", project)
    run(["cmake", "-G", "Ninja", "-S", project, "-B", build, "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={options.prefix}",
         f"-DDEEPGEN_EXECUTABLE={options.deepgen}", f"-DDEEPGEN_MEASURE_EXECUTABLE={options.measure}",
         f"-DCMAKE_CXX_COMPILER={options.cxx}", "-DDEEPGEN_ARCHS=cpu", "-DDEEPGEN_SLOTS=2", "-DDEEPGEN_MEASURE_SECONDS=0.1"],
        options.work)
    return project, build


def tune(build, faults=None, expect=0):
    """On a busy machine a playoff may be unstable; then it is repeated, as the message asks. Returns all output."""
    every = ""
    for _ in range(6):
        status, text = run(["ninja", "-C", build, "-v", "tune"], build, faults, must_succeed=False)
        every += text
        if "too much interference" not in text:
            break
    if (status != 0) != (expect != 0):
        fail(f"`ninja tune` with {faults} ended with {status}:\n{every}")
    return every


def read_only_source():
    project, build = configure("read_only")
    text = tune(build, {"FAULTS_IN": str(project), "FAULTS_READ_ONLY": "1"}, expect=1)
    for wanted in ("Read-only file system", "deepgen.lock.json", "run `ninja tune` again"):
        if wanted not in text:
            fail(f"with a read-only source tree `ninja tune` does not say: {wanted}\n{text}")
    run(["ninja", "-C", build], build, {"FAULTS_IN": str(project), "FAULTS_READ_ONLY": "1"})
    if [p.name for p in project.iterdir()] != ["CMakeLists.txt"]:
        fail("a read-only source tree was written to")
    text = tune(build)
    if re.search(r" compile --plan|deepgen-measure run", text) or not (project / "deepgen.lock.json").exists():
        fail(f"the next `ninja tune` should only merge:\n{text}")
    print("faults: a read-only source tree")


def gpu_search(folder):
    """A round of a search on a GPU whose driver is tests/fake_cuda/lossy_driver.cpp: every kernel passes."""
    folder.mkdir()
    key = "gemm m=64 n=64 k=64 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2"
    text = (HERE.parent / "fuzz/corpus/problem/one").read_text()
    (folder / "problem.json").write_text(re.sub('"gemm [^"]*"', f'"{key}"', text))
    run([options.measure, "devices", "--arch", "sm_90", "-o", "device.json"], folder)
    run([options.deepgen, "plan", "--problem", "problem.json", "--arch", "sm_90", "--device", "device.json", "--round", 0, "--slots", 3,
         "-o", "plan.json"], folder)
    for slot in range(3):
        run([options.deepgen, "compile", "--plan", "plan.json", "--slot", slot, "-o", f"s{slot:02}.dgk"], folder)
    return [options.measure, "run", "--plan", "plan.json", "--kernels", ".", "--slots", 3, "--device", "device.json", "--seconds", 0.1,
            "-o", "records.jsonl"]


def driver_resets():
    """At the n-th call of the driver its process loses the device: one candidate is a crash, and the others are good."""
    folder = options.work / "driver"
    os.environ.update(LD_LIBRARY_PATH=str(options.driver.parent), DEEPGEN_PTXAS="none")
    measure = gpu_search(folder)
    records, calls = folder / "records.jsonl", folder / "calls"
    verify = [options.measure, "verify", "s00.dgk", "s01.dgk", "s02.dgk"]
    blamed = set()

    def lost_at(call, command, must_succeed):
        calls.unlink(missing_ok=True)
        return run(command, folder, {"FAKE_DRIVER_FAILS": f"{calls} {call} 999"}, must_succeed)

    def check(call, text, outcomes):  # of the three candidates: status and detail
        bad = [i for i, (status, _) in enumerate(outcomes) if status not in ("ok", "dropped")]
        if len(outcomes) != 3 or len(bad) > 1 or any(outcomes[i][0] != "crash" or "CUDA_ERROR_UNKNOWN" not in outcomes[i][1] for i in bad):
            fail(f"with a driver that is lost at call {call}: {text}")
        blamed.update(bad)

    for call in (1, 9, 12, 20, 100, 400, 700, 1000):
        text = lost_at(call, verify, must_succeed=False)[1]
        check(call, text, re.findall(r"^(\w+) +s\d\d\.dgk(.*)$", text, re.MULTILINE))
    if len(blamed) < 2:
        fail(f"only {blamed} were hit")
    for call in (9, 20000):  # the second one while it is timed
        text = lost_at(call, measure, must_succeed=True)[1]
        lines = [json.loads(line) for line in records.read_text().splitlines()[1:]]
        check(call, text, [(r["status"], r["detail"]) for r in lines])
    records.unlink()
    status, text = lost_at(0, measure, must_succeed=False)  # it does not come back
    if status == 0 or "cannot be opened" not in text or "run the build again" not in text or records.exists():
        fail(f"with a driver that stays lost: {text}")
    print("faults: a driver that is reset")


def limits_near_success(works):
    """Limits on address space about the least one with which `works`: much below it the program cannot even be loaded."""
    low, high = 1 << 20, 2048 << 20
    while high - low > 64 << 10:
        middle = (low + high) // 2
        if works(middle):
            high = middle
        else:
            low = middle
    return [high + step * (32 << 10) for step in range(-12, 2)] + [high + (step << 20) for step in (2, 4, 8)]


def meet_lack_of_memory(command, output, folder):
    """Returns how often the command said that it met one. On a busy machine it may fail for want of time with plenty of
    memory, which misleads the bisection: it is then repeated."""
    met = 0

    def works(memory):
        nonlocal met
        output.unlink(missing_ok=True)
        status, text = run(command, folder, must_succeed=False, memory=memory)
        if status == 0:
            check_no_fault(command, output, text)
        elif output.exists():
            fail(f"{command} in {memory} bytes failed, and wrote {output}:\n{text}")
        met += status != 0 and "ot enough memory" in text
        return status == 0

    for _ in range(4):
        for memory in limits_near_success(works):
            works(memory)
        if met:
            return met
    fail(f"{command} met no lack of memory")


def host_faults():
    """Too little memory, a policy against new code: no verdict on a candidate. The command fails with what was short, or it
    succeeds whole; without the fault the same command goes on."""
    folder = options.work / "host"
    folder.mkdir()
    shutil.copyfile(HERE.parent / "fuzz/corpus/problem/one", folder / "problem.json")
    short = 0
    for command, outputs, varies in commands():
        if command[1] not in ("compile", "run", "playoff"):
            run(command, folder)
            continue
        output = folder / outputs[0]
        if command[1] != "compile":
            status, text = run(command, folder, {"FAULTS_NO_NEW_CODE": "1"}, must_succeed=False)
            if command[1] == "run" and (status == 0 or output.exists() or "memory executable" not in text or "Permission denied" not in text):
                fail(f"{command} with a policy against new code ended with {status} and:\n{text}")
            output.unlink(missing_ok=True)
        short += meet_lack_of_memory(command, output, folder)
        output.unlink(missing_ok=True)
        run(command, folder)
        check_no_fault(command, output, "")
    print(f"faults: {short} times too little memory, and a policy against new code")


def check_no_fault(command, output, text):
    """Every candidate is good: nothing of what the host could not do was written down."""
    if output.suffix == ".dgk":
        good = b'"status":"ok"' in output.read_bytes().split(b"\n")[0]
    else:
        records = [json.loads(line) for line in output.read_text().splitlines()[1:]]
        states = [r["status"] for r in records if r["template"] != "vendor"]
        good = states and all(s in ("ok", "duplicate", "dropped") for s in states)
    if not good:
        fail(f"{command} succeeded with a bad {output}:\n{output.read_bytes()[:3000]}\n{text}")


def check_decision(entry, search):
    """The lock has what the search's finals say: its times, none of which a clock made impossible, and its winner."""
    logs = {path: [json.loads(line) for line in path.read_text().splitlines()] for path in search.rglob("*.jsonl")}
    records = [r for log in logs.values() for r in log[1:]]
    timed = [r["timing"] for r in records if "timing" in r]
    if not timed or any(not (0 < t["quartile1"] <= t["seconds"] <= t["quartile3"]) or not 0 < t["low"] <= t["ratio"] <= t["high"] for t in timed):
        fail(f"impossible times with a clock that runs backwards: {timed}")
    own = [r for r in records if r["stage"] != "vendor" and r["template"] != "vendor"]
    bad = [r["status"] for r in own if r["status"] not in ("ok", "duplicate", "dropped")]
    finals = [r for r in own if r["stage"] == "final" and r["status"] == "ok"]
    if bad or not finals:
        fail(f"with a clock that runs backwards candidates are {bad}, and {len(finals)} are in the finals")
    (chosen,) = [r for r in finals if r["config"] == entry["config"]] or [None]
    held = [r for r in own if r["stage"] == "holdout" and r["config"] == entry["config"]]
    if not chosen or not held or (chosen["origin"] != "default" and not held[0]["timing"]["high"] < 1):
        fail(f"with a clock that runs backwards the lock has {entry}, the finals have {finals}, the hold-out {held}")


def clock_backwards():
    fault = {"FAULTS_CLOCK": "1"}
    status, _ = run([sys.executable, "-c", "import time; first = time.time(); raise SystemExit(time.time() > first)"], options.work, fault)
    project, build = configure("clock")
    tune(build, fault)
    entries = json.loads((project / "deepgen.lock.json").read_text())["entries"]
    if len(entries) != 2:
        fail(f"of two problems {len(entries)} are in the lock with a clock that runs backwards")
    for entry, name in zip(sorted(entries, key=lambda e: "f64" in e["problem"]), ("one", "two")):
        check_decision(entry, build / "_deepgen/kernels" / name / "cpu")
    text = run(["ninja", "-C", build, "-v"], build, fault)[1]
    if re.search(r" compile --plan|deepgen-measure run", text) or not (build / "libkernels.a").exists():
        fail(f"with a clock that runs backwards a locked build searches, or has no library:\n{text}")
    print("faults: a clock that runs backwards")


parser = argparse.ArgumentParser()
for each in ("deepgen", "measure", "faults", "driver", "prefix", "work"):
    parser.add_argument(f"--{each}", required=True, type=pathlib.Path)
parser.add_argument("--cxx", default="c++")
parser.add_argument("--only", help="one of the parts, such as driver_resets")
options = parser.parse_args()
options.work = options.work.resolve()
shutil.rmtree(options.work, ignore_errors=True)
options.work.mkdir(parents=True)
os.environ.update(DEEPGEN_CACHE="off", LD_PRELOAD=str(options.faults), FAULTS_QUIET="1")
try:
    os.nice(-19)  # tests beside it would disturb the playoffs
except PermissionError:
    pass
for part in (full_disks, read_only_source, host_faults, clock_backwards, driver_resets):
    if options.only in (None, part.__name__):
        part()
