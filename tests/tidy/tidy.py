#!/usr/bin/env python3
"""Each source by itself through clang-tidy, by the checks of .clang-tidy. A source that only compiles behind others, in a unity
source, fails as well.

usage: tidy.py CLANG_TIDY SOURCE BUILD [--seconds 75] [--commits N] [--jobs 2] [--cache FOLDER] [--only WORD ...]
  BUILD      has compile_commands.json; its unity sources are taken apart
  --seconds  no source is begun behind this time; 0: all are checked
  --commits  only sources that the last N commits changed, merges apart, or that are not committed; where git knows them
  --cache    what has passed, by hashes of what clang-tidy has read: default $XDG_CACHE_HOME/deepgen-tidy, or ~/.cache's
  --only     only sources whose path has one of these words

The sources that changed last, or whose headers did, come first. What is left out for want of time is said, and is no failure:
the next run takes it. Exit status: 1 when something was found.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time

FOLDERS = ("base", "benchmarks", "generator", "measure", "runtime", "templates", "tests", "workload")
KEPT_DAYS = 90  # of what passed and was not asked for since


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def commands_of(build, source):
    """{path of a source of ours, relative: its compiler's words without the compiler}, each by itself."""
    found = {}
    for entry in json.loads(read(os.path.join(build, "compile_commands.json"))):
        file = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        words = shlex.split(entry["command"])
        # Behind a launcher comes the compiler; what is compiled, and to what, goes.
        first = next(i for i, word in enumerate(words) if re.search(r"(\+\+|cc|clang)(-[0-9.]+)?$", os.path.basename(word))
                     and "ccache" not in word)
        words = words[first + 1:]
        at = words.index("-o")
        words = [w for w in words[:at] + words[at + 2:] if w != "-c" and not w.endswith((".cpp", ".cxx", ".c"))]
        files = [file]
        if re.search(r"/unity_[0-9]+_cxx\.cxx$", file):
            files = re.findall(r'^#include "(.+)"$', read(file), re.M)
        for one in files:
            relative = os.path.relpath(os.path.realpath(one), source)
            if relative.startswith(FOLDERS) and relative.endswith(".cpp") and os.path.exists(os.path.join(source, relative)):
                found.setdefault(relative, (entry["directory"], words))
    return found


class Project:
    """Which files of ours a source includes, and when they changed."""

    def __init__(self, source, build):
        self.source, self.build = source, build
        self.included = {}
        self.changed = self.times()

    def times(self):
        """Seconds since 1970 by path: of the last commit, or of the file where it differs from that."""
        def git(*words):
            return subprocess.run(["git", "-C", self.source, *words], capture_output=True, text=True)
        log = git("log", "--format=@%ct", "--name-only", "--relative")
        if log.returncode:
            print("tidy: not a git checkout, so sources are checked in the order of their names")
            return {}
        times, now = {}, 0
        for line in log.stdout.splitlines():
            if line.startswith("@"):
                now = int(line[1:])
            elif line:
                times.setdefault(line, now)
        for line in git("status", "--porcelain", "--no-renames", "--untracked-files=all").stdout.splitlines():
            times[line[3:].strip('"')] = time.time()
        return times

    def includes(self, relative):
        if relative not in self.included:
            found = set()
            for name in re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', read(os.path.join(self.source, relative)), re.M):
                for base in ("", os.path.dirname(relative), "runtime/include"):
                    path = os.path.normpath(os.path.join(base, name))
                    if not path.startswith("..") and os.path.isfile(os.path.join(self.source, path)):
                        found.add(path)
                        break
            self.included[relative] = found
        return self.included[relative]

    def closure(self, relative):
        seen, left = set(), [relative]
        while left:
            at = left.pop()
            if at not in seen:
                seen.add(at)
                left += self.includes(at)
        return seen

    def order(self, relative):
        """Greatest for the first: when the source or a header of it changed last, then the source itself."""
        return (max(self.changed.get(x, 0) for x in self.closure(relative)), self.changed.get(relative, 0))


class Tidy:
    def __init__(self, options, source, build):
        self.program, self.source, self.build = options.clang_tidy, source, build
        self.version = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout
        self.checks = read(os.path.join(source, ".clang-tidy"))
        self.project = Project(source, build)
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.cache = options.cache or os.path.join(base, "deepgen-tidy")
        os.makedirs(self.cache, exist_ok=True)

    def key(self, relative, command):
        place = " ".join(command[1]).replace(self.build, "BUILD").replace(self.source, "SOURCE")
        parts = [self.version, self.checks, read(__file__), relative, place]
        parts += [path + "\0" + read(os.path.join(self.source, path)) for path in sorted(self.project.closure(relative))]
        return hashlib.sha256("\1".join(parts).encode()).hexdigest()

    def known(self, key):
        path = os.path.join(self.cache, key)
        if not os.path.exists(path):
            return False
        os.utime(path)
        return True

    def passed(self, key):
        with open(os.path.join(self.cache, key), "w"):
            pass

    def forget_old(self):
        for name in os.listdir(self.cache):
            path = os.path.join(self.cache, name)
            if re.fullmatch("[0-9a-f]{64}", name) and time.time() - os.path.getmtime(path) > KEPT_DAYS * 86400:
                os.remove(path)

    def check(self, relative, command):
        """What clang-tidy says, or nothing."""
        directory, words = command
        ours = "|".join(FOLDERS)
        # The warnings are GCC's in a build; clang knows others.
        words = [w for w in words if w != "-Werror" and not w.startswith("-Wno-")] + ["-w"]
        done = subprocess.run(
            [self.program, "--quiet", "--warnings-as-errors=*", f"--header-filter=^{re.escape(self.source)}/({ours})/",
             os.path.join(self.source, relative), "--", *words],
            cwd=directory, capture_output=True, text=True)
        if done.returncode == 0:
            return ""
        noise = re.compile(r"^\d+ (warnings?|errors?) .*(generated|treated)|^Suppressed|^Use -header-filter|^\s*$")
        said = [line for line in (done.stdout + done.stderr).splitlines() if not noise.match(line)]
        return "\n".join(said[:60]) or f"{self.program} ended with {done.returncode}"


def run(tidy, wanted, seconds, jobs):
    """How many had findings; prints them, and what was left out."""
    begin = time.monotonic()
    order = sorted(wanted, key=tidy.project.order, reverse=True)
    keys = {x: tidy.key(x, wanted[x]) for x in order}
    left = [x for x in order if not tidy.known(keys[x])]
    known, out, bad = len(order) - len(left), [], 0

    def one(relative):
        if seconds and time.monotonic() - begin > seconds:
            return relative, None
        return relative, tidy.check(relative, wanted[relative])

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for relative, said in pool.map(one, left):
            if said is None:
                out.append(relative)
            elif said:
                bad += 1
                print(f"{said}\n", flush=True)
            else:
                tidy.passed(keys[relative])
    print(f"tidy: {len(order)} sources: {len(left) - len(out)} checked in {time.monotonic() - begin:.0f} s, {known} are as they "
          f"passed before, {len(out)} left out, {bad} with findings")
    if out:
        print(f"tidy: {seconds:g} s were over; left out, those that changed longest ago: {' '.join(out)}")
    return bad


def changed_in(source, commits):
    """Sources that the last commits changed, or that are not committed; nothing outside of a git checkout."""
    def git(*words):
        return subprocess.run(["git", "-C", source, *words], capture_output=True, text=True)
    log = git("log", f"-{commits}", "--no-merges", "--format=", "--name-only", "--relative")
    if log.returncode:
        return None
    status = git("status", "--porcelain", "--no-renames", "--untracked-files=all").stdout
    return set(log.stdout.splitlines()) | {line[3:] for line in status.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clang_tidy")
    parser.add_argument("source")
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=75)
    parser.add_argument("--commits", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache")
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    source, build = os.path.realpath(options.source), os.path.realpath(options.build)
    commands = commands_of(build, source)
    wanted = {x: c for x, c in commands.items() if not options.only or any(word in x for word in options.only)}
    if not wanted:
        sys.exit("tidy: no source of ours in " + os.path.join(build, "compile_commands.json"))
    if options.commits and (changed := changed_in(source, options.commits)) is not None:
        print(f"tidy: of {len(wanted)} sources those that the last {options.commits} commits changed")
        wanted = {x: c for x, c in wanted.items() if x in changed}
    tidy = Tidy(options, source, build)
    tidy.forget_old()
    return 1 if run(tidy, wanted, options.seconds, options.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
