"""What a wave waits for before it uses what it has loaded, from a kernel's assembly, along every path of it.

Operations of memory end later than they are issued. Counters tell how many have not ended: `vmcnt(n)` holds a
wave until at most n of those that it counts are under way. Operations of one kind end in the order in which
they were issued. So a wait for n covers an operation behind which at least n others of its kind were issued.
Scalar loads end in any order: only a wait for all of them covers one.

Documents disagree on what counts a copy from global memory to LDS by a pointer (`global_load_lds`):
  "vmcnt"    vmcnt alone, as LLVM has it since pull request 179305;
  "both"     lgkmcnt, too, in one order with LDS's operations, as LLVM 22 has it.
A kernel has to be right by both readings. In both, vmcnt tells that a copy has ended. What is refused:
  a register that is named while a load into it may be under way;
  a barrier while an operation of the wave in LDS may be: others read what it writes, or write what it reads;
  the kernel's end while a copy to LDS may be: LDS is another block's then.

The state says for each operation how many later ones of its kind there are at least, on any path.
"""
import re

from machine import Unknown, blocks, functions, registers

READINGS = ("vmcnt", "both")
FAR = 64  # more than any counter can count
MOST_LOADS = 63  # that vmcnt and loadcnt count: a wave that has as many under way issues no further one

# Of other units: they neither begin an operation of memory nor end one.
SILENT = (
    "v_", "s_nop", "s_add", "s_sub", "s_mul", "s_and", "s_or", "s_xor", "s_not", "s_mov", "s_cmov",
    "s_cmp", "s_lshl", "s_lshr", "s_ashr", "s_bf", "s_bit", "s_cselect", "s_min", "s_max", "s_abs",
    "s_sext", "s_ff", "s_fl", "s_clz", "s_ctz", "s_bcnt", "s_pack", "s_set", "s_branch",
    "s_cbranch", "s_sleep", "s_clause", "s_delay_alu", "s_inst_prefetch", "s_sendmsg", "s_brev",
    "s_wqm", "s_quadmask", "s_nand", "s_nor", "s_xnor", "s_fmac", "s_cvt", "s_getreg", "s_code_end",
    "s_trunc", "s_ceil", "s_floor", "s_rndne", "s_waitcnt_depctr", "s_wait_alu", "s_barrier",
    "s_endpgm", "s_movk", "s_addk", "s_mulk", "s_version", "s_denorm_mode", "s_round_mode",
    "s_setprio", "s_prefetch", "s_buffer_prefetch")
LDS_READS = ("ds_read", "ds_load", "ds_bpermute", "ds_permute", "ds_swizzle")
LDS_WRITES = ("ds_write", "ds_store")
# Counters, and the kinds of operations that each counts. gfx9 has vmcnt for stores, too.
COUNTERS = {
    "vmcnt": ("vm",), "lgkmcnt": ("lds", "scalar"), "vscnt": ("store",), "expcnt": (),
    "loadcnt": ("vm",), "dscnt": ("lds",), "kmcnt": ("scalar",), "storecnt": ("store",), "samplecnt": (),
    "bvhcnt": ()}
COPY, IN_LDS = "a copy to LDS", "an operation in LDS"


def waited(instruction):
    """{counter: n} of a wait; None where it is none."""
    name, operands = instruction.name, instruction.operands
    if name == "s_waitcnt":
        found = {counter: int(n) for counter, n in re.findall(r"(\w+)\((\d+)\)", operands)}
    elif name == "s_waitcnt_vscnt":
        found = {"vscnt": int(operands.split(",")[1], 0)}
    elif match := re.fullmatch(r"s_wait_(load|store)cnt_dscnt", name):
        found = {match[1] + "cnt": int(operands, 0) >> 8 & 63, "dscnt": int(operands, 0) & 63}
    elif match := re.fullmatch(r"s_wait_(\w+cnt)", name):
        found = {match[1]: int(operands, 0)}
    else:
        return None
    if not found or not set(found) <= set(COUNTERS):
        raise Unknown(f"a wait that the gate cannot read, {instruction}")
    return found


def is_copy(instruction):
    name = instruction.name
    return name.startswith("global_load_lds_") or (
        name.startswith(("global_load_", "buffer_load_")) and instruction.operands.endswith(" lds"))


class Machine:
    def __init__(self, arch, reading):
        self.old = not arch.startswith("gfx1")  # gfx9
        self.reading = reading

    def event(self, instruction):
        """(kinds that it counts as, registers and marks that it has under way); None: no operation of memory."""
        name = instruction.name
        if is_copy(instruction):
            both = self.reading == "both" and name.startswith("global_")
            return ("vm", "lds") if both else ("vm",), {(COPY, "vm")}
        if name.startswith(LDS_READS):
            return ("lds",), {(r, "lds") for r in instruction.first()} | {(IN_LDS, "lds")}
        if name.startswith(LDS_WRITES):
            return ("lds",), {(IN_LDS, "lds")}
        if re.match(r"(global|buffer|scratch)_load_", name):
            return ("vm",), {(r, "vm") for r in instruction.first()}
        if re.match(r"(global|buffer|scratch)_store_", name):
            return ("vm" if self.old else "store",), set()
        if re.match(r"s_(buffer_)?load_", name):
            return ("scalar",), {(r, "scalar") for r in instruction.first()}
        if name.startswith(SILENT) or waited(instruction) is not None:
            return None
        raise Unknown(f"an instruction that the gate does not know, {instruction}")

    def step(self, state, instruction, faults):
        """Changes the state, {(register or mark, kind): later operations of the kind}. faults: where to add what
        is wrong, or None."""
        event = self.event(instruction)
        counts, begun = event if event else ((), set())
        if faults is not None and state:
            self.look(state, instruction, begun, faults)
        wait = waited(instruction)
        if wait is not None:
            self.end(state, wait)
        if event is None:
            return
        for key in state:
            if key[1] in counts and key[1] != "scalar":
                state[key] = min(FAR, state[key] + 1)
        for key in [k for k, behind in state.items() if k[1] == "vm" and behind >= MOST_LOADS]:
            del state[key]
        for key in begun:
            state[key] = 0

    def end(self, state, wait):
        for counter, left in wait.items():
            for key in [k for k in state if k[1] in COUNTERS[counter]]:
                if left <= state[key] if key[1] != "scalar" else left == 0:
                    del state[key]

    def look(self, state, instruction, begun, faults):
        behind_first = registers(instruction.operands.partition(",")[2])
        for what, kind in state:
            # A load into what an earlier one of its kind loads arrives later; scalar ones come in any order.
            again = (what, kind) in begun and kind != "scalar" and what not in behind_first
            if what in instruction.named and not again:
                faults.append(f"{what} may not have arrived ({kind}), {instruction}")
            if what == IN_LDS and instruction.name in ("s_barrier", "s_barrier_signal"):
                faults.append(f"a barrier while {what} may be under way, {instruction}")
            if what == COPY and instruction.name == "s_endpgm":
                faults.append(f"the end while {what} may be under way, {instruction}")


def join(into, other):
    """The worse of both; whether `into` changed."""
    changed = False
    for key, behind in other.items():
        if behind < into.get(key, FAR + 1):
            into[key], changed = behind, True
    return changed


def faults_of(body, arch, reading):
    """Of one function's body."""
    machine, graph, found = Machine(arch, reading), blocks(body), []
    starts = [None] * len(graph)
    starts[0], todo = {}, [0]
    while todo:
        number = todo.pop()
        state = dict(starts[number])
        for instruction in graph[number].instructions:
            machine.step(state, instruction, None)
        for next_one in graph[number].follows:
            known = starts[next_one] is not None
            if not known:
                starts[next_one] = {}
            if join(starts[next_one], state) or not known:
                todo.append(next_one)
    for number, block in enumerate(graph):
        if starts[number] is None:
            continue
        state = dict(starts[number])
        for instruction in block.instructions:
            machine.step(state, instruction, found)
    return found


def wrong_waits(assembly, arch):
    """A line for every fault of a kernel file's assembly."""
    found = []
    for name, body in functions(assembly).items():
        for reading in READINGS:
            faults = faults_of(body, arch, reading)
            found += [f"{name}, by the reading '{reading}': {fault}" for fault in faults]
    return found
