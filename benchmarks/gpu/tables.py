"""The rows of a suite, and their results as tables."""
import csv
import json
import math

SIZES = {"f64": 8, "f32": 4, "tf32": 4, "i32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1, "i8": 1}
OUTPUT = {"tf32": "f32", "e4m3": "bf16", "e5m2": "bf16", "i8": "i32"}
ACCUMULATE = {"f64": "f64", "i8": "i32"}
REGIMES = {"bursts": "burst", "serial": "serial"} # of the hold-out, and their columns
COLUMNS = ("name problem template config us tflops vendor_us ratio ratio_low ratio_high verdict default_ratio noise stable "
           "regime balanced_ratio balanced_low balanced_high balanced_verdict burst_us burst_ratio burst_low burst_high burst_verdict serial_us serial_ratio serial_low serial_high serial_verdict "
           "vendor vendor_algorithms vendor_note bandwidth read_bandwidth bandwidth_share candidates ok clock_mhz seconds "
           "device driver detail").split()


def read_suite(path):
    for line in open(path):
        fields = line.split("#")[0].split()
        if fields:
            if fields[1] == "attention":
                yield attention(*fields)
                continue
            name, dtype, layout, batch, m, n, k, epilogue = fields
            d = OUTPUT.get(dtype, dtype)
            # As Problem::key() prints it. The suite's gelu is the tanh form, which cuBLASLt fuses.
            steps = "+".join("gelu_tanh" if s == "gelu" else s for s in epilogue.split("_"))
            gate = epilogue.startswith("gate=")
            groups = int(batch[1:]) if batch.startswith("x") else 0 # of rows, with a B each
            batch = "1" if groups else batch
            after = (f"groups={groups} " if groups else "") + (f"{epilogue} epilogue=none" if gate else f"epilogue={steps}")
            m, n, k, batch, size, weights = int(m), int(n), int(k), int(batch), SIZES[dtype], 2 if gate else 1
            moved = batch * (size * k * m + SIZES[d] * m * n) + max(batch, groups) * size * k * n * weights
            yield {"name": name, "flops": 2 * m * n * k * weights * batch, "bytes": moved, "problem":
                   f"gemm m={m} n={n} k={k} batch={batch} a={dtype} b={dtype} d={d} acc={ACCUMULATE.get(dtype, 'f32')} "
                   f"layout={layout} {after} align={min(SIZES[dtype], SIZES[d])}"}


def attention(name, _, types, heads, d, mask, options, page, call):
    """As Attention::key() prints it. `types`: of Q, K, V and out, or of the three and then out's. `mask`: with the keys that a
    window shows to the left of a query's own."""
    q, out = (types.split("/") * 2)[:2]
    heads, kv = (heads.split("/") * 2)[:2]
    batch, queries, keys = map(int, call.split("x"))
    kind, _, window = mask.partition("=")
    pairs = queries * keys
    if kind == "causal":
        pairs = queries * keys - queries * (queries - 1) // 2 # of suites where no entry has more queries than keys
    elif kind == "window":
        pairs = sum(min(keys - 1, t + keys - queries) - max(0, t + keys - queries - int(window)) + 1 for t in range(queries))
    bytes = batch * int(d) * (queries * int(heads) * (SIZES[q] + SIZES[out]) + 2 * keys * int(kv) * SIZES[q])
    return {"name": name, "flops": 4 * int(d) * int(heads) * batch * pairs, "bytes": bytes, "problem":
            f"attention heads={heads} kv_heads={kv} head_dim={d} value_dim={d} q={q} kv={q} out={out} mask={kind} "
            f"queries={queries} keys={keys} options={options} " + (f"page={page} " if page != "0" else "") + (f"window={window},0 " if window else "") +
            f"at_batch={batch} at_queries={queries} at_keys={keys}"}


def evaluate(row, choice, head, *finals):
    """Fills in the columns that come from the final log."""
    chosen = (choice["template"], choice["config"])
    winner = next((r for stage in ("holdout", "final") for r in finals
                   if (r["stage"], r["template"], r["config"]) == (stage, *chosen) and "timing" in r), None)
    if not winner:
        raise RuntimeError("the choice could not be timed: " + "; ".join(r["detail"] for r in finals if r.get("detail")))
    environment, vendor = head["environment"], head["environment"]["vendor"]
    holdout = environment.get("holdout", {}) # logs of earlier versions have none
    regimes = holdout.get("regimes", {})
    sustained = arm_of(regimes.get("sustained", {}), winner["sha256"]) # where bursts were tuned for, the timing is of these
    seconds = (sustained or winner["timing"])["seconds"]
    row.update(template=winner["template"], config=" ".join(f"{k}={v}" for k, v in winner["config"].items()),
               us=round(seconds * 1e6, 3), tflops=round(1e-12 * row["flops"] / seconds, 2),
               bandwidth=round(row["bytes"] / seconds * 1e-9), default_ratio=round(winner["timing"]["ratio"], 4),
               regime=environment.get("regime", "sustained"), noise=round(head["noise_floor"], 4), stable=head["stable"], clock_mhz=environment["clock_mhz"][1],
               vendor=vendor["name"], vendor_algorithms=vendor["algorithms"],
               vendor_note=vendor["why_not"] or vendor["epilogue"], device=environment["device"]["name"],
               driver=f"{environment['driver']}, {environment['power_limit_watts']:.0f} W, {environment['profile']}")
    if "read" in environment:
        read = environment["read"]["bytes"] / environment["read"]["seconds"]
        row.update(read_bandwidth=round(read * 1e-9), bandwidth_share=round(row["bytes"] / seconds / read, 3))
    for record in finals:
        if record["template"] == "vendor" and "timing" in record:
            row["vendor_us"] = round(record["timing"]["seconds"] * 1e6, 3)
    for ratio in vendor["ratios"]:
        if ratio["sha256"] == winner["sha256"]:
            row.update({column: round(ratio[key], 4) for column, key in
                        (("ratio", "ratio"), ("ratio_low", "low"), ("ratio_high", "high"))})
            low, high = row["ratio_low"] - 1, row["ratio_high"] - 1
            row["verdict"] = "win" if low > row["noise"] else "loss" if high < -row["noise"] else "tie"
    if holdout.get("sha256") == winner["sha256"] and "vendor" in holdout:
        low, middle, high = (1 / x for x in reversed(holdout["vendor"]["ratio"]))
        row.update(ratio=round(middle, 4), ratio_low=round(low, 4), ratio_high=round(high, 4),
                   verdict=holdout["vendor"]["verdict"], noise=round(max(row["noise"], holdout["noise_floor"]), 4))
    if sustained:
        row["default_ratio"] = round(sustained["default"][1], 4) if "default" in sustained else row["default_ratio"]
        if "vendor_seconds" in regimes["sustained"]:
            row["vendor_us"] = round(regimes["sustained"]["vendor_seconds"] * 1e6, 3)
        if "vendor" in sustained:
            low, middle, high = (1 / x for x in reversed(sustained["vendor"]))
            row.update(ratio=round(middle, 4), ratio_low=round(low, 4), ratio_high=round(high, 4), verdict=sustained["verdict"])
    for regime, prefix in REGIMES.items():
        evaluate_regime(row, prefix, regimes.get(regime, {}), winner["sha256"])
    evaluate_balanced(row, holdout.get("balanced", {}), holdout.get("sha256") == winner["sha256"])


def arm_of(facts, sha256):
    return next((a for a in facts.get("arms", []) if a["sha256"] == sha256 and "seconds" in a), None)


def set_ratio(row, prefix, times, verdict):
    """`times`: of the kernel over the vendor's."""
    low, middle, high = (round(1 / x, 4) for x in reversed(times))
    row.update(zip((f"{prefix}_{c}" for c in ("ratio", "low", "high", "verdict")), (middle, low, high, verdict)))


def evaluate_regime(row, prefix, facts, sha256):
    arm = arm_of(facts, sha256)
    if not arm:
        return
    row[f"{prefix}_us"] = round(arm["seconds"] * 1e6, 3)
    if "vendor" in arm:
        set_ratio(row, prefix, arm["vendor"], arm["verdict"] + (", unstable" if "unstable" in facts else ""))


def evaluate_balanced(row, means, confirmed):
    """What a search for balanced calls is judged by; where the hold-out did not confirm the winner, of the default."""
    name = "vendor" if confirmed else "default"
    if f"{name}_ratio" in means:
        set_ratio(row, "balanced", means[f"{name}_ratio"], means[f"{name}_verdict"])


def short(problem):
    """What differs between a suite's rows."""
    shown = ("m", "n", "k", "batch", "a", "layout", "groups", "gate", "epilogue", "q", "heads", "kv_heads", "head_dim", "mask",
             "options", "page", "window", "at_batch", "at_queries", "at_keys")
    left_out = ("batch=1", "epilogue=none", "mask=none", "options=none")
    return " ".join(f for f in problem.split() if f.split("=")[0] in shown and f not in left_out)


def markdown(rows):
    for about in sorted({f"{r['device']}, driver {r['driver']}, {r['vendor']}" for r in rows if "us" in r}):
        yield f"{about}.\n"
    vendor = "vendor" if any(r.get("device", "").startswith(("AMD", "Radeon")) for r in rows) else "cuBLASLt"
    if any(r["problem"].startswith("attention ") for r in rows):
        vendor = "cuDNN"
    regimes = [prefix for prefix in ("balanced", *REGIMES.values()) if any(f"{prefix}_ratio" in r for r in rows)]
    extra = "".join(f" {prefix} [95 %] |" for prefix in regimes)
    yield f"| row | problem | us | TFLOP/s | {vendor} us | {vendor} / DeepGen [95 %] |{extra} of default | of read | template | s |"
    yield "| --- " * (10 + len(regimes)) + "|"
    for r in rows:
        problem = short(r["problem"])
        if "us" not in r:
            yield f"| {r['name']} | {problem} | failed: {(r['detail'] or '?').splitlines()[0]} |" + " |" * (7 + len(regimes))
            continue
        extra = "".join(" |" if f"{p}_ratio" not in r else f" {r[f'{p}_ratio']:.3f} [{r[f'{p}_low']:.3f}, {r[f'{p}_high']:.3f}] "
                        f"{r[f'{p}_verdict']} |" for p in regimes)
        ratio = (f"{r['ratio']:.3f} [{r['ratio_low']:.3f}, {r['ratio_high']:.3f}] {r['verdict']}" if "ratio" in r
                 else r["vendor_note"] or "not timed") + ("" if r["stable"] else ", unstable")
        yield (f"| {r['name']} | {problem} | {r['us']} | {r['tflops']} | {r.get('vendor_us', '')} | {ratio} |{extra} "
               f"{r['default_ratio']:.3f} | {r.get('bandwidth_share', 0):.0%} | {r['template']} | {r['seconds']} |")
    names = {"balanced": " in the mean of sustained calls and bursts"}
    for column, name in {"ratio": "", **{f"{p}_ratio": names.get(p, f" in the regime {p}") for p in regimes}}.items():
        ratios = [r[column] for r in rows if column in r]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            yield f"\nGeometric mean of {len(ratios)} ratios{name}: {mean:.3f}; the worst: {min(ratios):.3f}."


def write(suite, output):
    """From the rows' own files: of this run and of earlier ones, in the suite's order."""
    order = [row["name"] for row in read_suite(suite)]
    rows = [json.loads(path.read_text()) for path in (output / "rows").glob("*.json")]
    rows.sort(key=lambda r: order.index(r["name"]) if r["name"] in order else len(order))
    with open(output / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (output / "results.md").write_text("\n".join(markdown(rows)) + "\n")
    return rows
