"""Waits of random AMD kernels, of kernels with copies to LDS, and of planted faults (waits.py, order.py).

usage: waits_gate.py DEEPGEN LLC [--count 60] [--seed 1] [--copies 40]
  --count   random candidates of all templates for GEMMs and archs, and a third as many of rows,
            and of attention
  --copies  more of mfma, all of them with direct=1, half of them with buffer=0
"""
import argparse
import concurrent.futures
import re
import shlex
import subprocess
import sys

from machine import Unknown
from order import wrong_order
from waits import wrong_waits

ARCHS = ["gfx906", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
COPIES = ["gfx90a", "gfx942", "gfx950"]
PROBLEM = "gemm m=96 n=80 k=160 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nt epilogue=none align=2"
CONFIG = ("mfma wide=0 size=16 bm=64 bn=64 bk=128 waves_m=2 waves_n=4 direct=1 buffer={buffer} stages=2 "
          "pingpong=0 blocks=1 splits=1 group=1 xcds=1")


# Waits of a kernel that may be left out. Ours at its end is not needed where all of C is waited for; one that our pass
# has lowered may cover what a later one is for.
NEEDLESS = 2


def run(*words, text=None):
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{shlex.join(words)} failed:\n{done.stderr}")
    return done.stdout


def sample(deepgen, archs, templates, count, seed, wanted="", op="gemm"):
    """Arguments of `deepgen dump`."""
    lines = run(deepgen, "check-ptxas", "--list", "--op", op, "--arch", *archs, "--template", *templates,
                "--count", str(count), "--seed", str(seed)).splitlines()
    return [shlex.split(line) for line in lines if wanted in line]


def lds_copies(deepgen, count, seed):
    drawn = sample(deepgen, COPIES, ["mfma"], 60 * count, seed, "direct=1")
    halves = [[c for c in drawn if f"buffer={b}" in c[-1]][:count // 2] for b in (0, 1)]
    if min(map(len, halves)) < count // 2:
        sys.exit(f"only {len(halves[0])} and {len(halves[1])} configs with direct=1 were found")
    return halves[0] + halves[1]


def wrong_formats(assembly, arch):
    """gfx942's instructions for 8-bit floats have formats of AMD's own; f16 is to keep its subnormals."""
    found = [f"an instruction for AMD's own 8-bit floats: {x.strip()}" for x in assembly.splitlines()
             if arch < "gfx950" and not arch.startswith("gfx1") and re.match(r"\s+v_\w*(fp8|bf8)", x)]
    return found + [f"f16 is not computed with subnormals: {x}" for x in
                    re.findall(r"\.amdhsa_float_denorm_mode_(?:16_64|32) [^3]", assembly)]


def check(deepgen, candidate):
    arch = candidate[candidate.index("--arch") + 1]
    assembly = run(deepgen, "dump", "--stage", "asm", *candidate)
    try:
        wrong = wrong_waits(assembly, arch) + wrong_formats(assembly, arch)
    except Unknown as what:
        return [str(what)]
    if "direct=1" in candidate[-1]:
        wrong += wrong_order(run(deepgen, "dump", "--stage", "optimized", *candidate), assembly)
    return wrong


def check_all(deepgen, candidates):
    """How many are wrong."""
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for candidate, faults in zip(candidates, pool.map(lambda c: check(deepgen, c), candidates)):
            if faults:
                wrong += 1
                print(shlex.join(candidate), *faults[:8], sep="\n  ")
    print(f"{len(candidates)} kernels, {wrong} wrong")
    return wrong


def example(arch, buffer):
    return ["--arch", arch, "--problem", PROBLEM, "--config", CONFIG.format(buffer=buffer)]


def unrepaired(deepgen, llc):
    """What LLVM 22 makes of the example without our pass is wrong if the copies count in vmcnt alone, and right if
    not. True when this is not found."""
    ir = run(deepgen, "dump", "--stage", "optimized", *example("gfx942", 0))
    assembly = run(llc, "-mtriple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-o", "-", text=ir)
    faults = wrong_waits(assembly, "gfx942")
    print(f"{len(faults)} faults of the example as LLVM alone waits", *faults[:1], sep="\n  ")
    return not faults or any("'vmcnt'" not in x for x in faults)


def planted(deepgen, candidate):
    """Leaves out each wait of the kernel, one after the other: how many of these faults are found, and of how many."""
    arch = candidate[candidate.index("--arch") + 1]
    assembly, ir = (run(deepgen, "dump", "--stage", stage, *candidate) for stage in ("asm", "optimized"))
    lines, found, all_of_them = assembly.splitlines(), 0, 0
    for i, line in enumerate(lines):
        if not re.match(r"\s+s_wait(cnt |cnt_vscnt|_(load|ds|km))", line):
            continue
        without = "\n".join(lines[:i] + [""] + lines[i + 1:])
        all_of_them += 1
        copies = "direct=1" in candidate[-1]
        missed = not wrong_waits(without, arch) and not (copies and wrong_order(ir, without))
        found += not missed
        if missed:
            print(f"  not found: {line.strip()}, line {i + 1} of {shlex.join(candidate)}")
    return found, all_of_them


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("deepgen")
    parser.add_argument("llc")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--copies", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    examples = [example(arch, buffer) for arch in COPIES for buffer in (0, 1)]
    wrong = unrepaired(o.deepgen, o.llc)
    wrong += check_all(o.deepgen, examples)
    by_wmma = sample(o.deepgen, ["gfx1100", "gfx1201"], ["wmma"], 2, 1)
    for candidate in [examples[0], examples[3], *by_wmma]:
        found, planted_ones = planted(o.deepgen, candidate)
        print(f"{found} of {planted_ones} waits left out are found: {shlex.join(candidate)}")
        wrong += found < planted_ones - NEEDLESS
    wrong += check_all(o.deepgen, lds_copies(o.deepgen, o.copies, o.seed))
    wrong += check_all(o.deepgen, sample(o.deepgen, ARCHS, ["mfma", "wmma", "simt", "gemv"], o.count, o.seed))
    wrong += check_all(o.deepgen, sample(o.deepgen, ARCHS, ["gpu_rows"], o.count // 3, o.seed, op="rows"))
    wrong += check_all(o.deepgen, sample(o.deepgen, COPIES, ["mfma_attention"], o.count // 3, o.seed, op="attention"))
    sys.exit(bool(wrong))


main()
