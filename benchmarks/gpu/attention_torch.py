#!/usr/bin/env python3
"""Times winners of suite_attention.txt beside torch's attention, in one process on the attached GPU.

  benchmarks/gpu/attention_torch.py OUTDIR [--rounds 20]
  benchmarks/gpu/attention_torch.py --kernels FILE.dgk... [--rounds 20]

OUTDIR is the folder OUTPUT.work that run.py -o OUTPUT leaves; of rows that torch does not serve, delete the folders. A sample is the
replay of a CUDA graph of calls that go round over sets of operands, three times the L2 cache together; arms take turns. All have the same operands, of a normal distribution. Results are checked
against torch's in f32, of the first entry. Exits with 77 without torch or a GPU.

Torch's arms are its FlashAttention 2 and its cuDNN backend of scaled_dot_product_attention; one that refuses a call is left out.
"""
import argparse, ctypes, glob, json, math, os, statistics, sys

from torch_arms import Arm, Kernel, check, driver, parse, torch, winner
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def tensor_map(described, x):
    """As the runtime encodes it (runtime/nvidia/cuda_tensor_map.cpp): dimension, tokens, heads, entries of a [B, T, H, D] tensor."""
    kinds = {torch.float16: 6, torch.float32: 7, torch.bfloat16: 9}
    batch, token, head = (n * x.element_size() for n in x.stride()[:3])
    entries, tokens, heads, columns = x.shape
    room = ctypes.create_string_buffer(192)
    out = (ctypes.c_uint64 * 16).from_buffer(room, -ctypes.addressof(room) % 64)
    check(
        driver.cuTensorMapEncodeTiled(
            out, kinds[x.dtype], 4, ctypes.c_void_p(x.data_ptr()), (ctypes.c_uint64 * 4)(columns, tokens, heads, entries),
            (ctypes.c_uint64 * 3)(token, head, batch), (ctypes.c_uint32 * 4)(*described["box"], 1, 1),
            (ctypes.c_uint32 * 4)(1, 1, 1, 1), 0, {128: 3, 64: 2, 32: 1, 0: 0}[described["swizzle"]],
            {256: 3, 128: 2, 64: 1, 0: 0}[described["promotion"]], 0,
        ),
        "encoding a tensor map",
    )
    return out


class AttentionKernel(Kernel):
    def __init__(self, path, problem):
        super().__init__(path)
        self.problem = problem
        if "page" in problem:
            sys.exit(path + ": torch's attention reads no pages; run.py has those beside the reading kernel")
        if "bias" in problem:
            sys.exit(path + ": this script has no bias to pass")
        self.workspace = torch.empty(max(1, self.about.get("workspace", 0)), device="cuda", dtype=torch.int8)

    def call(self, o):
        p, sizes = self.problem, o["sizes"]
        numbers = {"m": sizes[0], "n": sizes[1], "batch": o["batch"], "workspace": self.workspace.data_ptr()}
        maps = {"map_" + m["operand"]: m for m in self.about["maps"]}
        for name in ("q", "key", "value", "out"):
            batch, token, head = o[name].stride()[:3]
            numbers.update({name + "_token": token, name + "_head": head, name + "_batch": batch})
        heads = int(p["heads"])
        numbers.update({"lse_token": 1, "lse_head": sizes[0], "lse_batch": heads * sizes[0], "window_left": -1, "window_right": -1})
        values = []
        for name in self.about["args"]:
            if name == "score_scale":
                values.append(ctypes.c_float(1 / math.sqrt(int(p["head_dim"]))))
            elif name == "softcap":
                values.append(ctypes.c_float(0))
            elif name in maps:
                values.append(tensor_map(maps[name], o[name[4:]]))
            elif name in numbers:
                values.append(ctypes.c_int64(numbers[name]))
            else:
                values.append(ctypes.c_uint64(o[name].data_ptr() if name in o else 0))

        def grid(launch):
            out = list(launch["grid"])
            for i, (factor, *steps) in enumerate(launch.get("grid_rules", [])):
                if factor:
                    for step, size in zip(steps, (*sizes, 1, o["batch"])):
                        factor *= -(-size // step) if step else 1
                    out[i] = min(out[i], factor)
            return out

        self.launch(values, grid)


def operands_of(p, count):
    batch, queries, keys = (int(p["at_" + x]) for x in ("batch", "queries", "keys"))
    heads, kv, d, dv = (int(p[x]) for x in ("heads", "kv_heads", "head_dim", "value_dim"))

    def random(type, *shape):
        return torch.randn(*shape, device="cuda", dtype=torch.float32).to(TYPES[type])

    sets = []
    for _ in range(count):
        o = {
            "q": random(p["q"], batch, queries, heads, d),
            "key": random(p["kv"], batch, keys, kv, d),
            "value": random(p["kv"], batch, keys, kv, dv),
            "out": torch.empty(batch, queries, heads, dv, device="cuda", dtype=TYPES[p["out"]]),
            "sizes": (queries, keys),
            "batch": batch,
        }
        if "lse" in p["options"]:
            o["lse"] = torch.empty(batch, heads, queries, device="cuda")
        if "sink" in p["options"]:
            o["sink"] = torch.zeros(heads, device="cuda")
        sets.append(o)
    return sets


def with_torch(p, backend):
    causal = p["mask"] == "causal"

    def call(o):
        with sdpa_kernel(backend):
            q, k, v = (o[x].transpose(1, 2) for x in ("q", "key", "value"))
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])

    return call


def agrees(p, o):
    """Whether out is what torch computes of the first entry's first heads in f32."""
    heads, group = min(4, int(p["heads"])), int(p["heads"]) // int(p["kv_heads"])
    q = o["q"][0, :, :heads].float().transpose(0, 1)
    k, v = (o[x][0].float().repeat_interleave(group, 1)[:, :heads].transpose(0, 1) for x in ("key", "value"))
    for first in range(0, q.shape[1], 1024):
        scores = q[:, first : first + 1024] @ k.transpose(1, 2) / math.sqrt(q.shape[2])
        if p["mask"] == "causal":
            rows = torch.arange(first, first + scores.shape[1], device="cuda")[:, None] + k.shape[1] - q.shape[1]
            scores.masked_fill_(torch.arange(k.shape[1], device="cuda")[None] > rows, -math.inf)
        expected = torch.softmax(scores, -1) @ v
        found = o["out"][0, first : first + 1024, :heads].float().transpose(0, 1)
        if not ((found - expected).abs() <= 0.02 * expected.abs() + 0.02).all():
            return False
    return True


def flops(p):
    batch, queries, keys = (int(p["at_" + x]) for x in ("batch", "queries", "keys"))
    pairs = queries * keys
    if p["mask"] == "causal":
        pairs = queries * keys - queries * (queries - 1) / 2 if queries <= keys else keys * (keys + 1) / 2
    return 2.0 * (int(p["head_dim"]) + int(p["value_dim"])) * int(p["heads"]) * batch * pairs


def compare(name, path, problem, rounds):
    kernel = AttentionKernel(path, problem)
    bytes_of_set = sum(x.numel() * x.element_size() for x in operands_of(problem, 1)[0].values() if torch.is_tensor(x))
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    count = max(2, math.ceil(3 * cache / bytes_of_set))
    sets = operands_of(problem, count)
    calls = count * max(1, math.ceil(4e-3 / (flops(problem) / 300e12 + 3e-6) / count))
    kernel.call(sets[0])
    torch.cuda.synchronize()
    good = agrees(problem, sets[0])
    arms = {"deepgen": Arm(kernel.call, sets, calls)}
    for backend, which in BACKENDS.items():
        try:
            call = with_torch(problem, which)
            call(sets[0])
            torch.cuda.synchronize()
            arms[backend] = Arm(call, sets, calls)
        except Exception as e:
            print("%s: no %s: %s" % (name, backend, str(e).splitlines()[0][:120]))
    for _ in range(rounds):
        for arm in arms.values():
            arm.sample()
    skipped = rounds // 5  # until the clock is steady
    seconds = {x: statistics.median(arm.samples[skipped:]) for x, arm in arms.items()}
    ratios = {
        x: statistics.median(a / b for a, b in zip(arm.samples[skipped:], arms["deepgen"].samples[skipped:]))
        for x, arm in arms.items()
        if x != "deepgen"
    }
    tera = {x: flops(problem) / s * 1e-12 for x, s in seconds.items()}
    line = "| %s | %.1f | %.0f |" % (name, seconds["deepgen"] * 1e6, tera["deepgen"])
    for x in BACKENDS:
        line += " %.0f | %.3f |" % (tera[x], ratios[x]) if x in ratios else " - | - |"
    print(line + ("" if good else " WRONG"), flush=True)
    return {"name": name, "config": kernel.about["choice"] if "choice" in kernel.about else "", "seconds": seconds,
            "ratios": ratios, "agrees": good, "problem": problem["key"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outdir", nargs="?")
    parser.add_argument("--kernels", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.zeros(1, device="cuda")  # makes the context current
    print("torch %s on %s" % (torch.__version__, torch.cuda.get_device_name(0)))
    print("| call | us | TFLOP/s | flash TFLOP/s | flash / deepgen time | cudnn TFLOP/s | cudnn / deepgen time |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    work = []
    for final in sorted(glob.glob((options.outdir or "/nonexistent") + "/*/final.jsonl")):
        folder = os.path.dirname(final)
        best = winner(folder)
        if best:
            work.append((os.path.basename(folder), os.path.join(folder, best["kernel_file"]), best["problem"]))
        else:
            print("no winner: " + folder)
    for path in options.kernels:
        with open(path, "rb") as f:
            work.append((os.path.basename(path), path, json.loads(f.readline())["problem"]))
    results = [compare(name, path, dict(parse(key), key=key), options.rounds) for name, path, key in work]
    for backend in BACKENDS:
        ratios = [r["ratios"][backend] for r in results if backend in r["ratios"]]
        if ratios:
            print("time of %s / time of deepgen: geometric mean of %d %.3f, least %.3f" %
                  (backend, len(ratios), statistics.geometric_mean(ratios), min(ratios)))
    if options.outdir:
        with open(os.path.join(options.outdir, "torch.json"), "w") as f:
            json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(0), "results": results}, f, indent=1)
    sys.exit(0 if results and all(r["agrees"] for r in results) else 1)


main()
