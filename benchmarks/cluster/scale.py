"""How well a build keeps the slots of a large site at work: scale.py [--problems 1000] [--nodes 32] [--speed 10] [--steady] -o results.json

The graph is the real one, of CMake and Ninja. The tools are a stub that takes a free slot of a simulated node, sleeps for as long as
is measured elsewhere, divided by --speed, and fails now and then, as launchers do: one launch of 20 dies half way, one node dies
always, one is three times as slow. It tries again as `deepgen remote` does, and leaves the bad node out after three failures. So
this shows what the graph, Ninja and retries leave idle, and what they need of the host that starts everything.

A node has 2 slots that compile, and one that measures. More than that at once, or a build that ends early, is an error.
--problems 1 --nodes 4 --steady is one search with 8 slots.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

# Seconds: of a launch (benchmarks/cluster/README.md), a slot's compile (benchmarks/build.md), a round, a playoff, and pauses.
LAUNCH, SLOT, ROUND, PLAYOFF, PAUSES = 0.085, 0.25, 5, 10, (1, 10, 60)
SLOTS = 64  # of a search of the default budget
STUB = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void pause_for(double s) { struct timespec t = {(time_t)s, (long)((s - (time_t)s) * 1e9)}; nanosleep(&t, 0); }
static int failures(int node) {
  char path[200];
  snprintf(path, sizeof path, FOLDER "/failures-%d", node);
  int fd = open(path, O_RDONLY);
  if (fd < 0) return 0;
  long n = lseek(fd, 0, SEEK_END);
  close(fd);
  return n;
}
static void count_failure(int node) {
  char path[200];
  snprintf(path, sizeof path, FOLDER "/failures-%d", node);
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (write(fd, "x", 1) < 0) abort();
  close(fd);
}
/* A free slot of a node that is not left out: as a batch system gives it. */
static int take(const char* task, int a_node, int* fd) {
  for (int from = rand(), i = 0; ; ++i) {
    int slot = (from + i) % (NODES * a_node), node = slot / a_node;
    if (i == 3 * NODES * a_node) return -1;
    if (FAULTS && node == 0 && failures(0) >= 3) continue;
    char path[200];
    snprintf(path, sizeof path, FOLDER "/%s-%d", task, slot);
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (flock(*fd, LOCK_EX | LOCK_NB) == 0) return node;
    close(*fd);
  }
}
static void work(const char* task, int a_node, double seconds) {
  static const double pauses[] = {PAUSES};
  for (int tried = 0;; ++tried) {
    int fd, node = take(task, a_node, &fd);
    double begin = now();
    while (node < 0) { /* the bad node's slots are in the pool still */
      if (now() - begin > 60) { fprintf(stderr, "more at once than slots\n"); exit(2); }
      pause_for(0.002);
      node = take(task, a_node, &fd);
    }
    begin = now();
    int bad = FAULTS && node == 0, dies = bad || (FAULTS && rand() % 20 == 0);
    double takes = LAUNCH + seconds * (FAULTS && node == 1 ? 3 : 1);
    pause_for((bad ? LAUNCH : dies ? takes / 2 : takes) / SPEED);
    char line[200];
    int n = snprintf(line, sizeof line, "%s %d %.6f %.6f %d %.6f\n", task, node, begin, now(), dies, (LAUNCH + seconds) / SPEED);
    int log = open(FOLDER "/log", O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (write(log, line, n) != n) abort();
    close(log), close(fd);
    if (!dies) return;
    if (bad) count_failure(node);
    if (tried == 3) { fprintf(stderr, "failed four times\n"); exit(1); }
    pause_for(pauses[tried] / SPEED);
  }
}
int main(int argc, char** argv) {
  int remote = 0, slots = 0;
  double measures = 0;
  srand(getpid() * 2654435761u + (unsigned)(now() * 1e6));
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--")) remote = 1;
    if (!strcmp(argv[i], "--slot") && !slots) slots = 1;
    if (!strcmp(argv[i], "--count")) slots = atoi(argv[i + 1]);
    if (remote && !strcmp(argv[i], "run")) measures = ROUND;
    if (remote && !strcmp(argv[i], "playoff")) measures = PLAYOFF;
  }
  if (remote && measures) work("measure", 1, measures);
  else if (remote && slots) work("compile", 2, slots * SLOT);
  for (int i = 1; i + 1 < argc; ++i)
    if (!strcmp(argv[i], "-o") || !strcmp(argv[i], "--header") || !strcmp(argv[i], "--source")) {
      FILE* f = fopen(argv[i + 1], "w");
      if (!f) return 1;
      if (strstr(argv[i + 1], ".cpp")) fputs("int unused;\n", f);
      fclose(f);
    }
  return 0;
}
"""


def project(folder, options):
    stub = STUB.replace("PAUSES}", f"{', '.join(map(str, PAUSES))}, 0}}").replace("FOLDER", f'"{folder}"')
    for name, value in (("NODES", options.nodes), ("FAULTS", int(not options.steady)), ("SPEED", float(options.speed)), ("LAUNCH", LAUNCH), ("SLOT", SLOT), ("ROUND", ROUND),
                        ("PLAYOFF", PLAYOFF)):
        stub = re.sub(rf"\b{name}\b", str(value), stub)
    (folder / "stub.c").write_text(stub)
    subprocess.run(["cc", "-O1", folder / "stub.c", "-o", folder / "stub"], check=True)
    source = pathlib.Path(__file__).resolve().parents[2]
    text = ("cmake_minimum_required(VERSION 3.25)\nproject(scale CXX)\nadd_library(runtime INTERFACE)\n"
            f"add_library(DeepGen::runtime ALIAS runtime)\ninclude({source}/cmake/DeepGen.cmake)\n")
    for i in range(options.problems):
        text += f"deepgen_add_gemm(lib NAME f{i} SHAPE {1000 + i} 8 8 TYPES f32 f32 f32)\n"
    (folder / "CMakeLists.txt").write_text(text)
    site = {"name": "s", "arch": "cpu", "compile": ["x"], "compile_jobs": 2 * options.nodes, "measure": ["y"],
            "measure_jobs": options.nodes, "worker": "/w"}
    (folder / "sites.json").write_text(json.dumps({"schema": "deepgen.sites/1", "sites": [site]}))


def timed(*words):
    """Wall and CPU seconds, and the largest memory of a process of it in MiB."""
    start = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"scale: {' '.join(map(str, words))} failed")
    return {"seconds": round(time.monotonic() - start, 3), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
            "mib": round(usage.ru_maxrss / 1024, 1)}


def busy(folder, options, result):
    """Of the tries in the log: what each task's slots have done, and the least that the whole could take."""
    rows = [line.split() for line in (folder / "log").read_text().splitlines()]
    for task, slots in (("compile", 2 * options.nodes), ("measure", options.nodes)):
        mine = [(float(b), float(e), int(died), float(needed)) for name, _, b, e, died, needed in rows if name == task]
        first, last = min(r[0] for r in mine), max(r[1] for r in mine)
        at_work, needed = sum(r[1] - r[0] for r in mine), sum(r[3] for r in mine if not r[2])
        result[task] = {"slots": slots, "launches": len(mine), "died": sum(r[2] for r in mine), "needed_seconds": round(needed / slots, 2),
                        "at_work_seconds": round(at_work / slots, 2), "phase_seconds": round(last - first, 2),
                        "busy_in_phase": round(at_work / slots / (last - first), 3)}
    least = max(result[task]["needed_seconds"] for task in ("compile", "measure"))
    with_failures = max(result[task]["at_work_seconds"] for task in ("compile", "measure"))
    result.update(least_seconds=least, makespan_of_least=round(result["build"]["seconds"] / least, 3),
                  least_with_failures=with_failures, makespan_of_that=round(result["build"]["seconds"] / with_failures, 3))


def first_phase(folder, slots):
    """Share of the slots that were at work from the first launch of the first round's compiles to their last."""
    rows = [line.split() for line in (folder / "log").read_text().splitlines()]
    end = min((float(b) for name, _, b, *_ in rows if name == "measure"), default=0)
    mine = [(float(b), float(e)) for name, _, b, e, *_ in rows if name == "compile" and float(e) <= end]
    return round(sum(e - b for b, e in mine) / slots / (max(e for _, e in mine) - min(b for b, _ in mine)), 3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--speed", type=float, default=10)
    parser.add_argument("--steady", action="store_true", help="nothing fails, and no node is slow")
    parser.add_argument("-o", required=True)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    project(folder, options)
    result = {"problems": options.problems, "slots of a search": SLOTS, "nodes": options.nodes, "speed": options.speed, "steady": options.steady, "configure": {}}
    for name, more in (("with sites", [f"-DDEEPGEN_SITES={folder}/sites.json"]), ("without", [])):
        configured = timed("cmake", "-G", "Ninja", "-S", folder, "-B", folder / name, f"-DDEEPGEN_EXECUTABLE={folder}/stub",
                           f"-DDEEPGEN_MEASURE_EXECUTABLE={folder}/stub", "-DDEEPGEN_ARCHS=cpu", *more)
        configured["build_statements"] = len(re.findall(r"^build ", (folder / name / "build.ninja").read_text(), re.M))
        result["configure"][name] = configured
    command = ("ninja", "-C", folder / "with sites", f"-j{3 * options.nodes + 4}", "lib.tune")
    result["build"] = timed(*command)
    (folder / "log").rename(folder / "log.build")
    result["null_build"] = timed("ninja", "-C", folder / "with sites", "all")
    result["null_build"] = timed("ninja", "-C", folder / "with sites", "all")
    (folder / "log.build").rename(folder / "log")
    busy(folder, options, result)
    if options.problems == 1:
        result["busy_in_first_phase"] = first_phase(folder, 2 * options.nodes)
    shutil.rmtree(folder)
    print(json.dumps(result, indent=1))
    pathlib.Path(options.o).write_text(json.dumps(result, indent=1) + "\n")


sys.exit(main())
