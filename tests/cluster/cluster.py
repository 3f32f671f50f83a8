"""Builds whose kernels are compiled and measured by workers behind launchers that hide the build tree, and fail.

  cluster.py --prefix PREFIX --work FOLDER --hip libfake_hip.so --hook libamd_sim_hook.so [--cxx c++] CASE...

Cases: tune, a whole tune of a simulated GPU and of CPUs, whose kernels and lock are those of a local build; fault, each fault of
launcher.py in front of compiles; give_up, what an edge says when nothing helps; refused, other versions and devices; sent, workers that come through the launcher; kills.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FAULTS = ("cut=0", "cut=90", "cut=400", "cut=5000", "hang", "silent", "checksum", "garbage", "version", "die=3")
PATIENCE = 60
KNOWN = re.compile(r"CMAKE_(CXX_COMPILER_)?(ADDR2LINE|AR|DLLTOOL|EXECUTABLE_FORMAT|HAVE_LIBC_PTHREAD|LINKER|NM|OBJCOPY|OBJDUMP|RANLIB|"
                   r"READELF|STRIP|UNAME):")
ROUNDS = re.compile(r'"rounds":\d+')
MI300X = "gfx942:sramecc+:xnack- AMD Instinct MI300X"


def fail(why):
    sys.exit(f"cluster: {why}")


def can_hide():
    return subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0


class Cluster:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work).resolve()
        shutil.rmtree(self.work, ignore_errors=True)
        self.source = self.work / "project"
        shutil.copytree(HERE / "project", self.source)
        self.temporary = self.work / "tmp"  # of the workers: what is left there has been left behind
        self.temporary.mkdir()
        self.hide = can_hide()
        os.environ.update(DEEPGEN_CACHE="off", DEEPGEN_HIP_DRIVER=options.hip, FAKE_HIP_HOOK=options.hook, FAKE_HIP_REPLAYS="0",
                          FAKE_HIP_DEVICES=MI300X, DEEPGEN_KEEP_IR=str(self.work / "ir"), TMPDIR=str(self.temporary), CLUSTER_TEST=str(self.work))

    def sites(self, build, fault="none", **more):
        """sites.json of one site a kind of device, with a state folder for the launchers of each task."""
        sites = []
        for name, arch in (("mi300x", "gfx942"), ("cpus", "cpu")):
            site = {"name": name, "arch": arch, "worker": f"{self.options.prefix}/bin/deepgen", "batch": 2,
                    "compile_jobs": 3, "measure_jobs": 1, "retry_seconds": [0.05] * 8}
            for task, jobs in (("compile", 3), ("measure", 1)):
                state = self.work / f"{build.name}-{name}-{task}"
                state.mkdir(exist_ok=True)
                hide = str(build) if self.hide else "-"
                site[task] = [sys.executable, str(HERE / "launcher.py"), str(state), fault, hide, str(jobs), "--"]
            sites.append({**site, **more})
        file = self.work / f"{build.name}.sites.json"
        file.write_text(json.dumps({"schema": "deepgen.sites/1", "sites": sites}))
        return file

    def configure(self, name, sites=None, mode="auto", *others):
        build = self.work / name
        more = [f"-DDEEPGEN_SITES={sites}"] if sites else ["-DDEEPGEN_ATTACHED_GPUS=gfx942", "-DDEEPGEN_ATTACHED_GPU_COUNT=1"]
        command = ["cmake", "-G", "Ninja", "-S", self.source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", f"-DDEEPGEN_MODE={mode}",
                   f"-DCMAKE_PREFIX_PATH={self.options.prefix}", f"-DCMAKE_CXX_COMPILER={self.options.cxx}",
                   "-DDEEPGEN_SLOTS=4;2", f"-DDEEPGEN_MEASURE_SECONDS={self.options.seconds}", *more, *others]
        self.know_compilers(build)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return build

    def know_compilers(self, build):
        """What CMake has found out about the compilers for the first tree of this test: it is the same for the others."""
        first, self.first = getattr(self, "first", None), getattr(self, "first", build)
        if not first or (build / "CMakeCache.txt").exists():
            return
        for file in (first / "CMakeFiles").glob("*/CMake*.cmake"):
            (build / "CMakeFiles" / file.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, build / "CMakeFiles" / file.parent.name)
        found = [line for line in (first / "CMakeCache.txt").read_text().splitlines() if KNOWN.match(line)]
        (build / "CMakeCache.txt").write_text("\n".join(["CMAKE_PLATFORM_INFO_INITIALIZED:INTERNAL=1", *found, ""]))

    def ninja(self, build, *targets, check=True, jobs=8):
        done = subprocess.run(["ninja", "-C", build, "-j", str(jobs), *targets], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if check and done.returncode:
            fail(f"ninja {' '.join(targets)} in {build.name} failed:\n{done.stdout}")
        return done

    def slots(self, build, library="cpus"):
        """The edges that compile round 0."""
        text = (build / "build.ninja").read_text()
        return sorted(set(re.findall(rf"^build (_deepgen/{library}/[^ ]*/r0/s\d+\.(?:list|dgk))", text, re.M)))

    def kernels(self, build, rounds="r*"):
        found = {}
        for path in (build / "_deepgen").glob(f"*/*/*/{rounds}/s*.dgk"):
            library, name, place, round_, slot = path.relative_to(build / "_deepgen").parts
            found[library, name, place.partition("@")[0], round_, slot] = path.read_bytes()
        return found

    def check_counts(self, build):
        """Each site's slots were never exceeded, and nothing of it is left."""
        for state in self.work.glob(f"{build.name}-*-*"):
            if (state / "too_many").exists():
                fail(f"{state.name}: {(state / 'too_many').read_text()}")
        self.check_nothing_left()

    def check_nothing_left(self):
        end = time.monotonic() + 10
        while True:
            left = list(self.temporary.glob("deepgen-work-*"))
            workers = [line for _, line in processes() if "worker" in line[1:2] or "launcher.py" in " ".join(line)]
            if not left and not workers:
                return
            if time.monotonic() > end:
                fail(f"10 s later there is still: {left} {workers}")
            time.sleep(0.1)


def processes():
    """Of this test's processes, which have its mark in their environment, number and command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            line = [word.decode() for word in (entry / "cmdline").read_bytes().split(b"\0") if word]
        except OSError:
            continue
        if line and f"CLUSTER_TEST={os.environ['CLUSTER_TEST']}".encode() in environment.split(b"\0"):
            found.append((int(entry.name), line))
    return found


def equal_kernels(expected, found, what):
    if expected.keys() != found.keys():
        fail(f"{what}: other kernels: {sorted(expected.keys() ^ found.keys())}")
    for key in expected:
        if expected[key] != found[key]:
            fail(f"{what}: {'/'.join(key)} differs from the local build's")


def differences(expected, found, where=""):
    """A line for each field of two JSON values that differs."""
    if isinstance(expected, dict) and isinstance(found, dict):
        pairs = [(f".{key}", expected.get(key), found.get(key)) for key in sorted(expected.keys() | found.keys())]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = [(f"[{at}]", *pair) for at, pair in enumerate(zip(expected, found))]
    else:
        return [] if expected == found else [f"{where}: {json.dumps(expected)} here, {json.dumps(found)} there"]
    return [line for step, *pair in pairs for line in differences(*pair, where + step)]


def equal_locks(expected, found, what):
    """But for their rounds, which are as many as the host had time for."""
    lines = [line for line in differences(json.loads(expected), json.loads(found)) if ".evidence.rounds:" not in line]
    if lines or ROUNDS.sub("", expected) != ROUNDS.sub("", found):
        fail(f"{what}: the lock is not that of a local tune:\n" + ("\n".join(lines) or f"{expected}\n{found}"))


def tune(cluster):
    lock = cluster.source / "deepgen.lock.json"
    local = cluster.configure("local")
    cluster.ninja(local, "gpu.tune")
    expected = lock.read_text()
    lock.unlink()
    for fault in ("none", "die=5"):
        build = cluster.work / f"remote_{fault.partition('=')[0]}"
        cluster.configure(build.name, cluster.sites(build, fault))
        cluster.ninja(build, "gpu.tune")
        equal_kernels(cluster.kernels(local), {k: v for k, v in cluster.kernels(build).items() if k[0] == "gpu"}, f"tune, {fault}")
        equal_locks(expected, lock.read_text(), f"tune, {fault}")
        cluster.check_counts(build)
        lock.unlink()
    cluster.ninja(build, "all")  # CPUs too: one library of the build is searched by either site
    status = subprocess.run([f"{cluster.options.prefix}/bin/deepgen", "status", "--build", build], text=True, check=True,
                            stdout=subprocess.PIPE).stdout
    if "4 of 4 problems searched" not in status or "nothing runs elsewhere" not in status or "failures elsewhere" not in status:
        fail(f"deepgen status says:\n{status}")
    if "no work to do" not in cluster.ninja(build).stdout:
        fail("a second build has work to do")


def fault(cluster):
    local = cluster.configure("plain")
    cluster.ninja(local, *cluster.slots(local))
    expected = cluster.kernels(local, "r0")
    for one in FAULTS:
        build = cluster.work / one.replace("=", "")
        cluster.configure(build.name, cluster.sites(build, one, silence_seconds=2, start_seconds=1.5))
        cluster.ninja(build, *cluster.slots(build))
        equal_kernels(expected, cluster.kernels(build, "r0"), one)
        cluster.check_counts(build)
        failures = (build / "_deepgen/remote/failures.jsonl").read_text().splitlines()
        print(f"cluster: {one}: {len(failures)} tries failed: {json.loads(failures[0])['why'].splitlines()[0]}")


def give_up(cluster):
    """What does not help is told, writes nothing, and the same command goes on."""
    build = cluster.work / "hopeless"
    sites = cluster.sites(build, "none", retry_seconds=[0.01, 0.01])
    working = sites.read_text()
    broken = json.loads(working)
    for site in broken["sites"]:
        site["compile"] = ["sh", "-c", "echo the host is on fire >&2; exit 3", "--"]
    sites.write_text(json.dumps(broken))
    cluster.configure(build.name, sites)
    text = cluster.ninja(build, *cluster.slots(build), check=False).stdout
    for words in ("cannot compile at site 'cpus', tried 3 times", "no worker had started", "exit status 3",
                  "the launcher's last words: the host is on fire", "No record was written"):
        if words not in text:
            fail(f"the message lacks '{words}':\n{text}")
    if cluster.kernels(build):
        fail("an edge that failed has written kernels")
    sites.write_text(working)
    cluster.ninja(build, *cluster.slots(build))
    cluster.check_counts(build)


def refused(cluster):
    """Another version and another device: told at once, without another try."""
    build = cluster.work / "refused"
    sites = cluster.sites(build, "none")
    cluster.configure(build.name, sites)
    state = next(cluster.work.glob("refused-cpus-compile"))
    tool = f"{cluster.options.prefix}/bin/deepgen"
    request = {"schema": "deepgen.request/1", "id": "deepgen 9", "command": ["compile"], "outputs": [], "arch": "", "device": ""}
    for change, why in (({}, "asked for is deepgen 9"), ({"id": None, "command": ["lock"]}, "runs no such command"),
                        ({"id": None, "command": ["compile", "--plan", "/etc/passwd"]}, "of its own folder alone"),
                        ({"id": None, "command": ["compile", "--plan=../x"]}, "of its own folder alone")):
        asked = {**request, **change}
        asked["id"] = asked["id"] or subprocess.run([tool, "worker", "--id"], text=True, stdout=subprocess.PIPE).stdout.strip()
        text = talk([tool, "worker"], asked)
        if why not in text or '"refused"' not in text:
            fail(f"a worker should refuse {change}: {text}")
    cluster.ninja(build, "_deepgen/devices/cpu@cpus.json")
    device = build / "_deepgen/devices/cpu@cpus.json"
    other = json.loads(device.read_text())
    other["name"] = "Another CPU"
    device.write_text(json.dumps(other))
    text = cluster.ninja(build, "_deepgen/cpus/first/cpu@cpus/r0/records.jsonl", check=False).stdout
    if "the worker refuses to measure at site 'cpus'" not in text or "asked for is Another CPU" not in text:
        fail(f"a measurement on another device should be refused:\n{text}")
    if not (state / "count").exists():
        fail("nothing was compiled by the site")


def talk(words, request):
    import hashlib
    body = json.dumps(request).encode() + b"\n"
    bundle = b"deepgen.bundle/1 %d\n" % len(body) + body + b"deepgen.end %d %s\n" % (len(body), hashlib.sha256(body).hexdigest().encode())
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(bundle)
    process.stdin.flush()
    text = process.stdout.read()  # its input stays open: an end of it would end the worker
    process.stdin.close()
    process.wait()
    return text.decode()


def sent(cluster):
    """Kernels are compiled here, and measured by a worker that comes through a launcher which, as ssh, hands its words to a shell:
    once a host, and never half of one."""
    build, cache = cluster.work / "sent", cluster.work / "their cache"
    sites = cluster.sites(build)
    text = json.loads(sites.read_text())
    for site in text["sites"]:
        for field in ("worker", "compile", "compile_jobs"):
            del site[field]
        site.update(send=True, shell=True, measure=["env", f"XDG_CACHE_HOME={cache}", "sh", "-c", 'exec sh -c "$*"', "--"])
    torn = json.loads(json.dumps(text))  # breaks off while the worker is on its way
    for site in torn["sites"]:
        site.update(measure=[*site["measure"][:3], "-c", 'head -c 100000 | sh -c "$*"', "--"], retry_seconds=[0.01])
    sites.write_text(json.dumps(torn))
    cluster.configure(build.name, sites)
    output = cluster.ninja(build, "_deepgen/devices/cpu@cpus.json", check=False).stdout
    if "cannot measure at site 'cpus'" not in output or list((cache / "deepgen/workers").iterdir()):
        fail(f"half a worker was kept: {output}")
    sites.write_text(json.dumps(text))

    def workers():
        return [(path.name.rpartition("-")[0], path.stat().st_mtime_ns) for path in (cache / "deepgen/workers").iterdir()]
    cluster.ninja(build, "_deepgen/cpus/first/cpu@cpus/r0/records.jsonl")
    before = workers()
    if [name for name, _ in before] != ["deepgen-measure"]:
        fail(f"sent should be one program: {before}")
    cluster.ninja(build, "_deepgen/cpus/second/cpu@cpus/r0/records.jsonl")
    if before != workers():
        fail("the worker was sent again")
    cluster.check_nothing_left()


def kills(cluster):
    """SIGKILL for ninja, deepgen remote, launchers, workers and what they run, at random times; then a run that ends well."""
    chance = random.Random(cluster.options.seed)
    local = cluster.configure("unkilled")
    cluster.ninja(local, *cluster.slots(local))
    expected = cluster.kernels(local, "r0")
    build = cluster.work / "killed"
    cluster.configure(build.name, cluster.sites(build, "none"))
    slots = cluster.slots(build)
    killed = {}
    while sum(killed.values()) < cluster.options.kills:
        shutil.rmtree(build / "_deepgen" / "cpus" / "first" / "cpu@cpus", ignore_errors=True)
        ninja = subprocess.Popen(["ninja", "-C", build, "-k", "0", "-j", "8", *slots], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        while ninja.poll() is None and sum(killed.values()) < cluster.options.kills:
            time.sleep(chance.uniform(0, 0.15))
            kill_one(chance, killed)
        end = time.monotonic() + PATIENCE
        while processes():
            if time.monotonic() > end:
                fail(f"a killed build runs on: {processes()}")
            ninja.poll()
            time.sleep(0.02)
        ninja.wait()
        check_whole(cluster.kernels(build, "r0"), expected)
    cluster.ninja(build, *slots)
    equal_kernels(expected, cluster.kernels(build, "r0"), "after the kills")
    cluster.check_nothing_left()
    print("cluster:", ", ".join(f"{count} x {what}" for what, count in sorted(killed.items())), "killed")


def check_whole(found, expected):
    for key, data in found.items():
        if data != expected[key]:
            fail(f"{'/'.join(key)} is no whole kernel")


def kill_one(chance, killed):
    kinds = {}
    for pid, line in processes():
        name = pathlib.Path(line[0]).name
        what = name if name == "ninja" else f"{name} {line[1]}" if name.startswith("deepgen") and len(line) > 1 else None
        if any("launcher.py" in word for word in line[:3]):
            what = "launcher"
        if what:
            kinds.setdefault(what, []).append(pid)
    if chance.random() < 0.9:
        kinds.pop("ninja", None)
    if not kinds:
        return
    what = chance.choice(sorted(kinds))
    try:
        os.kill(chance.choice(sorted(kinds[what])), signal.SIGKILL)
        killed[what] = killed.get(what, 0) + 1
    except ProcessLookupError:
        pass


def main():
    parser = argparse.ArgumentParser()
    for name in ("prefix", "work", "hip", "hook"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--cxx", default="c++")
    # Far more than is needed, as a loaded host must not cut candidates off: times are simulated, and rounds are limited.
    parser.add_argument("--seconds", default="60")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("cases", nargs="+", choices=("tune", "fault", "give_up", "refused", "sent", "kills"))
    options = parser.parse_args()
    options.prefix, options.work = os.path.abspath(options.prefix), os.path.abspath(options.work)
    start = time.monotonic()
    cluster = Cluster(options)
    for case in options.cases:
        globals()[case](cluster)
        print(f"cluster: {case}: passed after {time.monotonic() - start:.0f} s{'' if cluster.hide else ', build tree not hidden'}")


if __name__ == "__main__":
    main()
