#!/usr/bin/env python3
"""Which ping-pong kernels of hopper_ws spill: what ptxas says of tiles of 144 to 192 sums a thread, with each kind of epilogue.

  benchmarks/gpu/spills.py build/ci/bin/deepgen -o spills.json

Needs ptxas in PATH, and no GPU. Each element of the output is [[types, epilogue, swap, columns, clusters, stream_k], bytes of
spill stores].
"""
import argparse, json, os, re, subprocess, tempfile
from concurrent.futures import ThreadPoolExecutor

TYPES = {"bf16": ("a=bf16 b=bf16 d=bf16 acc=f32", 2), "tf32": ("a=tf32 b=tf32 d=f32 acc=f32", 4),
         "bf32": ("a=bf16 b=bf16 d=f32 acc=f32", 2), "e4m3": ("a=e4m3 b=e4m3 d=bf16 acc=f32", 1),
         "i8": ("a=i8 b=i8 d=i8 acc=i32", 1), "i32": ("a=i8 b=i8 d=i32 acc=i32", 1)}
EPILOGUES = ["none", "bias", "bias+gelu_tanh", "gelu", "bias_row", "residual", "bias+residual", "scale_col", "scale_row", "scale_d"]


def columns_of(types):
    if types in ("i8", "i32"):
        return (144, 160, 176, 192)
    return (160, 176, 192) if types in ("tf32", "bf32") else (144, 152, 160, 168, 176, 184, 192)


def cases():
    for types in TYPES:
        for epilogue in EPILOGUES:
            plain = types in ("bf16", "tf32", "bf32")
            if (types == "i32" and epilogue != "none") or (plain and epilogue in ("scale_row", "scale_d")):
                continue
            for swap in (0, 1):
                for columns in columns_of(types):
                    for cluster in ([1, 1], [2, 1]):
                        for stream_k in (0, 2):
                            if cluster == [1, 1] or (epilogue in ("none", "bias") and not stream_k):
                                yield [types, epilogue, swap, columns, cluster, stream_k]


def spilled(case, deepgen, folder):
    types, epilogue, swap, columns, cluster, stream_k = case
    text, align = TYPES[types]
    problem = f"gemm m={5 * columns - 3 if swap else 4096} n=4096 k=4096 batch=1 {text} layout=nt epilogue={epilogue} align={align}"
    config = (f"hopper_ws bm=128 bn={columns} slices=1 stages=4 consumers=2 pingpong=1 swap={swap} promote=0 cluster_m={cluster[0]} "
              f"cluster_n={cluster[1]} cluster_k=1 splits=1 stream_k={stream_k} group=4 pdl=2 align_a=16 align_b=16 align_d=16")
    ptx = os.path.join(folder, "_".join(map(str, case)) + ".ptx")
    subprocess.run([deepgen, "dump", "--arch", "sm_90a", "--stage", "ptx", "--problem", problem, "--config", config, "-o", ptx], check=True)
    said = subprocess.run(["ptxas", "-v", "-O3", "-arch=sm_90a", ptx, "-o", os.devnull], check=True, capture_output=True, text=True).stderr
    os.remove(ptx)
    return max(map(int, re.findall(r"(\d+) bytes spill stores", said)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deepgen")
    parser.add_argument("-o", required=True)
    args = parser.parse_args()
    every = list(cases())
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda case: [case, spilled(case, args.deepgen, folder)], every))
    with open(args.o, "w") as out:
        out.write("[" + ",\n ".join(map(json.dumps, results)) + "]\n")
    print(f"{sum(b > 0 for _, b in results)} of {len(results)} spill")


if __name__ == "__main__":
    main()
