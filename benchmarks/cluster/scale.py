"""How busy a build keeps its sites' slots: scale.py [--problems 1000] [--compile 64] [--measure 8] -o results.json

The graph is the real one, of Ninja; the tools are a stub that sleeps for as long as it is told and writes what it is asked for:
10 ms for a slot of a round, 50 ms for a measurement. So this shows what the graph and Ninja leave idle, and no launcher.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SLOT, MEASURE = 0.010, 0.050
STUB = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int remote = 0, slots = 0, measures = 0;
  char* file = 0;
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--")) remote = 1;
    if (!strcmp(argv[i], "--slot") && !slots) slots = 1;
    if (!strcmp(argv[i], "--count")) slots = atoi(argv[i + 1]);
    if (remote && (!strcmp(argv[i], "run") || !strcmp(argv[i], "playoff"))) measures = 1;
    if ((!strcmp(argv[i], "-o") || !strcmp(argv[i], "--header") || !strcmp(argv[i], "--source")) && i + 1 < argc) {
      file = argv[i + 1];
      FILE* f = fopen(file, "w");
      if (!f) return 1;
      if (strstr(file, ".cpp")) fputs("int unused;\n", f);
      fclose(f);
    }
  }
  if (remote && (slots || measures)) usleep(slots ? slots * 10000 : 50000);
  return 0;
}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--compile", type=int, default=64)
    parser.add_argument("--measure", type=int, default=8)
    parser.add_argument("-o", required=True)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    source = pathlib.Path(__file__).resolve().parents[2]
    (folder / "stub.c").write_text(STUB)
    subprocess.run(["cc", "-O1", folder / "stub.c", "-o", folder / "stub"], check=True)
    text = ("cmake_minimum_required(VERSION 3.25)\nproject(scale CXX)\nadd_library(runtime INTERFACE)\n"
            f"add_library(DeepGen::runtime ALIAS runtime)\ninclude({source}/cmake/DeepGen.cmake)\n")
    for i in range(options.problems):
        text += f"deepgen_add_gemm(lib NAME f{i} SHAPE {1000 + i} 8 8 TYPES f32 f32 f32)\n"
    (folder / "CMakeLists.txt").write_text(text)
    site = {"name": "s", "arch": "cpu", "compile": ["x"], "compile_jobs": options.compile, "measure": ["y"],
            "measure_jobs": options.measure, "worker": "/w"}
    (folder / "sites.json").write_text(json.dumps({"schema": "deepgen.sites/1", "sites": [site]}))
    configure = {}
    for name, more in (("with sites", [f"-DDEEPGEN_SITES={folder}/sites.json"]), ("without", [])):
        start = os.times()
        subprocess.run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / name, f"-DDEEPGEN_EXECUTABLE={folder}/stub",
                        f"-DDEEPGEN_MEASURE_EXECUTABLE={folder}/stub", "-DDEEPGEN_ARCHS=cpu", *more], check=True, stdout=subprocess.DEVNULL)
        end = os.times()
        statements = len(re.findall(r"^build ", (folder / name / "build.ninja").read_text(), re.M))
        configure[name] = {"cpu_seconds": end.children_user + end.children_system - start.children_user - start.children_system,
                           "build_statements": statements}
    jobs = options.compile + options.measure
    start, begin = time.monotonic(), os.times()
    subprocess.run(["ninja", "-C", folder / "with sites", f"-j{jobs}", "lib.tune"], check=True, stdout=subprocess.DEVNULL)
    wall, end = time.monotonic() - start, os.times()
    compiling = options.problems * 64 * SLOT / options.compile
    measuring = options.problems * 3 * MEASURE / options.measure
    result = {"problems": options.problems, "slots of a search": 64, "compile slots": options.compile, "measure slots": options.measure,
              "configure": configure, "wall_seconds": wall, "cpu_seconds": end.children_user + end.children_system - begin.children_user - begin.children_system,
              "least_seconds": max(compiling, measuring), "busy": {"compile": compiling / wall, "measure": measuring / wall}}
    print(json.dumps(result, indent=1))
    pathlib.Path(options.o).write_text(json.dumps(result, indent=1) + "\n")


sys.exit(main())
