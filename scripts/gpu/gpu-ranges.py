#!/usr/bin/env python3
"""Kernels whose M or K only a call knows, beside kernels of the same config for that size alone: right, and how much slower?

  scripts/gpu/gpu-ranges.py compile BIN OUT      on a host with deepgen and ptxas: writes kernels to OUT
  scripts/gpu/gpu-ranges.py measure BIN OUT      on a GPU host with deepgen-measure alone: verifies, then times them

Both take --sizes, --arch, and --only (names of rows). `measure` verifies each kernel with a range at several sizes,
then times it in calls of each size, interleaved with the kernel for that size. OUT gets a JSON file for each pair and
ranges.tsv: name, size, seconds of the kernel for that size alone, ratio (above 1: the range is slower), its 95 % interval.
"""
import argparse
import json
import pathlib
import subprocess
import sys

from revision import revision_of

MOST = {"m": 8192, "k": 65536}
BF16 = "m=* n={n} k={k} batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue={epilogue} align=2"
ALIGNED = {"align_a": 16, "align_b": 16, "align_d": 16}


def hopper(bm, bn, stages, consumers, **other):
    config = {"bm": bm, "bn": bn, "slices": 1, "stages": stages, "consumers": consumers, "pingpong": 0, "swap": 0,
              "promote": 0, "cluster_m": 1, "cluster_n": 1, "cluster_k": 1, "splits": 1, "stream_k": 0, "group": 8,
              "pdl": 1, **ALIGNED}
    assert not set(other) - set(config)
    return "hopper_ws", {**config, **other}


MMA = ("mma_sync", {"bm": 64, "bn": 64, "bk": 128, "warps_m": 2, "warps_n": 2, "warps_k": 1, "stages": 4, "blocks": 2,
                    "splits": 1, "group": 8, "pdl": 1, **ALIGNED})
SIMT = ("simt", {"wide": 1, "bm": 128, "bn": 128, "bk": 8, "tm": 8, "tn": 8, "stages": 3, "blocks": 1, "splits": 1,
                 "group": 8})
GEMV = ("gemv", {"form": 1, "vec": 16, "width": 16, "rwarps": 1, "kwarps": 8, "unroll": 4, "splits": 1, "hint": 2,
                 "pipe": 0, "pdl": 1, "vectors": 8})
UP = BF16.format(n=4096, k=4096, epilogue="none")
GRADIENT = "m=4096 n=4096 k=* batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=tn epilogue=none align=2"
# name: problem with a star for its range, (template, config), the sizes that it is for
ROWS = {
    "large": (UP, hopper(128, 256, 4, 2, cluster_m=2), (1024, 4096)),
    "stream_k": (UP, hopper(128, 256, 4, 2, stream_k=1), (1024, 4096)),
    "residual": (BF16.format(n=4096, k=4096, epilogue="bias+residual"), hopper(128, 128, 4, 2), (256, 1024, 4096)),
    "swapped": (UP, hopper(128, 16, 8, 2, swap=1, splits=4, group=1), (1, 16)),
    # One wave of tiles, the last of which reach beyond M but at multiples of 64; and tiles of N rows that end close behind M.
    "ragged": (UP, hopper(64, 128, 7, 1, group=4), (128, 141, 160, 192, 197, 256, 269)),
    "closer": (UP, hopper(64, 136, 8, 1, swap=1, group=1), (136, 269, 272)),
    "warps": (UP, MMA, (16, 64, 256, 1024)),
    "vectors": (UP, GEMV, (1, 4, 8)),
    "f32": ("m=* n=2048 k=2048 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias align=4", SIMT, (256, 1024, 4096)),
    "packed": (BF16.format(n=1003, k=997, epilogue="none"),
               hopper(128, 128, 4, 2, align_a=2, align_b=2, align_d=2), (64, 1024)),
    "depth": (GRADIENT, hopper(128, 256, 4, 2, cluster_m=2), (64, 1024, 16384)),
    "depth_split": ("m=512 n=512 k=* batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=tn epilogue=none align=2",
                    hopper(128, 128, 4, 2, splits=8, group=1), (4096, 65536)),
    "depth_stream_k": (GRADIENT, hopper(128, 256, 4, 2, stream_k=1), (1024, 16384)),
    "depth_warps": (GRADIENT, MMA, (64, 1024)),
    "depth_f32": ("m=2048 n=2048 k=* batch=1 a=f32 b=f32 d=f32 acc=f32 layout=tn epilogue=none align=4", SIMT,
                  (64, 1024)),
    "depth_vectors": ("m=4 n=4096 k=* batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nn epilogue=none align=2",
                      ("gemv", {"form": 0, "vec": 16, "width": 128, "rwarps": 1, "kwarps": 8, "unroll": 4,
                                "splits": 4, "hint": 2, "pipe": 0, "pdl": 1}), (4096, 14336)),
}


def ranged_size(problem):
    return next(field[0] for field in problem.split() if field.endswith("=*"))


def compile_one(options, name, size, row):
    problem, (template, config), _ = row
    if size is not None and template == "gemv":
        config = {key: value for key, value in config.items() if key != "vectors"}
    problem = problem.replace("*", f"1..{MOST[ranged_size(problem)]}" if size is None else str(size))
    revision = revision_of(options.bin / "deepgen", options.arch, f"gemm {problem}", template, config)
    choice = {"schema": "deepgen.choice/2", "function": name, "problem": f"gemm {problem}", "arch": options.arch,
              "template": template, "revision": revision, "config": config, "expect_sha256": "", "toolchain": "",
              "origin": "default", "devices": [], "instead": []}
    stem = options.out / (name + ("" if size is None else f"-{size}"))
    stem.with_suffix(".json").write_text(json.dumps(choice))
    subprocess.run([options.bin / "deepgen", "compile", "--choice", stem.with_suffix(".json"), "-o",
                    stem.with_suffix(".dgk")], check=True)


def measure(options):
    device = options.out / "device.json"
    tool = options.bin / "deepgen-measure"
    subprocess.run([tool, "devices", "--arch", options.arch, "-o", device], check=True, stdout=subprocess.DEVNULL)
    ranged = [options.out / f"{name}.dgk" for name in options.rows]
    failed = subprocess.run([tool, "verify", *ranged]).returncode
    with open(options.out / "ranges.tsv", "w", encoding="utf-8") as table:
        for name, row in options.rows.items():
            for size in options.sizes or row[2]:
                result = options.out / f"{name}-{size}.compared.json"
                done = subprocess.run([tool, "compare", "--device", device, "--at", f"{ranged_size(row[0])}={size}",
                                       "-o", result, options.out / f"{name}-{size}.dgk", options.out / f"{name}.dgk"])
                if done.returncode:
                    failed = 1
                    continue
                one, both = json.loads(result.read_text())["kernels"]
                low, ratio, high = both["ratio"]
                print(name, size, one["seconds"], ratio, f"{low}..{high}", sep="\t", file=table, flush=True)
    print((options.out / "ranges.tsv").read_text(), end="")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compile", "measure"])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--only", nargs="+", default=list(ROWS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.rows = {name: ROWS[name] for name in options.only}
    if options.what == "measure":
        sys.exit(measure(options))
    for name, row in options.rows.items():
        for size in (None, *(options.sizes or row[2])):
            compile_one(options, name, size, row)


main()
