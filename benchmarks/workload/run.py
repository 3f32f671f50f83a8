"""What a workload of 200 problems costs: run.py --prefix PREFIX -o results.json [--logs llm.log ...] [--arch cpu] [--tune MINUTES [--tables FOLDER]]

Import of three libraries' logs (make_logs.py), configuring, and finding a function at run time. With --tune, what `ninja tune` with
`MINUTES n` takes, and how much of it was measuring: the promise is n; --tables keeps the uplift tables. Wall times, medians.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(workload CXX)
find_package(DeepGen REQUIRED)
deepgen_add_workload(kernels FILE workload.json ARCHS {arch} {more})
add_executable(find_benchmark find.cpp)
target_compile_features(find_benchmark PRIVATE cxx_std_17)
target_compile_options(find_benchmark PRIVATE -O2)
target_link_libraries(find_benchmark PRIVATE kernels)
"""


def run(*words, **more):
    start = time.monotonic()
    done = subprocess.run([str(w) for w in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout[-3000:]}")
    return time.monotonic() - start, done.stdout


def keys(workload):
    """The problems as find.cpp has them."""
    lines = []
    for key in re.findall(r'"(gemm m=[^"]*)"', workload.read_text()):
        value = dict(word.split("=") for word in key.split()[1:])
        epilogue = "" if value["epilogue"] == "none" else value["epilogue"]
        if len({value["a"], value["b"], value["d"]}) != 1:
            sys.exit(f"find.cpp has no such problem: {key}")
        lines.append(f'{{{value["m"]}, {value["n"]}, {value["k"]}, KERNELS_TYPE_{value["a"].upper()}, '
                     f'KERNELS_LAYOUT_{value["layout"].upper()}, "{epilogue}"}},\n')
    return lines


def spent(build):
    """Seconds that measuring has taken, by the logs of all rounds and finals."""
    total, searches = 0, 0
    for log in build.glob("_deepgen/kernels/*/*/**/*.jsonl"):
        seconds = json.loads(log.read_text().splitlines()[0])["environment"].get("spent", {})
        total += sum(value for name, value in seconds.items() if name not in ("waiting", "starts"))
        searches += log.name == "final.jsonl"
    return total, searches


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefix", required=True)
    parser.add_argument("-o", required=True)
    parser.add_argument("--arch", default="cpu")
    parser.add_argument("--logs", nargs="+", default=["llm.log", "encoders.csv", "vision.log"])
    parser.add_argument("--tune", type=int)
    parser.add_argument("--tables", type=pathlib.Path)
    options = parser.parse_args()
    prefix, folder = os.path.abspath(options.prefix), pathlib.Path(tempfile.mkdtemp())
    logs = [HERE / "logs" / name for name in options.logs]
    imports = [run(f"{prefix}/bin/deepgen", "import", *logs, "-o", folder / "workload.json")[0] for _ in range(7)]
    problems = keys(folder / "workload.json")
    shutil.copy(HERE / "find.cpp", folder)
    (folder / "keys.inc").write_text("".join(problems))
    more = f"MINUTES {options.tune}" if options.tune else ""
    (folder / "CMakeLists.txt").write_text(PROJECT.format(arch=options.arch, more=more))

    def configure(name, *words):
        shutil.rmtree(folder / name, ignore_errors=True)
        return run("cmake", "-G", "Ninja", "-S", folder, "-B", folder / name, "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={prefix}",
                   *words)
    result = {"logs": options.logs, "problems": len(problems), "import_seconds": statistics.median(imports), "configure_seconds": {}}
    for mode in ("lock", "auto"):
        times = [configure(mode, f"-DDEEPGEN_MODE={mode}", "-DDEEPGEN_VERIFY=OFF") for _ in range(3)]
        result["configure_seconds"][mode] = statistics.median(seconds for seconds, _ in times)
        result["said"] = re.findall(r"-- DeepGen: (.*)", times[-1][1])
    if options.tune:
        begin = time.monotonic()
        tune = ["ninja", "-C", folder / "auto", "tune"]
        attempt = 1
        while attempt < 3 and subprocess.run(tune, stdout=subprocess.DEVNULL).returncode:  # what was disturbed is measured again
            attempt += 1
        if attempt == 3:
            run(*tune)
        seconds = time.monotonic() - begin
        measuring, searches = spent(folder / "auto")
        result["tune"] = {"minutes": options.tune, "wall_seconds": seconds, "measuring_seconds": measuring, "searches": searches, "runs": attempt}
        result["tune"]["uplift"] = run("ninja", "-C", folder / "auto", "tune-results")[1].splitlines()[-6:]
        if options.tables:
            shutil.copytree(folder / "auto/results", options.tables, dirs_exist_ok=True)
    else:
        result["build_seconds"] = run("ninja", "-C", folder / "lock")[0]
        result["find_nanoseconds"] = [json.loads(line) for line in run(folder / "lock/find_benchmark")[1].splitlines()]
    shutil.rmtree(folder)
    print(json.dumps(result, indent=1))
    pathlib.Path(options.o).write_text(json.dumps(result, indent=1) + "\n")


main()
