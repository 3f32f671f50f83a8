"""Whether LLVM's backend kept copies to LDS, waits for them, barriers and reads of LDS as the IR has them.

The simulated device (`tests/amd_sim`) finds whether these are right in the IR, with their addresses. It does
not see what the backend makes of them."""
import re

from machine import functions
from waits import is_copy, waited

NONE = 63  # a wait for none


class Order:
    """What happens up to each barrier, and behind the last: copies, bytes read from LDS, and the least that
    vmcnt was waited for behind the last copy."""

    def __init__(self):
        self.spans = [[0, 0, NONE]]

    def copy(self):
        self.spans[-1][0] += 1
        self.spans[-1][2] = NONE

    def read(self, count):
        self.spans[-1][1] += count

    def wait(self, left):
        self.spans[-1][2] = min(self.spans[-1][2], left)

    def barrier(self):
        self.spans.append([0, 0, NONE])


SIZES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


def size_of(ir_type):
    match = re.fullmatch(r"(?:<(\d+) x )?(\w+)>?", ir_type)
    return int(match[1] or 1) * SIZES[match[2]]


def of_ir(text):
    order = Order()
    for line in text.splitlines():
        if re.search(r"call void @llvm\.amdgcn\.(global\.load\.lds|raw\.ptr\.buffer\.load\.lds)", line):
            order.copy()
        elif match := re.search(r"call void @llvm\.amdgcn\.s\.waitcnt\(i32 (-?\d+)\)", line):
            bits = int(match[1])
            order.wait(bits & 15 | (bits >> 14 & 3) << 4)
        elif "call void @llvm.amdgcn.s.barrier()" in line:
            order.barrier()
        elif match := re.search(r"= load (<[^>]+>|\w+), ptr addrspace\(3\)", line):
            order.read(size_of(match[1]))
    return order.spans


def of_assembly(body, want):
    """A block of one wave has no barriers in machine code. There each is where the next copy or read would be more
    than the IR has up to it."""
    order = Order()
    instructions = [x for x in body if not isinstance(x, str)]
    has_barriers = any(x.name == "s_barrier" for x in instructions)
    for instruction in instructions:
        match = re.match(r"ds_read(2)?(?:st64)?_[bu](\d+)", instruction.name)
        if (match or is_copy(instruction)) and not has_barriers:
            while len(order.spans) < len(want) and order.spans[-1][:2] == want[len(order.spans) - 1][:2]:
                order.barrier()
        if is_copy(instruction):
            order.copy()
        elif instruction.name == "s_barrier":
            order.barrier()
        elif match:
            order.read((2 if match[1] else 1) * int(match[2]) // 8)
        elif "vmcnt" in (wait := waited(instruction) or {}):
            order.wait(wait["vmcnt"])
    return order.spans


def kernel_of(ir):
    return ir[ir.index("@deepgen_kernel("):].split("\n}", 1)[0]


def wrong_order(ir, assembly):
    """A line for every fault of a kernel that copies to LDS. Waits may be for more than the IR's."""
    want = of_ir(kernel_of(ir))
    have = of_assembly(functions(assembly)["deepgen_kernel"], want)
    if len(want) != len(have):
        return [f"{len(have) - 1} barriers, and {len(want) - 1} in the IR"]
    found = []
    for number, (w, h) in enumerate(zip(want, have)):
        if w[:2] != h[:2] or h[2] > w[2]:
            found.append("up to barrier {}: {} copies, {} bytes read from LDS, vmcnt({}) waited for; "
                         "in the IR {}, {} and {}".format(number, *h, *w))
    return found
