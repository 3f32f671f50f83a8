#!/usr/bin/env python3
"""How configuring and a null build grow with the number of problems: a CSV on stdout, a line a run.

benchmark-configure.py [--source DEEPGEN] [--runs 3] [--problems 100 250 500 1000 2000] [--null 1000]

The tools are stand-ins that write their outputs and nothing else: what is timed is CMake and Ninja. wall, user and sys are
seconds of the process and its children; on a shared machine look at user + sys."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

TOOL = r"""
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
static void make(const char* path) { /* with its folders */
  char folder[4096];
  for (const char* at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
    snprintf(folder, sizeof folder, "%.*s", (int)(at - path), path);
    mkdir(folder, 0755);
  }
  FILE* file = fopen(path, "w");
  if (file) fputs("int nothing;\n", file), fclose(file);
}
int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (!strcmp(argv[i], "-o") || !strcmp(argv[i], "--source") || (!strcmp(argv[i], "--header") && !strcmp(argv[1], "header")))
      make(argv[i + 1]);
  return 0;
}
"""


def key(i):
    layout, epilogue = ("nn", "nt", "tn", "tt")[i % 4], ("bias", "bias+gelu", "relu", "bias+silu")[i % 4]
    return (i % 13 * 5 + 3, i * 3 + 8, i % 17 * 8 + 5), layout, epilogue


def write_project(folder, source, count, locked):
    folder.mkdir(parents=True)
    lines = ["cmake_minimum_required(VERSION 3.25)", "project(many CXX)", "add_library(runtime INTERFACE)",
             "add_library(DeepGen::runtime ALIAS runtime)", f"include({source}/cmake/DeepGen.cmake)"]
    entries = []
    for i in range(1, count + 1):
        (m, n, k), layout, epilogue = key(i)
        lines.append(f"deepgen_add_gemm(many NAME f{i} SHAPE {m} {n} {k} TYPES f32 f32 f32 LAYOUT {layout} EPILOGUE {epilogue.replace('+', ' ')})")
        entries.append(f'{{"problem":"gemm m={m} n={n} k={k} batch=1 a=f32 b=f32 d=f32 acc=f32 layout={layout} epilogue={epilogue} align=4","arch":"cpu"}}')
    (folder / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    if locked:
        (folder / "deepgen.lock.json").write_text(",\n".join(entries) + "\n")


def timed(command):
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {command}")
    return time.monotonic() - start, usage.ru_utime, usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--problems", type=int, nargs="+", default=[100, 250, 500, 1000, 2000])
    parser.add_argument("--null", type=int, nargs="*", default=[1000], help="problems for which a null build is timed, too")
    options = parser.parse_args()
    print("problems,mode,locked,what,wall,user,sys", flush=True)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "tool.c").write_text(TOOL)
        subprocess.run(["cc", "-O1", "-o", work / "deepgen", work / "tool.c"], check=True)
        shutil.copy(work / "deepgen", work / "deepgen-measure")
        for count in options.problems:
            for mode, locked in (("frozen", True), ("lock", True), ("lock", False), ("auto", True), ("auto", False)):
                project = work / f"{mode}{count}{locked}"
                write_project(project, options.source.resolve(), count, locked)

                def report(what, command):
                    print(f"{count},{mode},{int(locked)},{what}," + ",".join(f"{x:.3f}" for x in timed(command)), flush=True)
                for run in range(options.runs):
                    build = project / f"build{run}"
                    report("configure", ["cmake", "-G", "Ninja", "-S", project, "-B", build, f"-DDEEPGEN_EXECUTABLE={work}/deepgen",
                                         f"-DDEEPGEN_MODE={mode}", "-DDEEPGEN_ARCHS=cpu"])
                    report("again", ["cmake", build])
                if count in options.null:
                    subprocess.run(["ninja", "-C", build], check=True, stdout=subprocess.DEVNULL)
                    for run in range(options.runs):
                        report("null build", ["ninja", "-C", build])
                shutil.rmtree(project)


main()
