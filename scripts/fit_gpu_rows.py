#!/usr/bin/env python3
"""Fits the estimate of gpu_rows to measured times, and says how good an estimate is.

    scripts/fit_gpu_rows.py                        the constants below, beside the records
    scripts/fit_gpu_rows.py --fit                  fits them, and prints them for templates/gpu/rows/gpu_rows_cost.cpp
    scripts/fit_gpu_rows.py --deepgen build/ci/bin/deepgen    the estimates of that program instead
    scripts/fit_gpu_rows.py --write benchmarks/gpu/model/h200_rows.jsonl      what a unit test reads
    scripts/fit_gpu_rows.py --records 'DIR/*/*.jsonl'         other records, of scripts/gpu/gpu-rows.sh

Quality is told within each problem: Spearman's rank correlation, and best time / time of the first by estimate, of the best of
the first 4, and of the first 8. Of records without a time nothing is known. No library is needed.
"""
import argparse, glob, gzip, json, math, os, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDS = os.path.join(HERE, "../benchmarks/gpu/results/h200_rows/*.jsonl.gz")
SIZE = {"f32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "i8": 1}

SHUFFLE = 25  # clocks, of dependent ones: nothing in the records tells

# What is fitted; templates/gpu/rows/gpu_rows_cost.cpp says what each is.
CONSTANTS = {
    "launch": 3.0e-6, "latency": 1.47e-6, "efficiency": 0.86, "barrier": 150.0, "hidden": 1.4, "overlap": 0.094,
    "softmax": 8.0, "layer_norm": 8.9, "rms_norm": 5.4, "e4m3": 8.0, "shared": 9.2,
}


def ceil_div(a, b):
    return -(-a // b)


class Problem:
    def __init__(self, key):
        fields = dict(word.split("=") for word in key.split()[1:])
        self.key, self.m, self.n = key, int(fields["m"]), int(fields["n"])
        self.x, self.d, self.kind = fields["x"], fields["d"], fields["kind"]
        options = fields["options"].split("+")
        self.residual, self.output_residual = "residual" in options, "output_residual" in options
        self.scale, self.bias = "scale" in options, "bias" in options
        self.quantised = self.d in ("e4m3", "i8")

    def bytes(self):
        x = SIZE[self.x]
        matrices = self.m * self.n * (x * (1 + self.residual + self.output_residual) + SIZE[self.d])
        return matrices + self.n * x * (self.scale + self.bias) + (4 * self.m if self.quantised else 0)


class Tiling:
    """As GpuRowsTiling, for the kernels of a revision of the template."""

    def __init__(self, p, c, revision):
        self.vec, self.lanes, self.rows, self.hold = c["vec"], c["lanes"], c["rows"], c["hold"]
        self.unroll, self.sets, self.hint = c["unroll"], c["sets"], c["hint"]
        self.resident = c.get("resident", 0) # since revision 3
        self.elements = max(1, self.vec // SIZE[p.x])
        self.vectors = ceil_div(p.n, self.elements)
        self.turns = ceil_div(self.vectors, self.lanes)
        self.threads = self.lanes * self.rows
        self.all_sets = ceil_div(p.m, self.rows)
        self.blocks = ceil_div(self.all_sets, self.sets)
        self.warps = max(1, self.lanes // 32)
        rms, norm = p.kind == "rms_norm", p.kind == "layer_norm"
        with_sum = revision >= 2 and rms and p.quantised and not p.bias
        apart = p.quantised and not with_sum and not (revision >= 2 and p.kind == "softmax")
        self.exchanged = (3 if norm else 1 if rms else 2) + p.quantised
        self.barriers = self.exchanged if revision < 2 else 1 + apart
        self.passes = (3 if norm else 2) + apart
        self.rounds = (2 if norm or not rms else 1) + apart # of shuffles, one after another
        held = 4 if p.residual else SIZE[p.x]
        self.together = self.turns if self.hold == 1 else self.unroll
        slots = self.exchanged * self.threads // 32 * 4
        partial = ceil_div(slots, 16) * 16 if self.warps > 1 else 0
        self.shared = partial + (self.turns * self.threads * self.elements * held if self.hold == 2 else 0)
        self.ahead = self.hold == 1 and self.unroll > 1
        words = self.turns * ceil_div(self.vec, 4) * (1 + p.residual) if self.ahead else 0
        self.registers = 28 + self.together * self.elements + 3 * self.elements + words


def instructions(p, t, k):
    """Of one element, all passes."""
    softmax = p.kind in ("softmax", "log_softmax")
    decode = 1 if SIZE[p.x] < 4 else 0
    access = 4 / t.elements
    reads = decode + access if t.hold == 1 else t.passes * (decode + access)
    shared = k["shared"] * t.passes / t.elements if t.hold == 2 else 0
    kind = k["softmax"] if softmax else k[p.kind]
    vectors = (p.scale + p.bias) * (1 + decode + access)
    quantise = k["e4m3"] if p.d == "e4m3" else 6 if p.d == "i8" else 1
    return (1 + p.residual) * reads + shared + kind + vectors + quantise + access


def estimate(p, t, device, k):
    cores, clock = device["cores"], device["clock_khz"] * 1e3
    best = device["memory_bandwidth"] * k["efficiency"]
    registers = ceil_div(t.registers, 8) * 8
    if t.resident:
        registers = min(registers, 65536 // (t.resident * t.threads) // 8 * 8)
    limit = max(1, min(device["shared_multiprocessor"] // max(1, t.shared + 1024), 65536 // (registers * t.threads),
                       2048 // t.threads, 32))
    blocks = t.blocks / cores
    resident = min(limit, math.ceil(blocks))
    waves = max(math.ceil(blocks) / resident, 1)
    issues = 4
    slots = t.turns * t.elements * t.threads / 32
    set_issue = slots * instructions(p, t, k) / issues / clock
    warps = resident * t.threads / 32 / issues
    issue = blocks * t.sets * set_issue * (1 + k["hidden"] / warps)
    steps = math.log2(min(32, t.lanes)) * SHUFFLE
    across = (k["barrier"] + math.log2(t.warps) * SHUFFLE) if t.warps > 1 else 0
    reads = 1 if t.hold == 1 else math.ceil(t.turns / t.together)
    load = k["latency"] * (1 + 0.5 * (reads - 1))
    work = (t.rounds * steps + t.barriers * across) / clock + set_issue
    chain = waves * (load + t.sets * max(load, work) if t.ahead else t.sets * (load + work))
    again = (t.passes - 1) * p.m * p.n * SIZE[p.x] * (1 + p.residual) if t.hold == 0 else 0
    in_l2 = resident * cores * p.bytes() / t.all_sets < 0.7 * device["l2"]
    memory = p.bytes() / best + again / (2 * best if in_l2 else best)
    parts = (memory, issue, chain)
    total = k["launch"] + max(parts) + k["overlap"] * (sum(parts) - max(parts))
    return total * (0.999 if t.hint else 1)


def read_records(pattern):
    """{problem: {config text: (revision, config, device, seconds)}}, of the last stage that timed it."""
    found = {}
    for path in sorted(glob.glob(pattern)):
        device = None
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
            for line in file:
                record = json.loads(line)
                if record["schema"].startswith("deepgen.env"):
                    device = record["environment"]["device"]
                elif record.get("timing") and record["status"] == "ok" and record["template"] == "gpu_rows":
                    text = " ".join("%s=%d" % x for x in {**record["config"], "resident": record["config"].get("resident", 0)}.items())
                    found.setdefault(record["problem"], {})[text] = (record["revision"], record["config"], device,
                                                                     record["timing"]["seconds"])
    return {p: list(c.items()) for p, c in found.items() if len(c) >= 4}


def by_program(program, problem, configs):
    """The program's estimates; None where a config is not legal any more."""
    out = []
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/device.json"
        with open(path, "w") as file:
            json.dump(configs[0][1][2], file)
        for text, _ in configs:
            run = subprocess.run([program, "space", "explain", "--problem", problem, "--arch", configs[0][1][2]["arch"],
                                  "--device", path, "--config", "gpu_rows " + text], capture_output=True, text=True)
            number = re.search(r"estimated ([0-9.e+-]+) s", run.stdout)
            out.append(float(number.group(1)) if number else None)
    return out


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0] * len(values)
    for rank, i in enumerate(order):
        out[i] = rank
    return out


def quality(pairs):
    """Of (estimate, seconds)."""
    a, b, n = ranks([e for e, _ in pairs]), ranks([s for _, s in pairs]), len(pairs)
    correlation = 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b)) / (n * (n * n - 1))
    ordered = [s for _, s in sorted(pairs, key=lambda x: x[0])]
    return [correlation] + [min(ordered) / min(ordered[:k]) for k in (1, 4, 8)]


def loss(data, constants):
    """Squares of logarithms, about each problem's mean; the faster ones count more."""
    total = 0
    for key, configs in data.items():
        p, best = Problem(key), min(c[1][3] for c in configs)
        off = [(math.log(estimate(p, Tiling(p, c, r), d, constants) / s), (best / s) ** 2) for _, (r, c, d, s) in configs]
        weight = sum(w for _, w in off)
        mean = sum(x * w for x, w in off) / weight
        total += sum(w * (x - mean) ** 2 for x, w in off) / weight + 0.05 * mean ** 2
    return total


def fit(data):
    """Steps along one constant at a time, that shrink."""
    constants, step = dict(CONSTANTS), 1.5
    best = loss(data, constants)
    while step > 1.01:
        moved = False
        for name in constants:
            for factor in (step, 1 / step) if name != "softmax" else ():  # too few records
                trial = dict(constants, **{name: constants[name] * factor})
                if name == "efficiency" and trial[name] > 1:
                    continue
                now = loss(data, trial)
                if now < best * (1 - 1e-6):
                    best, constants, moved = now, trial, True
        if not moved:
            step = math.sqrt(step)
    return constants


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", default=RECORDS)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--deepgen")
    parser.add_argument("--write")
    options = parser.parse_args()
    data = read_records(options.records)
    if not data:
        sys.exit("no records with times: " + options.records)
    if options.write:
        with open(options.write, "w") as file:
            print(json.dumps({"device": next(iter(data.values()))[0][1][2]}, separators=(",", ":")), file=file)
            for key, configs in sorted(data.items()):
                for text, (_, _, _, seconds) in configs:
                    print(json.dumps({"problem": key, "template": "gpu_rows", "config": text,
                                      "seconds": float("%.5g" % seconds)}, separators=(",", ":")), file=file)
        return
    constants = fit(data) if options.fit else CONSTANTS
    rows = []
    for key, configs in sorted(data.items()):
        p = Problem(key)
        if options.deepgen:
            estimates = by_program(options.deepgen, key, configs)
        else:
            estimates = [estimate(p, Tiling(p, c, r), d, constants) for _, (r, c, d, _) in configs]
        pairs = [(e, c[1][3]) for e, c in zip(estimates, configs) if e is not None]
        if len(pairs) < 4:
            continue
        rows.append(quality(pairs))
        print("%5.2f  %.3f  %.3f  %.3f  %3d configs  %s" % (*rows[-1], len(pairs), key))
    print("%5.2f  %.3f  %.3f  %.3f  mean: rank correlation; best time / time of the first pick, of 4, of 8"
          % tuple(sum(r[i] for r in rows) / len(rows) for i in range(4)))
    if options.fit:
        print({name: float("%.3g" % value) for name, value in constants.items()})


main()
