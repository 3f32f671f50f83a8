"""How programs, archives and objects of x86-64 are hardened, as readelf and objdump see it.

  hardening_test.py READELF OBJDUMP (program|runtime|library) FILE...

A program is ours: position-independent, full RELRO, no executable stack, checked stacks and copies. The runtime is an archive,
each object of which has landing pads and shadow stacks. A library is a generated one, of which also each kernel begins with
endbr64."""
import re
import subprocess
import sys

readelf, objdump, kind, *files = sys.argv[1:]


def told(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={"LC_ALL": "C"}).stdout


def check(good, file, what):
    if not good:
        sys.exit(f"{file}: {what}")


def check_program(file):
    check(re.search(r"Type:\s+DYN", told(readelf, "-hW", file)), file, "its addresses are fixed (no PIE)")
    dynamic = told(readelf, "-dW", file)
    check(re.search(r"FLAGS_1\)\s.*\bNOW\b.*\bPIE\b", dynamic), file, "no BIND_NOW or no PIE")
    segments = told(readelf, "-lW", file)
    check("GNU_RELRO" in segments, file, "no RELRO")
    check(re.search(r"GNU_STACK.* RW ", segments), file, "an executable stack")
    check(not re.search(r"LOAD.* RWE ", segments), file, "memory that can be written and executed")
    symbols = told(readelf, "-sW", "--dyn-syms", file)
    check("__stack_chk_fail" in symbols, file, "no stack protector")
    checked = set(re.findall(r"\b__(\w+)_chk\b", symbols))
    check(checked & {"memcpy", "memset", "snprintf", "vsnprintf", "read", "pread"}, file, "no _FORTIFY_SOURCE")


def check_objects(file):
    notes = re.split(r"^File: ", told(readelf, "-nW", file), flags=re.M)
    members = notes[1:] if len(notes) > 1 else notes
    check(members, file, "no objects")
    for member in members:
        check(re.search(r"x86 feature:.*IBT.*SHSTK", member), file, "no IBT and SHSTK: " + member.strip()[:200])


def check_library(file):
    check_objects(file)
    code = told(objdump, "-d", "--no-show-raw-insn", file)
    kernels = re.findall(r"<(deepgen_\w+_\d+)>:\n +\w+:\t(\w+)", code)
    check(kernels, file, "no kernels")
    for name, first in kernels:
        check(first == "endbr64", file, f"{name} begins with {first}, not endbr64")
    # An image has no landing pads of its own.
    kernel_code = re.findall(r"<deepgen_\w+_\d+>:\n((?: .*\n)+)", code)
    for text in kernel_code:
        jump = re.search(r"\t(jmp|call) +\*.*", text)
        check(not jump, file, f"an indirect jump in a kernel: {jump and jump.group()}")


for file in files:
    if kind == "program":
        check_program(file)
    elif kind == "runtime":
        check_objects(file)
        check("__stack_chk_fail" in told(readelf, "-sW", file), file, "no stack protector")
    else:
        check_library(file)
