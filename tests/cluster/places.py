"""Where things are done, and by what: builds whose host only starts, rounds that the cache has, two models of one arch, a slow node, and
launchers as people have them.

  places.py --prefix PREFIX --work FOLDER --hip libfake_hip.so --hook libamd_sim_hook.so [--cxx c++] CASE...

Cases: start_only; cached; models; slow; containers, docker and kubectl by programs that take their arguments as these do; ssh, a
real one with a server of its own on a free port, skipped (77) with the reason where there is none.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time

from cluster import Cluster, HERE, MI300X, equal_kernels, fail, processes
from slurm import free_port

REFUSE = """#!/bin/sh
case "$1" in {words}) echo "$@" >> {log}; echo "this host only starts" >&2; exit 1;; esac
exec {program} "$@"
"""
CONTAINER = """#!/bin/sh
# As {name}: takes its words, gives the command nothing of this environment, and no input without -i.
input=/dev/null
{parse}
[ "$input" = - ] && exec env -i PATH="$PATH" {environment} "$@"
exec env -i PATH="$PATH" {environment} "$@" < /dev/null
"""
DOCKER = """[ "$1" = run ] || { echo "docker: unknown command: $1" >&2; exit 125; }
shift
while :; do case "$1" in
  -i|--interactive) input=-; shift;;
  --rm|--init|-d) shift;;
  --gpus|-v|--name|-w|-e|--network) shift 2;;
  -*) echo "unknown flag: $1" >&2; exit 125;;
  *) break;;
esac; done
[ "$1" = deepgen ] || { echo "Unable to find image '$1' locally" >&2; exit 125; }
shift"""
KUBECTL = """[ "$1" = exec ] || { echo "error: unknown command \\"$1\\"" >&2; exit 1; }
shift
while :; do case "$1" in
  -i|--stdin) input=-; shift;;
  -n|-c|--namespace|--container) shift 2;;
  --) echo "error: pod or type/name must be specified" >&2; exit 1;;
  -*) echo "error: unknown shorthand flag: $1" >&2; exit 1;;
  *) break;;
esac; done
[ "$1" = tuner-0 ] || { echo "Error from server (NotFound): pods \\"$1\\" not found" >&2; exit 1; }
[ "$2" = -- ] || { echo "error: you must specify at least one command for the container" >&2; exit 1; }
shift 2"""


def script(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def change_sites(file, change):
    text = json.loads(file.read_text())
    for site in text["sites"]:
        change(site)
    file.write_text(json.dumps(text))


def starts(cluster, build, site, task):
    file = cluster.work / f"{build.name}-{site}-{task}" / "count"
    return int(file.read_text().split()[1]) if file.exists() else 0


def start_only(cluster):
    """Every compile and every measurement at a site, those of what is linked too: the tools here refuse them. What a site's compiler
    says no to is told at once."""
    lock = cluster.source / "deepgen.lock.json"
    build, log = cluster.work / "starts", cluster.work / "done-here"
    here = cluster.work / "here"
    here.mkdir()
    script(here / "deepgen", REFUSE.format(words="compile", log=log, program=f"{cluster.options.prefix}/bin/deepgen"))
    script(here / "deepgen-measure", REFUSE.format(words="run|playoff|verify", log=log,
                                                   program=f"{cluster.options.prefix}/bin/deepgen-measure"))
    tools = [f"-DDEEPGEN_EXECUTABLE={here}/deepgen", f"-DDEEPGEN_MEASURE_EXECUTABLE={here}/deepgen-measure", "-DDEEPGEN_START_ONLY=ON"]
    for mode in ("auto", "lock", "frozen"):
        cluster.configure(build.name, cluster.sites(build), mode, *tools)
        if mode == "auto":
            cluster.ninja(build, "tune")
        if mode == "frozen":
            (build / "_deepgen/gpu/up/gfx942/winner.dgk").unlink()
        cluster.ninja(build)
        if "no work to do" not in cluster.ninja(build).stdout and mode != "lock":  # a lock's build describes this CPU
            fail(f"a second build in mode {mode} has work to do")
    if log.exists():
        fail(f"this host has done: {log.read_text()}")
    winner = pathlib.Path("_deepgen/gpu/up/gfx942/winner.dgk")
    local = cluster.configure("local", None, "frozen")
    cluster.ninja(local)
    if (local / winner).read_bytes() != (build / winner).read_bytes():
        fail("what is linked is not what a local build links")
    text = lock.read_text()
    hashes = [e["sha256"] for e in json.loads(text)["entries"] if e["arch"] == "gfx942"]
    lock.write_text(text.replace(hashes[0], hashes[0][::-1]))
    before = starts(cluster, build, "mi300x", "compile")
    output = cluster.ninja(build, check=False).stdout
    if "the compiled kernel is not the one that was locked" not in output or "of site 'mi300x'" not in output:
        fail(f"a frozen build of another kernel says: {output}")
    if starts(cluster, build, "mi300x", "compile") > before + 1:
        fail("what the compiler has decided was tried again")
    cluster.check_counts(build)


def cached(cluster):
    """What a site has measured is in this host's cache: another build tree sends nothing but the finals. With another driver it does."""
    cluster.options.seconds = "60"  # a round that had to leave something out is not kept: a busy host must not make one
    os.environ.update(DEEPGEN_CACHE="on", DEEPGEN_CACHE_DIR=str(cluster.work / "cache"), FAKE_ROCM_SMI="1890 0x0 3 0")
    rounds = [f"_deepgen/gpu/up/gfx942@mi300x/r{n}/records.jsonl" for n in (0, 1)]
    logs = {}
    for name in ("measured", "known", "other_driver"):
        build = cluster.work / name
        sites = cluster.sites(build)
        change_sites(sites, lambda site: site.update(measure=["env", "DEEPGEN_CACHE=off", *site["measure"]]))
        cluster.configure(name, sites)
        cluster.ninja(build, "_deepgen/devices/gfx942@mi300x.json")
        if name == "other_driver":
            around = build / "_deepgen/devices/gfx942@mi300x.around.json"
            around.write_text(around.read_text().replace("HIP ", "HIP 9"))
        cluster.ninja(build, *rounds)
        measured = starts(cluster, build, "mi300x", "measure") - 1  # one for the device
        if measured != (0 if name == "known" else 2):
            fail(f"{name}: {measured} measurements of two rounds were sent\n{(build / rounds[0]).read_text()[:2000]}")
        if name != "measured" and starts(cluster, build, "mi300x", "compile"):
            fail(f"{name}: kernels that the cache has were compiled")
        logs[name] = [[json.loads(line) for line in (build / path).read_text().splitlines()[1:]] for path in rounds]
    for log in logs["known"]:
        if not all(record.pop("cached", False) for record in log):
            fail(f"a record does not say that it is from the cache: {log}")
    if logs["known"] != [[{k: v for k, v in record.items() if k != "cached"} for record in log] for log in logs["measured"]]:
        fail("records from the cache are others")


def models(cluster):
    """Two sites of one arch with two models of device: two entries of the lock for each problem, never a ratio between them."""
    build = cluster.work / "models"
    sites = cluster.sites(build)
    text = json.loads(sites.read_text())
    text["sites"] = [site for site in text["sites"] if site["name"] == "mi300x"]
    other = json.loads(json.dumps(text["sites"][0]))
    name = MI300X.replace("MI300X", "MI325X")
    state = cluster.work / "models-mi325x-measure"
    state.mkdir()
    words = [str(state) if word.endswith("-measure") else word for word in other["measure"]]
    other.update(name="mi325x", measure=["env", f"FAKE_HIP_DEVICES={name}", *words])
    text["sites"].append(other)
    sites.write_text(json.dumps(text))
    cluster.configure(build.name, sites)
    cluster.ninja(build, "gpu.tune")
    found = {}
    for entry in json.loads((cluster.source / "deepgen.lock.json").read_text())["entries"]:
        found.setdefault(entry["problem"], []).append(entry["device"])
    if len(found) != 2 or any(sorted(map(str, devices)) != sorted(set(map(str, devices))) or len(devices) != 2 for devices in found.values()):
        fail(f"the lock has entries of {found}")
    for place, device in (("gfx942@mi300x", "MI300X"), ("gfx942@mi325x", "MI325X")):
        for log in (build / "_deepgen/gpu").glob(f"*/{place}/*/records.jsonl"):
            if device not in log.read_text().splitlines()[0]:
                fail(f"{log} is of another device")
    cluster.check_counts(build)


def slow(cluster):
    """One node that does not go on until all others have: they do."""
    build = cluster.work / "slow"
    sites = cluster.sites(build, batch=1)
    text = json.loads(sites.read_text())
    for site in text["sites"]:
        site["compile"] = ["slow=7" if word == "none" else word for word in site["compile"]]  # of 8 slots
    sites.write_text(json.dumps(text))
    cluster.configure(build.name, sites)
    cluster.ninja(build, *cluster.slots(build), jobs=3)
    if (cluster.work / f"{build.name}-cpus-compile" / "held_up").exists():
        fail("the others have waited for the slow node")
    cluster.check_counts(build)


def build_at(cluster, name, site, refused=""):
    """A build whose first round is done at this site; where `refused` is given it fails, and says so."""
    file = cluster.work / f"{name}.sites.json"
    file.write_text(json.dumps({"schema": "deepgen.sites/1", "sites": [{"name": "cpus", "arch": "cpu", "retry_seconds": [], **site}]}))
    cluster.configure(name, file)
    done = cluster.ninja(cluster.work / name, "_deepgen/cpus/first/cpu@cpus/r0/records.jsonl", check=not refused)
    if refused not in done.stdout:
        fail(f"{name} should fail, and say '{refused}':\n{done.stdout}")


def expect_sent(home):
    if not list((home / ".cache/deepgen/workers").glob("deepgen-measure-*")):
        fail("no worker was sent")


def containers(cluster):
    """As docker run and kubectl exec take their words, with a worker that is in the image, and with one that is sent."""
    bin_ = cluster.work / "bin"
    bin_.mkdir()
    home = cluster.work / "image home"
    home.mkdir()
    environment = f"HOME='{home}' TMPDIR={cluster.temporary} CLUSTER_TEST={os.environ['CLUSTER_TEST']} DEEPGEN_CACHE=off"
    for name, parse in (("docker", DOCKER), ("kubectl", KUBECTL)):
        script(bin_ / name, CONTAINER.format(name=name, parse=parse, environment=environment))
    os.environ["PATH"] = f"{bin_}:{os.environ['PATH']}"
    docker = ["docker", "run", "-i", "--rm", "--gpus", "all", "deepgen"]
    kubectl = ["kubectl", "exec", "-i", "tuner-0", "--"]
    worker = f"{cluster.options.prefix}/bin/deepgen"
    image = {"compile": docker, "measure": kubectl, "worker": worker}
    build_at(cluster, "image", image)
    build_at(cluster, "sent", {"measure": kubectl, "send": True})
    build_at(cluster, "no_input", {**image, "compile": [w for w in docker if w != "-i"]}, "cannot compile at site 'cpus'")
    expect_sent(home)
    cluster.check_nothing_left()


class Sshd:
    """A server of this user on a free port of this host, with keys of its own."""

    def __init__(self, work):
        self.work = work
        self.program = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        if not self.program or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
            skip("sshd, ssh or ssh-keygen is not installed (Debian: openssh-server)")
        work.mkdir()
        work.chmod(0o700)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", work / key], check=True)
        shutil.copy(work / "user.pub", work / "authorized_keys")
        self.port = free_port()
        (work / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {work}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
            f"PasswordAuthentication no\nPermitRootLogin prohibit-password\nAuthorizedKeysFile {work}/authorized_keys\n")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # which its service makes elsewhere
        self.log = work / "log"
        self.process = subprocess.Popen([self.program, "-D", "-e", "-f", work / "sshd_config"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=open(self.log, "wb"), start_new_session=True)

    def words(self):
        return ["ssh", "-F", "none", "-oBatchMode=yes", "-oStrictHostKeyChecking=no", f"-oUserKnownHostsFile={self.work}/known",
                "-oIdentitiesOnly=yes", "-oLogLevel=ERROR", "-i", f"{self.work}/user", "-p", str(self.port), "127.0.0.1"]

    def wait(self):
        end = time.monotonic() + 20
        while subprocess.run([*self.words(), "true"], capture_output=True).returncode:
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                skip(f"this machine starts no sshd: {self.log.read_text()[-500:]}")
            time.sleep(0.2)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def ssh(cluster):
    """Compiled and measured over ssh; a worker that is sent; connections that are killed; a host that is not there."""
    server = Sshd(cluster.work / "sshd")
    server.wait()
    try:
        home = cluster.work / "their home"
        home.mkdir()
        there = ["env", f"HOME='{home}'", f"TMPDIR={cluster.temporary}", f"CLUSTER_TEST={os.environ['CLUSTER_TEST']}", "DEEPGEN_CACHE=off"]
        words = [*server.words(), *there]
        local = cluster.configure("local")
        cluster.ninja(local, *cluster.slots(local))
        site = {"shell": True, "retry_seconds": [0.1] * 8, "batch": 2}
        installed = {**site, "compile": words, "compile_jobs": 2, "measure": words, "worker": f"{cluster.options.prefix}/bin/deepgen"}
        nobody = [w if w != str(server.port) else str(free_port()) for w in words]
        build_at(cluster, "over_ssh", installed)
        build_at(cluster, "sent", {**site, "measure": words, "send": True})
        build_at(cluster, "away", {**installed, "retry_seconds": [], "compile": nobody}, "Connection refused")
        expect_sent(home)
        build = cluster.work / "cut"
        cluster.configure("cut", cluster.work / "over_ssh.sites.json")
        ninja = subprocess.Popen(["ninja", "-C", build, *cluster.slots(build)], stdout=subprocess.DEVNULL)
        cut = 0
        while ninja.poll() is None:
            found = [pid for pid, line in processes() if line[0] == "ssh"] if cut < 4 else []
            for pid in found[:1]:
                time.sleep(0.05 * cut)  # in its beginning, and at work
                try:
                    os.kill(pid, signal.SIGKILL)
                    cut += 1
                except ProcessLookupError:
                    pass
            time.sleep(0.02)
        if ninja.returncode or not cut:
            fail(f"with {cut} connections killed the build ended with {ninja.returncode}")
        equal_kernels(cluster.kernels(local, "r0"), cluster.kernels(build, "r0"), "over ssh")
        cluster.check_nothing_left()
        print(f"cluster: ssh: {cut} connections killed")
    finally:
        server.stop()


def skip(why):
    print(f"cluster: skipped: {why}")
    sys.exit(77)


def main():
    parser = argparse.ArgumentParser()
    for name in ("prefix", "work", "hip", "hook"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--seconds", default="2")
    parser.add_argument("cases", nargs="+", choices=("start_only", "cached", "models", "slow", "containers", "ssh"))
    options = parser.parse_args()
    options.prefix, options.work = os.path.abspath(options.prefix), os.path.abspath(options.work)
    for case in options.cases:
        start = time.monotonic()
        globals()[case](Cluster(options))
        print(f"cluster: {case}: passed after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
