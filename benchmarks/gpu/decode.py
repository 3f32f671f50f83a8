#!/usr/bin/env python3
"""The table of what DECODE="1 8 64" scripts/gpu-attention.sh PREFIX OUTDIR measured: the winners' times, and the share of the
bandwidth that the reading kernel has, which reads as many bytes in the same races.

  benchmarks/gpu/decode.py OUTDIR
"""
import glob, json, os, sys


def rows(folder):
    for path in glob.glob(os.path.join(folder, "decode-*", "final.jsonl")):
        batch, keys, page = map(int, os.path.basename(os.path.dirname(path)).split("-")[1:])
        lines = [json.loads(line) for line in open(path)]
        environment = lines[0]["environment"]
        sha = environment.get("holdout", {}).get("sha256")
        timed = [r for r in lines[1:] if r.get("stage") == "final" and r.get("status") == "ok" and r.get("timing")]
        if not timed:
            continue
        best = next((r for r in timed if r["sha256"] == sha), min(timed, key=lambda r: r["timing"]["seconds"]))
        yield batch, keys, page, best, environment.get("read")


def main():
    print("| entries x keys | page | µs | GB/s | share of reading | config |\n| --- | --- | --- | --- | --- | --- |")
    for batch, keys, page, best, read in sorted(rows(sys.argv[1]), key=lambda r: r[:3]):
        seconds = best["timing"]["seconds"]
        rate = read["bytes"] / seconds if read else 0
        share = f"{read['seconds'] / seconds:.3f}" if read else "–"
        config = " ".join(f"{k}={v}" for k, v in best["config"].items())
        print(f"| {batch} x {keys} | {page or '–'} | {seconds * 1e6:.1f} | {rate / 1e9:.0f} | {share} | {config} |")


if __name__ == "__main__":
    main()
