"""A launcher for tests: starts a worker where the build tree cannot be seen, counts, and fails on purpose.

  launcher.py STATE FAULT HIDE JOBS -- WORDS...

STATE is a folder: `starts` has a line a launch, `most` the largest number at work at once. FAULT is none, or what happens
to every other launch: cut=N (the output ends after N bytes), hang, silent (nothing, exit status 0), checksum, garbage,
version; or die=N, one launch of N is killed while it works; or
slow=N, the first launch does not start before N others have ended, and says in `held_up` when they never do. HIDE: folder that is hidden, or -. JOBS: more at once are an error.
"""
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import time

STATE, FAULT, HIDE, JOBS = sys.argv[1:5]
WORDS = sys.argv[sys.argv.index("--") + 1:]


def count(step):
    """How many launchers are at work, and the number of this launch."""
    with open(pathlib.Path(STATE, "count"), "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        at_work, starts, most = map(int, file.read().split() or (0, 0, 0))
        at_work, starts = at_work + step, starts + max(step, 0)
        most = max(most, at_work)
        file.truncate(0)
        file.write(f"{at_work} {starts} {most}")
    return at_work, starts


def worker():
    words = WORDS
    if HIDE != "-":  # what it is started with does not lie there
        script = 'mount -t tmpfs none "$0" && cd / && exec "$@"'
        words = ["unshare", "-m", "sh", "-c", script, HIDE, *WORDS]
    return subprocess.Popen(words, stdout=subprocess.PIPE)


def forward(process, most=None, change=None):
    """Its output, up to `most` bytes; `change` at the end of it."""
    sent, held, answers = 0, b"", False
    while True:
        data = held + os.read(process.stdout.fileno(), 1 << 16)
        if len(data) == len(held):
            data = change(data) if change else data
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return process.wait()
        answers = answers or b"deepgen.bundle/" in data
        if change and answers:
            data, held = data[:-3], data[-3:]
        if most is not None and sent + len(data) >= most:
            sys.stdout.buffer.write(data[:most - sent])
            sys.stdout.buffer.flush()
            process.kill()
            return 0
        sent += len(data)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def wait_for_others(most):
    end = time.monotonic() + 60
    while pathlib.Path(STATE, "ended").stat().st_size < most if pathlib.Path(STATE, "ended").exists() else most:
        if time.monotonic() > end:
            pathlib.Path(STATE, "held_up").touch()
            return
        time.sleep(0.02)


def launch(number):
    kind, _, value = FAULT.partition("=")
    if kind == "slow":
        if number == 1:
            wait_for_others(int(value))
        return forward(worker())
    every = int(value) if kind == "die" else 2
    if kind == "none" or number % every:
        return forward(worker())
    if kind == "silent":
        return 0
    if kind == "hang":
        time.sleep(600)
    if kind == "garbage":
        print("deepgen.bundle/1 what is this\n" * 3)
        return 0
    if kind == "version":
        print('deepgen.worker/1 {"id":"deepgen 9","node":"other","job":"","pid":1}', flush=True)
        sys.stdin.buffer.read(100)
        print("deepgen.bundle/2 0", flush=True)
        return 0
    process = worker()
    if kind == "cut":
        return forward(process, most=int(value))
    if kind == "checksum":
        return forward(process, change=lambda end: end[:-2] + b"x\n")
    time.sleep(0.15)  # die
    process.kill()
    return 1


def end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once
    sys.exit(143)


def main():
    # On a slow host SIGTERM may come at any time: whoever was counted is counted off.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGTERM, end)
    at_work, number = count(1)
    if at_work > int(JOBS):
        pathlib.Path(STATE, "too_many").write_text(f"{at_work} at once\n")
    try:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            return launch(number)
        finally:  # where it may come, too, as the answer that was refused is the last thing that a launcher does
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    finally:
        count(-1)
        with open(pathlib.Path(STATE, "ended"), "a") as file:
            file.write(".")


sys.exit(main())
