#!/usr/bin/env python3
"""Times the winners of scripts/gpu/gpu-rows.sh beside torch's kernels for rows, in one process on the attached GPU.

  benchmarks/gpu/rows_torch.py OUTDIR [--rounds 30]

OUTDIR is what gpu-rows.sh made. A sample is the replay of a CUDA graph of calls that go round over sets of
operands, three times the L2 cache together; arms take turns. Every arm has the same operands. Results are checked
against torch's in f32. Exits with 77 without torch or a GPU.

Torch has no kernel that does what rms_norm with a residual, or a quantised one, does: torch is timed with the
sequence of calls that a user would write. `compiled` is torch.compile of the same function, where it works here.
"""
import argparse, ctypes, glob, json, math, os, statistics, sys

from torch_arms import Arm, Kernel, parse, torch, winner
import torch.nn.functional as F

EPSILON = 1e-5
MOST_E4M3 = 448.0


class RowsKernel(Kernel):
    def call(self, operands):
        values = []
        for name in self.about["args"]:
            if name == "epsilon":
                values.append(ctypes.c_float(EPSILON))
            elif name.startswith("ld"):
                tensor = operands[name[3:] if name.startswith("ld_") else name[2:]]
                values.append(ctypes.c_int64(tensor.stride(0)))
            else:
                values.append(ctypes.c_uint64(operands[name].data_ptr()))
        self.launch(values)


def with_torch(problem):
    """What a user would write; returns D, and what else the problem has."""
    kind, options, n = problem["kind"], problem["options"], int(problem["n"])
    rms = getattr(F, "rms_norm", None)

    def rms_norm(x, scale):
        if rms:
            return rms(x, (n,), scale, EPSILON)
        y = x.float()
        y = (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + EPSILON)).to(x.dtype)
        return y if scale is None else y * scale

    def function(o):
        x = o["x"]
        if "residual" in options:
            x = x + o["residual"]
        if kind == "softmax":
            y = F.softmax(x, -1)
        elif kind == "log_softmax":
            y = F.log_softmax(x, -1)
        elif kind == "layer_norm":
            y = F.layer_norm(x, (n,), o.get("scale"), o.get("bias"), EPSILON)
        else:
            y = rms_norm(x, o.get("scale"))
        if problem["d"] != "e4m3":
            return (y, x) if "output_residual" in options else (y,)
        y = y.float()
        scales = y.abs().amax(-1, keepdim=True) / MOST_E4M3
        return (y / scales).to(torch.float8_e4m3fn), scales

    return function


def operands_of(problem, count):
    m, n = int(problem["m"]), int(problem["n"])
    options = problem["options"]
    sets = []
    scale = 1 + torch.rand(n, device="cuda", dtype=torch.bfloat16) / 2
    bias = torch.rand(n, device="cuda", dtype=torch.bfloat16)
    d_type = torch.float8_e4m3fn if problem["d"] == "e4m3" else torch.bfloat16
    for _ in range(count):
        o = {"x": torch.randn(m, n, device="cuda", dtype=torch.bfloat16), "d": torch.empty(m, n, device="cuda", dtype=d_type)}
        if "residual" in options:
            o["residual"] = torch.randn(m, n, device="cuda", dtype=torch.bfloat16)
        if "output_residual" in options:
            o["residual_out"] = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        if "scale" in options:
            o["scale"] = scale
        if "bias" in options:
            o["bias"] = bias
        if problem["d"] == "e4m3":
            o["row_scales"] = torch.empty(m, device="cuda", dtype=torch.float32)
        sets.append(o)
    return sets


def agree(problem, o):
    """Whether D is what torch computes of the same operands in f32."""
    wide = {name: t.float() if name in ("x", "residual", "scale", "bias") else t for name, t in o.items()}
    plain = dict(problem, d="f32")
    expected = with_torch(plain)(wide)[0]
    found = o["d"].float()
    if problem["d"] == "e4m3":
        found = found * o["row_scales"][:, None]
        room = 0.07 * expected.abs() + 0.002 * expected.abs().amax(-1, keepdim=True)
    else:
        room = 0.008 * expected.abs() + 1e-4
    return bool(((found - expected).abs() <= room).all())


def compare(folder, rounds):
    best = winner(folder)
    if not best:
        print("no winner: " + folder)
        return None
    problem = parse(best["problem"])
    kernel = RowsKernel(os.path.join(folder, best["kernel_file"]))
    element = {"e4m3": 1}.get(problem["d"], 2)
    m, n = int(problem["m"]), int(problem["n"])
    bytes_of_set = m * n * (2 + element + 2 * len(problem["options"] & {"residual", "output_residual"}))
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    count = max(2, math.ceil(3 * cache / bytes_of_set))
    sets = operands_of(problem, count)
    calls = count * max(1, math.ceil(2e-3 * 3e12 / (bytes_of_set * count)))
    function = with_torch(problem)
    kernel.call(sets[0])
    torch.cuda.synchronize()
    good = agree(problem, sets[0])
    arms = {"deepgen": Arm(kernel.call, sets, calls), "eager": Arm(function, sets, calls)}
    try:
        torch._dynamo.reset()  # or it gives up after a few problems
        compiled = torch.compile(function, dynamic=False)
        compiled(sets[0])
        arms["compiled"] = Arm(compiled, sets, calls)
    except Exception as e:  # no compiler here, say
        print("no torch.compile here: " + str(e).splitlines()[0][:150])
    for _ in range(rounds):
        for arm in arms.values():
            arm.sample()
    skipped = rounds // 5  # until the clock is steady
    ratios = {
        name: statistics.median(a / b for a, b in zip(arm.samples[skipped:], arms["deepgen"].samples[skipped:]))
        for name, arm in arms.items()
        if name != "deepgen"
    }
    seconds = {name: statistics.median(arm.samples[skipped:]) for name, arm in arms.items()}
    line = "%-24s %9.2f us" % (os.path.basename(folder), seconds["deepgen"] * 1e6)
    for name, ratio in ratios.items():
        line += "   %s %9.2f us (%.3f x)" % (name, seconds[name] * 1e6, ratio)
    print(line + ("" if good else "   WRONG"), flush=True)
    return good, ratios, {"problem": best["problem"], "seconds": seconds, "ratios": ratios, "agrees": good}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outdir")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    torch.zeros(1, device="cuda")  # makes the context current
    print("torch %s on %s" % (torch.__version__, torch.cuda.get_device_name(0)))
    results = []
    for path in sorted(glob.glob(options.outdir + "/*/final.jsonl")):
        result = compare(os.path.dirname(path), options.rounds)
        if result:
            results.append(result)
    for name in ("eager", "compiled"):
        ratios = [r[1][name] for r in results if name in r[1]]
        if ratios:
            print("torch %s / deepgen, geometric mean of %d: %.3f" % (name, len(ratios), statistics.geometric_mean(ratios)))
    with open(os.path.join(options.outdir, "torch.json"), "w") as f:
        json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(0), "results": [r[2] for r in results]}, f, indent=1)
    sys.exit(0 if results and all(r[0] for r in results) else 1)


main()
