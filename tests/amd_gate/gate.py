"""What can be said about AMD kernels without a GPU: registers, scratch memory, widths of accesses, and how much of the main
loop's issue slots the matrix instructions take, by llvm-mca (one wave, fixed latencies: a ratio, no speed). LLVM does not
model how long those of RDNA take: there by the rates that AMD has published, next to one cycle for all else. Dot products of
simt count as one of the loop's instructions each.

usage: gate.py DEEPGEN LLVM_MCA"""
import re
import subprocess
import sys

MFMA = "mfma wide=1 size={size} bm={bm} bn={bn} bk={bk} waves_m={wm} waves_n={wn} direct={direct} buffer={buffer} stages={stages} pingpong={pingpong} blocks={blocks} splits=1 group=8 xcds=1"


def mfma(bm, bn, bk, wm, wn, size=32, stages=1, blocks=1, direct=0, buffer=0, pingpong=0):
    return MFMA.format(size=size, bm=bm, bn=bn, bk=bk, wm=wm, wn=wn, stages=stages, blocks=blocks, direct=direct, buffer=buffer,
                       pingpong=pingpong)


def problem(a, d, acc, layout, align):
    return f"gemm m=4096 n=4096 k=4096 batch=1 a={a} b={a} d={d} acc={acc} layout={layout} epilogue=bias+gelu align={align}"


def wmma(bm, bn, bk, wm, wn, stages=1, buffer=0):
    return mfma(bm, bn, bk, wm, wn, size=16, stages=stages, buffer=buffer).replace("mfma", "wmma")


F16 = problem("f16", "f16", "f32", "nt", 2)
BF16 = problem("bf16", "bf16", "f32", "nt", 2)
F32 = problem("f32", "f32", "f32", "nt", 4)
I8 = problem("i8", "f32", "i32", "nt", 1)
I8_SUMS = problem("i8", "i32", "i32", "nt", 1).replace("bias+gelu", "none")
VALU = "simt wide=1 bm=128 bn=128 bk=8 tm=8 tn=8 stages=2 blocks=1 splits=1 group=4"

SOFTMAX = "rows m=4096 n=4096 x=bf16 d=bf16 kind=softmax options=none"
NORM = "rows m=4096 n=4096 x=bf16 d=bf16 kind=layer_norm options=scale+bias"
RMS = "rows m=4096 n=8192 x=bf16 d=e4m3 kind=rms_norm options=scale"
KEPT = "gpu_rows vec=16 lanes=256 rows=1 hold=1 unroll=1 sets=1 hint=0 resident=0"

# Registers of a SIMD for each lane, what a wave's are a multiple of, most waves, LDS of a compute unit (on RDNA, of two).
CHIPS = {"gfx906": (256, 4, 10, 64), "gfx90a": (512, 8, 8, 64), "gfx942": (512, 8, 8, 64), "gfx950": (512, 8, 8, 160),
         "gfx1100": (1536, 24, 16, 128), "gfx1201": (1536, 24, 16, 128)}


def waves(arch, registers, lds, threads):
    """Of a SIMD, at a time."""
    all_registers, granule, most, all_lds = CHIPS[arch]
    of_block = threads / (32 if arch.startswith("gfx1") else 64) / 4
    by_registers = all_registers // (-(-registers // granule) * granule)
    blocks = min(int(by_registers / of_block), all_lds * 1024 // max(lds, 1))
    return min(blocks * of_block, most)


# arch, problem, config, least share of matrix instructions or dot products, most vector registers, least
# waves of a SIMD if not 2
CASES = [
    ("gfx942", F16, mfma(256, 256, 64, 2, 4), 0.90, 256),
    ("gfx942", BF16, mfma(256, 256, 64, 2, 4, stages=2), 0.90, 256),
    ("gfx942", F16, mfma(128, 128, 64, 2, 2), 0.85, 256),
    ("gfx942", BF16, mfma(128, 128, 64, 2, 2), 0.85, 256),
    ("gfx90a", F16, mfma(256, 256, 64, 2, 4), 0.90, 256),
    ("gfx90a", F16, mfma(128, 128, 64, 2, 2), 0.90, 256),
    ("gfx950", F16, mfma(256, 256, 64, 2, 4, stages=2), 0.80, 256),
    ("gfx950", F16, mfma(256, 256, 128, 2, 4, stages=2, direct=1), 0.90, 256),
    ("gfx950", BF16, mfma(256, 256, 64, 2, 4, stages=3, direct=1), 0.85, 256),
    # Through buffers; in three stages through registers; by copies of 4 bytes.
    ("gfx942", F16, mfma(256, 256, 64, 2, 4, stages=2, buffer=1), 0.90, 256),
    ("gfx942", BF16, mfma(128, 128, 64, 2, 2, stages=2, buffer=1), 0.85, 256),
    ("gfx90a", F16, mfma(128, 128, 64, 2, 2, stages=3, buffer=1), 0.90, 256, 1),
    ("gfx942", F16, mfma(128, 128, 64, 2, 2, stages=3, buffer=1), 0.75, 256, 1),
    ("gfx950", BF16, mfma(256, 256, 64, 2, 4, stages=3, buffer=1), 0.80, 256),
    ("gfx950", F16, mfma(128, 128, 128, 2, 2, stages=3, direct=1, buffer=1), 0.85, 256, 1),
    ("gfx942", F16, mfma(256, 256, 64, 2, 4, stages=2, direct=1, buffer=1), 0.90, 256),
    ("gfx90a", F16, mfma(128, 128, 64, 2, 2, stages=2, direct=1, buffer=1), 0.85, 256),
    ("gfx942", F16, mfma(256, 256, 64, 2, 4, stages=2, direct=1), 0.90, 256),
    # In turns: more than half of one wave's slots, so that the other wave's rest fits in between.
    ("gfx942", F16, mfma(256, 256, 64, 2, 4, stages=2, pingpong=1), 0.60, 256),
    ("gfx90a", BF16, mfma(256, 256, 64, 2, 4, stages=2, pingpong=1), 0.60, 256),
    ("gfx950", F16, mfma(256, 256, 128, 2, 4, stages=2, direct=1, pingpong=1), 0.55, 256),
    ("gfx942", F16, mfma(256, 256, 64, 2, 4, stages=2, buffer=1, pingpong=1), 0.80, 256),
    ("gfx906", F32, VALU, 0, 128),
    ("gfx906", F16, VALU, 0.80, 128),
    ("gfx906", I8_SUMS, VALU, 0.80, 128),
    ("gfx942", F16, VALU, 0.80, 256),
    ("gfx950", BF16, VALU, 0.80, 256),
    ("gfx1100", F16, VALU, 0.70, 192),  # two in one instruction
    ("gfx1100", BF16, VALU, 0.80, 192),
    ("gfx1201", F16, VALU, 0.80, 192),
    ("gfx1201", I8_SUMS, VALU, 0.80, 192),
    ("gfx1100", F16, wmma(128, 128, 64, 2, 4), 0.85, 256),
    ("gfx1100", BF16, wmma(128, 64, 64, 2, 2, stages=2), 0.80, 256),
    ("gfx1100", I8, wmma(128, 128, 64, 2, 4), 0.85, 256),
    ("gfx1100", F16, wmma(128, 128, 64, 2, 4, buffer=1), 0.85, 256),
    ("gfx1201", F16, wmma(128, 128, 64, 2, 4), 0.75, 192),
    ("gfx1201", F16, wmma(128, 128, 64, 2, 4, stages=2, buffer=1), 0.75, 192),
    ("gfx1201", BF16, wmma(256, 256, 64, 4, 4), 0.80, 256),
    ("gfx1201", I8, wmma(128, 128, 64, 2, 4), 0.75, 192),
]


# Rows: arch, problem, config, loads of a thread that must be under way together, most vector registers, least waves of a SIMD.
# Of the four loads of RMS on RDNA, LLVM 22 puts the first products behind two.
ROWS = [(arch, key, KEPT, loads, registers, 5) for arch in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
        for key, loads, registers in ((SOFTMAX, 2, 64), (NORM, 2, 64), (RMS, 2 if arch.startswith("gfx1") else 4, 96))]


def run(*words, text=None):
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=120)
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stderr}")
    return done.stdout


def main_loop(assembly):
    """The lines of the loop that has most products."""
    lines = assembly.splitlines()
    at = {line[:-1]: i for i, line in enumerate(lines) if re.fullmatch(r"\.LBB\w+:", line)}
    best = []
    for i, line in enumerate(lines):
        branch = re.match(r"\s+s_c?branch\w*\s+(\.LBB\w+)", line)
        if not branch or at.get(branch[1], i) >= i:
            continue
        body = [x for x in lines[at[branch[1]] + 1:i] if re.match(r"\s+[a-z]\w+", x)]
        if products(body) > products(best):
            best = body
    return best


def products(lines):
    return sum(bool(re.match(r"\s+v_(dual_)?(mfma|wmma|fma|dot|pk_fma)", x)) for x in lines)


# Cycles of one instruction on a SIMD, by type of A: 512 operations a cycle and compute unit on RDNA 3, of RDNA 4 twice that,
# and four times that for 8 bits.
WMMA_CYCLES = {"gfx1100": {"f16": 32, "bf16": 32, "iu8": 32}, "gfx1201": {"f16": 16, "bf16": 16, "iu8": 8}}


def wmma_share(arch, loop):
    matrix = [m[1] for x in loop if (m := re.match(r"\s+v_wmma_\w+_16x16x16_(\w+)", x))]
    busy = sum(WMMA_CYCLES[arch][x] for x in matrix)
    return busy / (busy + len(loop) - len(matrix))


# To LDS; gfx90a's spelling differs.
POINTER_COPY = r"global_load_(lds_)?dword(?P<wide>x4)? (?P<pointer>v\[[0-9:]+\]), off(?(1)| lds)"
COPY = r"\s+(global_load_lds_dword|(global|buffer)_load_dword\w* .* lds)"


def matrix_share(mca, arch, loop):
    dots = sum(bool(re.match(r"\s+v_(dual_)?dot[24]", x)) for x in loop)
    if dots:  # one issue slot each, as all else
        return dots / len(loop)
    if arch in WMMA_CYCLES:
        return wmma_share(arch, loop)
    iterations = 50
    # With copies to LDS by pointers, which write no register, llvm-mca may not end. A store has the same operands.
    def store(m):
        return f"global_store_dword{m['wide'] or ''} {m['pointer']}, {'v[252:255]' if m['wide'] else 'v255'}, off"

    text = run(mca, "-mtriple=amdgcn", f"-mcpu={arch}", f"-iterations={iterations}", text="\n".join(
        re.sub(POINTER_COPY, store, x) for x in loop if not re.match(r"\s+s_c?branch", x)))
    cycles = int(re.search(r"Total Cycles:\s+(\d+)", text)[1])
    names = re.findall(r"^\[(\d+)\]\s+- (\w+)", text, re.M)
    pressure = re.search(r"Resource pressure per iteration:\n.*\n(.*)", text)[1].split()
    busy = float(dict(zip((n for _, n in names), pressure))["HWXDL"])
    return busy * iterations / cycles


def wrong_waits(config, loop):
    """Of tiles that are copied to LDS directly, `stages` - 2 stay under way at every barrier; LLVM must not wait for more."""
    if "direct=1" not in config:
        return []
    copies = sum(bool(re.match(COPY, x)) for x in loop)
    stages = int(re.search(r"stages=(\d+)", config)[1])
    counts = [int(m[1]) for x in loop if (m := re.search(r"s_waitcnt.*vmcnt\((\d+)\)", x))]
    right = (stages - 2) * copies
    return [] if counts == [right] else [f"waits for copies in the main loop: vmcnt {counts}, not one of {right}"]


def compiled(deepgen, arch, key, config, most_registers, least_waves):
    """The assembly, and what is wrong with what it takes."""
    assembly = run(deepgen, "dump", "--arch", arch, "--stage", "asm", "--problem", key, "--config", config)
    wrong = []
    legal = run(deepgen, "space", "explain", "--arch", arch, "--problem", key, "--config", config)
    if legal.startswith("illegal"):
        wrong.append(legal.strip())

    def number(name):
        return max(map(int, re.findall(rf"\.{name}:\s+(\d+)", assembly)))

    if number("vgpr_count") > most_registers:
        wrong.append(f"{number('vgpr_count')} vector registers, more than {most_registers}")
    occupancy = waves(arch, number("vgpr_count"), number("group_segment_fixed_size"), number("max_flat_workgroup_size"))
    if occupancy < least_waves:
        wrong.append(f"{occupancy} waves of a SIMD, less than {least_waves}")
    for name in ("private_segment_fixed_size", "vgpr_spill_count", "sgpr_spill_count"):
        if number(name):
            wrong.append(f"{name} is {number(name)}")
    return assembly, wrong


def check_rows(deepgen, arch, key, config, loads, most_registers, least_waves):
    """Rows that stay in registers: as many loads as the row needs, all of them under way before the first is waited for."""
    assembly, wrong = compiled(deepgen, arch, key, config, most_registers, least_waves)
    words = [line.split() for line in assembly.splitlines() if re.match(r"\s+[a-z]\w+", line)]
    names = [line[0] for line in words]
    wide = [i for i, name in enumerate(names) if re.fullmatch(r"global_load_(dwordx4|b128)", name)]
    if len(wide) < loads:
        wrong.append(f"{len(wide)} loads of 16 bytes, not {loads}")
        return wrong
    # Before the last of the row's loads none is waited for: but for scalar ones, of the arguments.
    early = [" ".join(words[i]) for i in range(wide[0], wide[loads - 1])
             if names[i] == "s_wait_loadcnt" or (names[i] == "s_waitcnt" and "vmcnt" in " ".join(words[i]))]
    wrong += [f"among the row's loads: {x}" for x in early]
    narrow = [name for name in names if re.match(r"(global|buffer|flat)_load_", name) and not re.search(r"(dwordx4|b128)$", name)]
    wrong += [f"not as wide as can be: {x}" for x in narrow]
    return wrong


def check(deepgen, mca, arch, key, config, least_share, most_registers, least_waves=2):
    assembly, wrong = compiled(deepgen, arch, key, config, most_registers, least_waves)
    loop = main_loop(assembly)
    if not products(loop):
        wrong.append("no main loop")
        return wrong, 0
    for line in loop:
        word = line.split()[0]
        if re.match(r"scratch_|v_accvgpr|v_readfirstlane|buffer_(gl|wb)", word):
            wrong.append(f"in the main loop: {line.strip()}")
        wide = ("dword" if arch != "gfx950" else "dwordx4",) if re.match(COPY, line) else ("dwordx4", "b128")
        if re.match(r"(global|buffer)_load_", word) and not word.endswith(wide):
            wrong.append(f"in the main loop, not as wide as can be: {line.strip()}")
        if ("buffer=1" in config) != word.startswith("buffer_load") and re.match(r"(global|buffer)_load_", word):
            wrong.append(f"in the main loop, another kind of load: {line.strip()}")
        if re.match(r"ds_(read|load)", word) and word not in ("ds_read_b128", "ds_load_b128"):
            wrong.append(f"in the main loop, narrower than 16 bytes: {line.strip()}")
    wrong += wrong_waits(config, loop)
    share = matrix_share(mca, arch, loop) if least_share else 0
    if share < least_share:
        wrong.append(f"{share:.2f} of the main loop are matrix instructions or dot products, less than {least_share:.2f}")
    return wrong, share


def main():
    deepgen, mca = sys.argv[1:]
    failed = False
    for case in CASES:
        wrong, share = check(deepgen, mca, *case)
        print(f"{case[0]} {case[2]}\n  {share:.2f} of the main loop are matrix instructions or dot products", *wrong, sep="\n  ")
        failed = failed or bool(wrong)
    for case in ROWS:
        wrong = check_rows(deepgen, *case)
        print(f"{case[0]} {case[1]}\n  {case[2]}", *wrong, sep="\n  ")
        failed = failed or bool(wrong)
    sys.exit(failed)


main()
