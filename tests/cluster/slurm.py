"""A whole tune on a real Slurm of two nodes, which this script starts on this machine and stops again.

  slurm.py --prefix PREFIX --work FOLDER --hip libfake_hip.so --hook libamd_sim_hook.so [--cxx c++]

Skipped (77) with the reason where slurm-wlm is not installed, or cannot start. The nodes n1 and n2 have two CPUs and one GPU each
for Slurm; what kernels are measured on is the simulated one of tests/amd_sim. InactiveLimit ends allocations whose srun was
killed before it started its step: without it they hold their node for ever.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from cluster import Cluster, equal_kernels, equal_locks, fail, processes

KILLS = 20
NEEDS = ("munged", "slurmctld", "slurmd", "srun", "scontrol", "sinfo", "sbatch", "scancel")
CONF = """ClusterName=deepgen
SlurmctldHost={host}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={work}/munge.socket
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/spool-%n
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/slurmd-%n.pid
SlurmctldLogFile={work}/slurmctld.log
SlurmdLogFile={work}/slurmd-%n.log
SlurmctldPort={port}
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
GresTypes=gpu
ReturnToService=2
KillWait=2
InactiveLimit=10
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port1} CPUs=2 Gres=gpu:mi300x:1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={port2} CPUs=2 Gres=gpu:mi300x:1
PartitionName=all Nodes=n1,n2 Default=YES State=UP OverSubscribe=NO
"""


def skip(why):
    print(f"cluster: skipped: {why}")
    sys.exit(77)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    """Daemons of this user in a folder of their own."""

    def __init__(self, work):
        for program in NEEDS:
            if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
                skip(f"{program} is not installed (Debian: slurm-wlm)")
        if os.geteuid() != 0:
            skip("slurmd wants to be root to start jobs")
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        self.work = work
        work.mkdir(parents=True, exist_ok=True)
        self.daemons = []

    def start(self):
        (self.work / "state").mkdir()
        (self.work / "munge.key").write_bytes(os.urandom(1024))
        os.chmod(self.work / "munge.key", 0o400)
        host = socket.gethostname().partition(".")[0]
        text = CONF.format(host=host, user="root", work=self.work, port=free_port(), port1=free_port(), port2=free_port())
        if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
            (self.work / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.work / "slurm.conf").write_text(text)
        gres = ""
        for node in ("n1", "n2"):
            (self.work / f"spool-{node}").mkdir()
            device = self.work / f"gpu-{node}"
            try:
                os.mknod(device, 0o666 | 0o020000, os.makedev(1, 3))  # as /dev/null
            except OSError as error:
                skip(f"no device file can be made: {error}")
            gres += f"NodeName={node} Name=gpu Type=mi300x File={device}\n"
        (self.work / "gres.conf").write_text(gres)
        os.environ["SLURM_CONF"] = str(self.work / "slurm.conf")
        self.daemon("munged", "-F", "-f", f"--key-file={self.work}/munge.key", f"--socket={self.work}/munge.socket",
                    f"--pid-file={self.work}/munged.pid", f"--log-file={self.work}/munged.log", f"--seed-file={self.work}/munge.seed")
        self.wait(lambda: (self.work / "munge.socket").exists(), "munged")
        self.daemon("slurmctld", "-D")
        for node in ("n1", "n2"):
            self.daemon("slurmd", "-D", "-N", node)
        self.wait(lambda: sorted(self.states().values()) == ["idle", "idle"], "two idle nodes")

    def daemon(self, *words):
        log = open(self.work / f"{words[0]}-{len(self.daemons)}.out", "wb")
        self.daemons.append(subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True))

    def states(self):
        done = subprocess.run(["sinfo", "-N", "-h", "-o", "%N %T"], text=True, capture_output=True)
        return dict(line.split() for line in done.stdout.splitlines())

    def wait(self, condition, what):
        end = time.monotonic() + 30
        while not condition():
            ended = [d.args[0] for d in self.daemons if d.poll() is not None]
            if ended or time.monotonic() > end:
                logs = "".join(f"--- {p.name}\n{p.read_text(errors='replace')[-1500:]}" for p in sorted(self.work.glob("*.out")))
                self.stop()
                skip(f"this machine cannot start a Slurm: no {what}, {' '.join(ended) or 'nothing'} ended\n{logs}")
            time.sleep(0.1)

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def tell(self):
        """For a test that does not go on."""
        commands = (["squeue"], ["sinfo", "-N", "-l"], ["tail", "-n", "30", self.work / "slurmctld.log"])
        print("\n".join(subprocess.run(words, text=True, capture_output=True).stdout for words in commands), flush=True)

    def idle(self):
        return not subprocess.run(["squeue", "-h"], text=True, capture_output=True).stdout.strip()


def sites(cluster, name, **more):
    own = ["env", "-u", "SLURM_JOB_ID", "-u", "SLURM_JOBID"]  # a job of its own, also where the build is one
    # Two nodes of two CPUs: four compiles at once, or two that measure, each with a GPU.
    site = {"name": "amd", "arch": "gfx942", "worker": f"{cluster.options.prefix}/bin/deepgen", "batch": 2, "compile_jobs": 4,
            "compile": [*own, "srun", "-Q", "-n1", "-c1", "--mem=0"], "measure_jobs": 2, "leave_out": "--exclude={nodes}",
            "measure": [*own, "srun", "-Q", "-n1", "-c1", "--mem=0", "--gres=gpu:mi300x:1"], "retry_seconds": [0.5, 1, 2, 4]}
    site.update(more)
    cpus = {**site, "name": "cpus", "arch": "cpu", "measure": [*own, "srun", "-Q", "-n1", "-c2", "--mem=0"]}
    file = cluster.work / f"{name}.sites.json"
    file.write_text(json.dumps({"schema": "deepgen.sites/1", "sites": [site, cpus]}))
    return file


def used_nodes(slurm):
    """Where slurmctld says that jobs have been."""
    log = (slurm.work / "slurmctld.log").read_text(errors="replace")
    return {node for node in ("n1", "n2") if f"NodeList={node} " in log}


def whole_tune(cluster, slurm):
    """Two libraries, over two nodes, one of which is drained half way; the lock is that of a local tune."""
    lock = cluster.source / "deepgen.lock.json"
    local = cluster.configure("local")
    cluster.ninja(local, "gpu.tune")
    expected = lock.read_text()
    lock.unlink()
    build = cluster.work / "slurm"
    cluster.configure(build.name, sites(cluster, build.name))
    ninja = subprocess.Popen(["ninja", "-C", build, "-j", "8", "gpu.tune"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while ninja.poll() is None and used_nodes(slurm) != {"n1", "n2"}:  # a slow host takes more than a second
        time.sleep(0.1)
    subprocess.run(["scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test"], check=True)
    text = ninja.communicate()[0]
    subprocess.run(["scontrol", "update", "NodeName=n2", "State=RESUME"], check=True)
    if ninja.returncode:
        fail(f"a tune on Slurm failed:\n{text}")
    equal_locks(expected, lock.read_text(), "a tune on Slurm")
    equal_kernels(cluster.kernels(local), {k: v for k, v in cluster.kernels(build).items() if k[0] == "gpu"}, "Slurm")
    if used_nodes(slurm) != {"n1", "n2"}:
        fail(f"jobs have been on {used_nodes(slurm)} alone")


def cancelled(cluster, slurm):
    """A build in a job, cancelled half way: nothing runs on 10 s later, and the same command goes on."""
    build = cluster.work / "detached"
    cluster.configure(build.name, sites(cluster, build.name))
    wrap = f"ninja -C {build} -j 8 cpus"
    done = subprocess.run(["sbatch", "--parsable", "-n1", "-c1", "--mem=0", "-o", cluster.work / "sbatch.out", "--wrap", wrap],
                          check=True, text=True, stdout=subprocess.PIPE)
    job = done.stdout.strip()
    end = time.monotonic() + 60
    while not list((build / "_deepgen").glob("cpus/*/*/r0/s*.dgk")):
        if time.monotonic() > end:
            fail(f"the detached build does nothing: {(cluster.work / 'sbatch.out').read_text()}")
        time.sleep(0.05)
    status = subprocess.run([f"{cluster.options.prefix}/bin/deepgen", "status", "--build", build], text=True, stdout=subprocess.PIPE)
    print(status.stdout)
    subprocess.run(["scancel", job], check=True)
    end = time.monotonic() + 10
    while [line for _, line in processes() if "worker" in line or line[0].endswith("ninja")] or not slurm.idle():
        if time.monotonic() > end:
            fail(f"10 s after scancel there is still: {processes()}")
        time.sleep(0.1)
    cluster.ninja(build, "cpus")
    cluster.check_nothing_left()


def killed(cluster, slurm):
    """SIGKILL for srun, slurmstepd, workers and what talks to them; then every kernel is that of a local build.

    An srun whose slurmstepd was killed before it had said that it runs waits for ever: start_seconds ends it.
    """
    chance = random.Random(1)
    local = cluster.configure("unkilled")
    cluster.ninja(local, *cluster.slots(local))
    build, counts = cluster.work / "killed", {}
    cluster.configure(build.name, sites(cluster, build.name, silence_seconds=7, start_seconds=30))
    slots = cluster.slots(build)
    while sum(counts.values()) < KILLS:
        shutil.rmtree(build / "_deepgen/cpus/first/cpu@cpus", ignore_errors=True)
        ninja = subprocess.Popen(["ninja", "-C", build, "-k", "0", "-j", "8", *slots], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        while ninja.poll() is None:
            time.sleep(chance.uniform(0, 0.3))
            kinds = {}
            for pid, line in processes():
                name = pathlib.Path(line[0].rstrip(":")).name
                if name == "srun" or name.startswith("deepgen") and line[1:2] in (["remote"], ["worker"]):
                    kinds.setdefault(f"{name} {line[1]}" if name != "srun" else name, []).append(pid)
            steps = subprocess.run(["pgrep", "-f", "^slurmstepd: "], text=True, stdout=subprocess.PIPE).stdout.split()
            steps = [int(pid) for pid in steps if f"SLURM_CONF={os.environ['SLURM_CONF']}" in environment(pid)]
            if steps:
                kinds["slurmstepd"] = steps
            if kinds and sum(counts.values()) < KILLS:
                what = chance.choice(sorted(kinds))
                try:
                    os.kill(chance.choice(kinds[what]), signal.SIGKILL)
                    counts[what] = counts.get(what, 0) + 1
                except ProcessLookupError:
                    pass
    cluster.ninja(build, *slots)
    equal_kernels(cluster.kernels(local, "r0"), cluster.kernels(build, "r0"), "killed on Slurm")
    print("cluster: killed on Slurm:", ", ".join(f"{count} x {what}" for what, count in sorted(counts.items())))


def environment(pid):
    try:
        return pathlib.Path("/proc", pid, "environ").read_text(errors="replace").split("\0")
    except OSError:
        return []


def main():
    parser = argparse.ArgumentParser()
    for name in ("prefix", "work", "hip", "hook"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--seconds", default="2")
    options = parser.parse_args()
    options.prefix = os.path.abspath(options.prefix)
    cluster = Cluster(options)
    slurm = Slurm(cluster.work / "daemons")
    start = time.monotonic()
    stalled = threading.Timer(540, slurm.tell)  # ctest ends the test a minute later
    stalled.daemon = True
    stalled.start()
    try:
        slurm.start()
        print(f"cluster: Slurm runs after {time.monotonic() - start:.1f} s")
        whole_tune(cluster, slurm)
        cancelled(cluster, slurm)
        killed(cluster, slurm)
    finally:
        slurm.stop()
    print(f"cluster: Slurm: passed after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
