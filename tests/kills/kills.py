"""kill -9 of any process of `ninja tune`, at random times: what the files hold must stay good, and the next run goes on.

Searches a tiny project again and again with candidates that crash, hang and lie (tests/faulty), and meanwhile kills
ninja, the compiler, its child, the measuring tool or its worker. After each kill every file of the build folder must be
absent or whole, what was finished must be as it was, and the lock old or new. At the end an undisturbed run must
succeed, compile nothing that was finished, and leave no temporary file.

  kills.py --deepgen deepgen-faulty --measure deepgen-measure --faults libfaults.so --prefix PREFIX --work FOLDER
           [--cxx c++] [--kills 200] [--seed 1]
"""
import argparse
import collections
import ctypes
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 60  # seconds until a process that should have ended is an error
HERE = pathlib.Path(__file__).resolve().parent


def fail(why):
    sys.exit(f"kills: {why}")


# --- processes

def processes():
    """pid -> (parent, command line) of all descendants of this process."""
    every = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = pathlib.Path("/proc", entry, "stat").read_text()
            line = pathlib.Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        state, parent = stat.rpartition(")")[2].split()[:2]
        if state not in "ZX":
            every[int(entry)] = (int(parent), [word.decode() for word in line])
    ours, found = {os.getpid()}, {}
    while True:
        new = {pid: p for pid, p in every.items() if p[0] in ours and pid not in ours}
        if not new:
            return found
        ours |= new.keys()
        found |= new


def kind(pid, tree):
    """What a process is; a tool's child that runs the same command line is its worker. None: not to be killed."""
    parent, line = tree[pid]
    name = pathlib.Path(line[0]).name
    if name == "ninja":
        return name
    if not name.startswith("deepgen") or len(line) < 2:
        return None
    forked = parent in tree and tree[parent][1] == line
    return f"{'deepgen-measure' if name == 'deepgen-measure' else 'deepgen'} {line[1]}{' (its child)' if forked else ''}"


def reap():
    """Orphans become children of ours."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            fail(f"{what} after {PATIENCE} s")
        time.sleep(0.01)
        reap()


# --- files

def whole_kernel(data):
    head, _, code = data.partition(b"\n")
    size = sum(k["code_bytes"] + k.get("ptx_bytes", 0) for k in json.loads(head)["kernels"])
    seal = len(b',"digest":""}') + 64  # at the end of the head, over all that is beside it
    return size == len(code) and hashlib.sha256(head[:-seal] + b"}\n" + code).hexdigest().encode() == head[-66:-2]


def whole_log(data):
    return data.endswith(b"\n") and all(json.loads(line)["schema"] for line in data.splitlines())


def whole_lock(data):
    return all(entry["sha256"] for entry in json.loads(data)["entries"])


def check_whole(build, lock):
    for path in [p for p in (build / "_deepgen").rglob("*") if p.is_file()] + [lock]:
        test = {".dgk": whole_kernel, ".jsonl": whole_log, ".json": lambda data: json.loads(data)}.get(path.suffix)
        test = whole_lock if path == lock else test
        if not test:
            continue
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        try:
            good = test(data)
        except (ValueError, KeyError) as error:
            good, data = False, f"{error}: {data[:300]}".encode()
        if not good:
            fail(f"{path} is damaged: {data[:400]}")


def state(path):
    info = path.stat()
    return info.st_ino, info.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()


def finished(build):
    """State of what Ninja has down as done: kernels and logs of the rounds. A playoff that was unstable is repeated."""
    log = build / ".ninja_log"
    outputs = {line.split("\t")[3] for line in log.read_text().splitlines() if line.count("\t") == 4} if log.exists() else set()
    paths = [build / o for o in outputs if re.search(r"/r\d+/(s\d+\.dgk|records\.jsonl)$", o)]
    return {p: state(p) for p in paths if p.exists()}


# --- the runs

class Test:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.work = pathlib.Path(options.work).resolve()
        self.build, self.fresh = self.work / "build", self.work / "fresh"
        self.lock = self.work / "project/deepgen.lock.json"
        self.killed = collections.Counter()
        self.generations = self.tuned = 0
        self.done = {}

    def configure(self):
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(HERE / "project", self.work / "project")
        subprocess.run(
            ["cmake", "-G", "Ninja", "-S", self.work / "project", "-B", self.build, "-DCMAKE_BUILD_TYPE=Release",
             f"-DCMAKE_PREFIX_PATH={self.options.prefix}", f"-DDEEPGEN_EXECUTABLE={self.options.deepgen}",
             f"-DDEEPGEN_MEASURE_EXECUTABLE={self.options.measure}", f"-DCMAKE_CXX_COMPILER={self.options.cxx}",
             "-DDEEPGEN_ARCHS=cpu", "-DDEEPGEN_SLOTS=5;3", "-DDEEPGEN_MEASURE_SECONDS=0.1"],
            check=True, stdout=subprocess.DEVNULL)
        shutil.copytree(self.build, self.fresh, symlinks=True)

    def start_afresh(self):
        """An empty build folder; every other time without a lock."""
        shutil.rmtree(self.build)
        shutil.copytree(self.fresh, self.build, symlinks=True)
        self.generations += 1
        self.done = {}
        if self.random.random() < 0.5:
            self.lock.unlink(missing_ok=True)

    def ninja(self, **more):
        return subprocess.Popen(["ninja", "-C", str(self.build), "-k", "0", "-j", "3", "-v", "tune"], stdin=subprocess.DEVNULL,
                                stderr=subprocess.STDOUT, start_new_session=True, **more)

    def kill_one(self):
        tree = processes()
        kinds = collections.defaultdict(list)
        for pid in tree:
            what = kind(pid, tree)
            if what:
                kinds[what].append(pid)
        if self.random.random() < 0.9:  # ninja is there all the time, and without it nothing goes forward
            kinds.pop("ninja", None)
        if not kinds:
            return
        what = self.random.choice(sorted(kinds))
        pid = self.random.choice(sorted(kinds[what]))
        children = [child for child, (parent, line) in tree.items() if parent == pid and line == tree[pid][1]]
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.killed[what] += 1
        self.check()
        for child in children:
            wait_until(lambda: child not in processes(), f"the child of a killed {what} runs on")

    def check(self):
        check_whole(self.build, self.lock)
        for path, before in self.done.items():
            if not path.exists() or state(path) != before:
                fail(f"{path} was finished, and has changed since")

    def disturbed_run(self):
        with open(self.work / "log.txt", "a") as log:
            ninja = self.ninja(stdout=log)
        while ninja.poll() is None and sum(self.killed.values()) < self.options.kills:
            time.sleep(self.random.uniform(0, self.random.choice((0.1, 0.1, 1))))
            self.kill_one()
        if ninja.returncode is not None and ninja.returncode < 0 and self.random.random() < 0.25:
            self.done = {}  # its orphans still run beside the next one, and may redo what that has done
            return False
        wait_until(lambda: not processes(), "processes of a killed run are left")
        ninja.wait()
        self.done = finished(self.build)
        return ninja.returncode == 0

    def last_run(self):
        self.done = finished(self.build)
        for attempt in range(6):  # a playoff may be unstable on a busy machine; the message asks to repeat it
            ninja = self.ninja(stdout=subprocess.PIPE, text=True)
            text = ninja.communicate()[0]
            self.check()
            for folder, slot in re.findall(r" compile --plan (\S+)/plan.json --slot (\d+)", text):
                path = self.build / "_deepgen/kernels" / folder / f"s{int(slot):02}.dgk"
                if path in self.done:
                    fail(f"{path} was finished, and was compiled again:\n{text}")
            self.done = finished(self.build)
            if ninja.returncode == 0 or "too much interference" not in text:
                break
        if ninja.returncode != 0:
            fail(f"the undisturbed run failed:\n{text}")
        entries = json.loads(self.lock.read_bytes())["entries"]
        if len(entries) != 2 or any(e["config"]["fault"] not in (0, 6) for e in entries):
            fail(f"the lock is not what it should be: {entries}")
        left = [p for folder in (self.build / "_deepgen", self.lock.parent) for p in folder.rglob("*.tmp*")]
        if left:
            fail(f"temporary files are left: {left}")

    def run(self):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        os.environ.update(DEEPGEN_MEASURE_TIMEOUT="0.3", DEEPGEN_CACHE="off", LD_PRELOAD=self.options.faults, FAULTS_QUIET="1")
        start = time.monotonic()
        self.configure()
        whole = False
        while sum(self.killed.values()) < self.options.kills:
            if whole:
                self.tuned += 1
                self.start_afresh()
            whole = self.disturbed_run()
        self.last_run()
        for what, count in sorted(self.killed.items()):
            print(f"{count:4} x {what}")
        print(f"kills: {sum(self.killed.values())} kills in {self.generations + 1} searches, {self.tuned} of which ended "
              f"under them; seed {self.options.seed}; {time.monotonic() - start:.0f} s")


def main():
    parser = argparse.ArgumentParser()
    for name in ("deepgen", "measure", "faults", "prefix", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    try:
        os.nice(-19)  # tests beside it would disturb the playoffs
    except PermissionError:
        pass
    Test(parser.parse_args()).run()


if __name__ == "__main__":
    main()
