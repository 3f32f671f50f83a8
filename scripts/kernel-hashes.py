#!/usr/bin/env python3
"""Prints a SHA-256 of the code of random candidates, so that two builds can be compared.

  scripts/kernel-hashes.py build/ci/bin/deepgen --count 100 --seed 1 > before.txt
  scripts/kernel-hashes.py build/new/bin/deepgen --like before.txt > after.txt
  diff before.txt after.txt                            # empty: every kernel has the same code

Each line is a hash and the arguments of `deepgen dump` that print the code. --count is per template and arch.
--like takes the candidates from an earlier output, as a change of spaces or rules changes what is drawn. PTX
or assembly is hashed. --stage mlir hashes what the templates emit: that is faster, and enough where nothing
behind the templates changed. A candidate that does not compile has the word `failed` for its hash, and the
status is 1.

  --arch gfx942 --template mfma   only these (any number)
  --jobs 2                        processes at a time
"""
import argparse
import concurrent.futures
import hashlib
import shlex
import subprocess
import sys

ARCHS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120", "gfx906", "gfx90a", "gfx942", "gfx950",
         "gfx1100", "gfx1201", "cpu"]
TEMPLATES = ["simt", "mma_sync", "hopper_ws", "mfma", "wmma", "gemv", "cpu_tile", "gpu_rows", "cpu_rows",
             "mma_attention", "hopper_attention", "mfma_attention", "cpu_attention"]


def candidates(options):
    if options.like:
        with open(options.like, encoding="utf-8") as earlier:
            return [line.split(" ", 1)[1].rstrip("\n") for line in earlier]
    found = []
    for template in options.template:
        for arch in options.arch:
            words = [options.deepgen, "check-ptxas", "--list", "--arch", arch, "--template", template,
                     "--count", str(options.count), "--seed", str(options.seed)]
            for op in ("rows", "attention"):
                if template.endswith("_" + op):
                    words += ["--op", op]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"kernel-hashes.py: {shlex.join(words)} failed:\n{done.stderr}")
            found += done.stdout.splitlines()
    return found


def code_hash(options, candidate):
    words = shlex.split(candidate)
    stage = options.stage or ("ptx" if "--arch sm_" in candidate else "asm")
    done = subprocess.run([options.deepgen, "dump", "--stage", stage, *words], capture_output=True)
    if done.returncode or not done.stdout:
        print(f"kernel-hashes.py: {candidate}:\n{done.stderr.decode()}", file=sys.stderr)
        return "failed"
    return hashlib.sha256(done.stdout).hexdigest()


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("deepgen")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--like")
    parser.add_argument("--stage")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--arch", nargs="+", default=ARCHS)
    parser.add_argument("--template", nargs="+", default=TEMPLATES)
    options = parser.parse_args()
    failed = False
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        all_of_them = candidates(options)
        hashes = pool.map(lambda c: code_hash(options, c), all_of_them)
        for candidate, found in zip(all_of_them, hashes):
            print(found, candidate, flush=True)
            failed = failed or found == "failed"
    sys.exit(failed)


main()
