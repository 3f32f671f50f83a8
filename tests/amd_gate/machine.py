"""Assembly of AMD kernels as LLVM prints it: instructions, the registers that they name, and basic blocks."""
import re
from dataclasses import dataclass, field

REGISTER = re.compile(r"\b([vsa])(?:(\d+)\b|\[(\d+):(\d+)\])|\b(vcc_lo|vcc_hi|vcc)\b")


class Unknown(Exception):
    """An instruction that the gate does not know: somebody has to tell it what that one does."""


def registers(text):
    found = set()
    for kind, one, first, last, vcc in REGISTER.findall(text):
        if vcc:
            found |= {"vcc_lo", "vcc_hi"} if vcc == "vcc" else {vcc}
        else:
            found |= {f"{kind}{i}" for i in range(int(one or first), int(one or last) + 1)}
    return found


@dataclass
class Instruction:
    line: int  # from 1 on
    name: str
    operands: str
    named: set = field(default_factory=set)

    def __post_init__(self):
        self.named = registers(self.operands)
        if self.name.endswith(("vccz", "vccnz")) or self.name.startswith("v_div_fmas"):
            self.named |= {"vcc_lo", "vcc_hi"}

    def first(self):
        """Registers of the first operand."""
        return registers(self.operands.split(",", 1)[0])

    def __str__(self):
        return f"line {self.line}: {self.name} {self.operands}"


@dataclass
class Block:
    instructions: list = field(default_factory=list)
    follows: list = field(default_factory=list)  # numbers of blocks


def instruction_of(line, number):
    words = line.split(";", 1)[0].split(None, 1)
    if not words or words[0].startswith(".") or words[0].endswith(":"):
        return None
    return Instruction(number, words[0], words[1].strip() if len(words) > 1 else "")


def functions(assembly):
    """{name: instructions and labels in order}, a label as its text."""
    found, body = {}, None
    names = set(re.findall(r"^\s*\.type\s+(\w+),@function", assembly, re.M))
    for number, line in enumerate(assembly.splitlines(), 1):
        if (match := re.match(r"(\w+):", line)) and match[1] in names:
            body = found.setdefault(match[1], [])
        elif line.startswith(".Lfunc_end"):
            body = None
        elif body is None:
            continue
        elif match := re.match(r"(\.LBB\w+):", line):
            body.append(match[1])
        elif instruction := instruction_of(line, number):
            body.append(instruction)
    if "deepgen_kernel" not in found or not all(found.values()):
        raise Unknown(f"the assembly has no kernel, or an empty one: {sorted(found)}")
    return found


ENDS = ("s_branch", "s_cbranch", "s_endpgm")
NOT_FOLLOWED = ("s_setpc", "s_swappc", "s_call", "s_cbranch_g", "s_cbranch_i", "s_cbranch_join")


def blocks(body):
    """The function's basic blocks; the first is its entry."""
    out, labels, targets = [Block()], {}, {}
    for item in body:
        last = out[-1].instructions
        if isinstance(item, str) or (last and last[-1].name.startswith(ENDS)):
            out.append(Block())
        if isinstance(item, str):
            labels[item] = len(out) - 1
            continue
        if item.name.startswith(NOT_FOLLOWED):
            raise Unknown(f"a jump that the gate does not follow, {item}")
        out[-1].instructions.append(item)
        if item.name.startswith(("s_branch", "s_cbranch")):
            targets[len(out) - 1] = item.operands
    for i, block in enumerate(out):
        last = block.instructions[-1].name if block.instructions else ""
        if i in targets:
            block.follows.append(labels[targets[i]])
        if not last.startswith(("s_branch", "s_endpgm")) and i + 1 < len(out):
            block.follows.append(i + 1)
    return out
