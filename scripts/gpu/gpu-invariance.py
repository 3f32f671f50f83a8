#!/usr/bin/env python3
"""Do kernels that say that they add up over K in one order give the same bits on a GPU?

  scripts/gpu/gpu-invariance.py compile BIN OUT      on a host with deepgen and ptxas: writes kernels to OUT
  scripts/gpu/gpu-invariance.py verify BIN OUT       on a GPU host with deepgen-measure alone

Each row is a batch invariant problem with several configs of one order of sums, in one kernel file as parts of a range have.
`verify` calls each of them with equal rows at several places and M, and compares the bits of all: `varies` names what differs.
"""
import argparse
import json
import pathlib
import subprocess
import sys

from revision import revision_of

ALIGNED = {"align_a": 16, "align_b": 16, "align_d": 16}


def hopper(bm, bn, stages, consumers, **other):
    config = {"bm": bm, "bn": bn, "slices": 1, "stages": stages, "consumers": consumers, "pingpong": 0, "swap": 0,
              "promote": 0, "cluster_m": 1, "cluster_n": 1, "cluster_k": 1, "splits": 1, "stream_k": 0, "group": 1,
              "pdl": 1, **ALIGNED}
    assert not set(other) - set(config)
    return "hopper_ws", {**config, **other}


def mma(bm, bn, bk, warps_m, warps_n, stages, **other):
    return "mma_sync", {"bm": bm, "bn": bn, "bk": bk, "warps_m": warps_m, "warps_n": warps_n, "warps_k": 1,
                        "stages": stages, "blocks": 1, "splits": 1, "group": 1, "pdl": 0, **ALIGNED, **other}


def simt(bm, bn, bk, tm, tn, stages, **other):
    return "simt", {"wide": 1, "bm": bm, "bn": bn, "bk": bk, "tm": tm, "tn": tn, "stages": stages, "blocks": 1,
                    "splits": 1, "group": 1, **other}


def gemv(width, rwarps, vectors, **other):
    return "gemv", {"form": 0, "vec": 16, "width": width, "rwarps": rwarps, "kwarps": 8, "unroll": 2, "splits": 1,
                    "hint": 2, "pipe": 0, "pdl": 1, **other, "vectors": vectors}


def problem(m, n, k, types, d, layout="nt", epilogue="bias"):
    align = {"e4m3": 1, "bf16": 2, "f16": 2, "f32": 4, "f64": 8, "i8": 1}[types]
    accumulate = {"i8": "i32", "f64": "f64"}.get(types, "f32")
    return (f"gemm m=1..{m} n={n} k={k} batch=1 a={types} b={types} d={d} acc={accumulate} layout={layout} "
            f"epilogue={epilogue} invariant=rows align={align}")


# name: problem, configs of one order
ROWS = {
    "wgmma": (problem(2048, 1024, 1032, "bf16", "bf16"),
              [hopper(64, 128, 6, 1), hopper(128, 256, 4, 2, cluster_m=2), hopper(128, 128, 2, 2, slices=2),
               hopper(128, 128, 4, 2, pingpong=1), hopper(64, 16, 8, 1, swap=1), hopper(128, 64, 6, 2, swap=1),
               hopper(64, 136, 6, 1, swap=1)]),
    "wgmma_f16_nn": (problem(2048, 1024, 1032, "f16", "f32", "nn", "none"),
                     [hopper(64, 128, 6, 1), hopper(128, 256, 4, 2), hopper(64, 64, 6, 1, swap=1)]),
    "wgmma_e4m3": (problem(2048, 1024, 2064, "e4m3", "bf16"),
                   [hopper(64, 128, 6, 1), hopper(128, 128, 4, 2), hopper(64, 16, 8, 1, swap=1)]),
    "wgmma_e4m3_promote": (problem(2048, 1024, 2064, "e4m3", "bf16"),
                           [hopper(64, 128, 6, 1, promote=1), hopper(128, 128, 4, 2, promote=1),
                            hopper(64, 16, 8, 1, swap=1, promote=1)]),
    "wgmma_splits": (problem(2048, 1024, 4096, "bf16", "bf16"),
                     [hopper(64, 128, 6, 1, splits=4), hopper(128, 128, 4, 2, splits=4),
                      hopper(64, 16, 8, 1, swap=1, splits=4)]),
    "wgmma_cluster_k": (problem(2048, 1024, 4096, "bf16", "bf16"),
                        [hopper(64, 128, 6, 1, cluster_k=4), hopper(128, 128, 4, 2, cluster_k=4)]),
    "mma": (problem(2048, 1024, 1032, "bf16", "bf16"),
            [mma(16, 64, 64, 1, 4, 4), mma(64, 64, 128, 2, 2, 4), mma(128, 128, 64, 2, 4, 3, pdl=1),
             mma(64, 64, 64, 2, 2, 2, align_a=2, align_b=2, align_d=2)]),
    "mma_f64": (problem(1024, 512, 520, "f64", "f64"),
                [mma(16, 64, 64, 1, 4, 3), mma(64, 64, 64, 2, 2, 3)]),
    "mma_parts": (problem(2048, 1024, 4104, "bf16", "bf16"),
                  [mma(16, 64, 128, 1, 4, 4, splits=3, warps_k=2), mma(64, 64, 128, 2, 2, 3, splits=3, warps_k=2)]),
    "simt": (problem(1024, 512, 1000, "f32", "f32"),
             [simt(32, 32, 8, 2, 4, 3), simt(128, 128, 8, 8, 8, 3, group=8), simt(64, 64, 16, 4, 4, 2, wide=0)]),
    "simt_splits": (problem(1024, 512, 1024, "f32", "f32"),
                    [simt(32, 32, 8, 2, 4, 3, splits=4), simt(64, 64, 16, 4, 4, 2, splits=4)]),
    "gemv": (problem(16, 4096, 4096, "bf16", "bf16"), [gemv(4, 1, 4), gemv(2, 2, 1), gemv(1, 1, 16)]),
    "gemv_mma": (problem(16, 4096, 4096, "bf16", "bf16"),
                 [gemv(16, 1, 8, form=1), gemv(16, 2, 16, form=1), gemv(32, 1, 4, form=1)]),
    "integers": (problem(1024, 512, 1040, "i8", "f32"),
                 [simt(32, 32, 8, 2, 4, 3), mma(64, 64, 128, 2, 2, 4), hopper(64, 128, 6, 1)]),
}


def choice_of(options, key, part, fields, span=None):
    template, config = part
    revision = revision_of(options.bin / "deepgen", options.arch, key, template, config)
    taken = {"taken": [[m, *fields] for m in span]} if span else {}
    return {"template": template, "revision": revision, "config": config, "expect_sha256": "", "toolchain": "", **taken}


def compile_row(options, name, row):
    key, parts = row
    sizes = dict(field.split("=") for field in key.split()[1:])
    fields, most = [int(sizes[x]) for x in ("n", "k", "batch")], int(sizes["m"].split("..")[1])
    first = [1 + i * most // len(parts) for i in range(len(parts))] + [most + 1]
    spans = [(first[i], first[i + 1] - 1) for i in range(len(parts))]
    choice = {"schema": "deepgen.choice/2", "function": name, "problem": key, "arch": options.arch,
              **choice_of(options, key, parts[-1], fields, spans[-1]), "origin": "default",
              "ranges": [choice_of(options, key, part, fields, span) for part, span in zip(parts[:-1], spans)],
              "devices": [], "instead": []}
    stem = options.out / name
    stem.with_suffix(".json").write_text(json.dumps(choice))
    subprocess.run([options.bin / "deepgen", "compile", "--choice", stem.with_suffix(".json"), "-o",
                    stem.with_suffix(".dgk")], check=True)
    orders = set()
    for kernel in json.loads((options.out / f"{name}.dgk").read_bytes().split(b"\n", 1)[0])["kernels"]:
        orders.add(kernel["sum_order"])
    print(f"{name}: {'; '.join(sorted(orders))}")
    if len(orders) != 1:
        sys.exit(f"{name}: its configs have several orders")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compile", "verify"])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--only", nargs="+", default=list(ROWS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.what == "verify":
        files = [options.out / f"{name}.dgk" for name in options.only]
        sys.exit(subprocess.run([options.bin / "deepgen-measure", "verify", *files]).returncode)
    for name in options.only:
        compile_row(options, name, ROWS[name])


main()
