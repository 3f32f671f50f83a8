#!/usr/bin/env python3
"""The end of each failed test's output, and then the list of failed tests as ctest has it: for logs of which only the end is kept.

    why-failed.py BUILD OUTPUT

BUILD is a build folder in which ctest has run, OUTPUT a file with what it printed."""
import pathlib
import re
import sys

LINES, WIDTH, TESTS = 5, 180, 4

temporary = pathlib.Path(sys.argv[1]) / "Testing" / "Temporary"
if not (temporary / "LastTestsFailed.log").exists():
    sys.exit("ctest failed, but no test of it did")
failed = [line.partition(":")[::2] for line in (temporary / "LastTestsFailed.log").read_text().splitlines()]
summary = pathlib.Path(sys.argv[2]).read_text(errors="replace")
log = (temporary / "LastTest.log").read_text(errors="replace")
print("\nWhat failed tests said last:")
for number, name in failed[:TESTS]:
    found = re.search(r'^\d+/\d+ Testing: ' + re.escape(name) + r'\n.*?^Output:\n-+\n(.*?)<end of output>', log, re.M | re.S)
    # Of CMake's errors the message counts, which its call stack would hide.
    lines = [line for line in (found[1] if found else "").splitlines()
             if line.strip() and not re.match(r"Call Stack|  \S+:\d+ \(\w+\)$", line)]
    print(f"  {name}:")
    for line in lines[-LINES:]:
        print("   ", line.strip()[:WIDTH])
print("\n" + summary[summary.find("The following tests FAILED:"):].rstrip())
