"""kept_ptxas_test.py KEPT_PTXAS: what is kept of a ptxas is given again for the same bytes alone, and nothing of one that fails.

The ptxas is a script that counts its runs; its code is its messages and the PTX.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = """#!/bin/sh
# %s
echo run >>"$COUNT"
[ "$1" = --version ] && { echo "V1.2.3"; exit 0; }
echo "ptxas info : Used 8 registers, $2, of $3" >&2
grep -q wrong "$3" && { echo "ptxas fatal" >&2; exit 255; }
grep -q killed "$3" && kill -9 $$
{ echo "code of $2"; cat "$3"; } >"$5"
"""


class Folder:
    def __init__(self, folder):
        self.ptxas, self.store, self.count = (pathlib.Path(folder, name) for name in ("ptxas", "store", "count"))
        self.input, self.output = (pathlib.Path(folder, name) for name in ("in.ptx", "out.cubin"))
        self.write_program("first")

    def write_program(self, comment):
        self.ptxas.unlink(missing_ok=True)
        self.ptxas.write_text(SCRIPT % comment)
        self.ptxas.chmod(0o755)

    def run(self, ptx, option="-O3", words=None):
        """Status, messages and code; how often ptxas has run for it."""
        self.input.write_text(ptx)
        self.output.write_text("old and longer than what comes " * 9)
        self.count.write_text("")
        done = subprocess.run([sys.argv[1]] + (words or ["-v", option, str(self.input), "-o", str(self.output)]),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {
                                  "DEEPGEN_PTXAS_KEPT": str(self.ptxas), "DEEPGEN_PTXAS_STORE": str(self.store), "COUNT": str(self.count)})
        return (done.returncode, done.stdout, self.output.read_text()), self.count.read_text().count("run")


def check(got, wanted, what):
    if got != wanted:
        sys.exit(f"{what}: {got}, not {wanted}")


def main(folder):
    f = Folder(folder)
    first, runs = f.run("ptx")
    check((runs, first[0], first[2].endswith("ptx"), "registers" in first[1]), (1, 0, True, True), "the first run")
    check(f.run("ptx"), (first, 0), "the same again")
    old, f.input, f.output = str(f.input), f.input.with_name("another.ptx"), f.output.with_name("another.cubin")
    check(f.run("ptx"), ((0, first[1].replace(old, str(f.input)), first[2]), 0), "the same by other names")
    first = f.run("ptx")[0]
    check(f.run("ptx 2")[1], 1, "other PTX")
    other, runs = f.run("ptx", "-O1")
    check((runs, other[2] != first[2]), (1, True), "another option")
    check(f.run("ptx", "-O1"), (other, 0), "the other option again")
    for path in f.store.glob("*.cubin"):
        path.write_bytes(path.read_bytes()[:-1])
    check(f.run("ptx"), (first, 1), "a damaged result")
    check(f.run("ptx"), (first, 0), "a mended result")
    f.write_program("second")
    check(f.run("ptx"), (first, 1), "another ptxas of the same length")
    f.write_program("first")
    check(f.run("ptx"), (first, 0), "the first ptxas again, at another time")
    for _ in range(2):
        bad, runs = f.run("wrong")
        check((bad[0], "fatal" in bad[1], runs), (255, True, 1), "a failure")
        bad, runs = f.run("killed")
        check((bad[0], runs), (-9, 1), "a killed ptxas")
        version, runs = f.run("ptx", words=["--version"])
        check((version[1], runs), ("V1.2.3\n", 1), "the version")


with tempfile.TemporaryDirectory() as name:
    main(name)
