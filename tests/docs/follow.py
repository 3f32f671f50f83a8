"""Follows a page as a new user would: follow.py PAGE DEMO FOLDER NAME=VALUE...

In an empty FOLDER, from the page's first block to its last: a fence that names a file (```cpp main.cpp) is written to it, the
lines of ```sh are run by one shell, which stops at the first failure, and ```text behind them is what they must have printed.
There `...` stands for anything, in a line or for whole ones between; other lines may stand between, too. Blocks of
```sh checkout need a checkout: their commands must be those of DEMO, the script that CI runs on a fresh system, or set what
the arguments set. NAME=VALUE goes to the environment."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from pages import Page


class Failure(Exception):
    pass


def steps(page):
    """(kind, block): kind is `file`, `run`, `output` or `checkout`. A block of another form is not for following."""
    previous = None
    for block in page.blocks:
        language, rest = (block.info + [""])[0], block.info[1:]
        if language == "sh":
            kind = "checkout" if rest == ["checkout"] else "run"
        elif language == "text" and not rest and previous in ("run", "output"):
            kind = "output"
        elif len(rest) == 1:
            kind = "file"
        else:
            raise Failure(f"line {block.line}: a block that nobody follows: {' '.join(block.info) or 'without a language'}")
        yield kind, block
        previous = kind


def pattern(line):
    return ".*".join(re.escape(re.sub(r"\s+", " ", part)) for part in line.strip().split("..."))


def check_output(block, printed):
    """Each line of the page is found in what was printed, in the same order."""
    lines, at = [re.sub(r"\s+", " ", line).strip() for line in printed.splitlines()], 0
    for expected in filter(str.strip, block.lines):
        while at < len(lines) and not re.fullmatch(pattern(expected), lines[at]):
            at += 1
        if at == len(lines):
            raise Failure(f"line {block.line}: the page shows a line that was not printed here: {expected.strip()}")
        at += 1


def check_checkout(block, demo, environment):
    for line in filter(str.strip, block.lines):
        name = re.fullmatch(r"export (\w+)=.*", line)
        if name and name[1] not in environment:
            raise Failure(f"line {block.line}: the test does not set {name[1]}")
        if not name and line.partition(" --prefix ")[0] not in demo:
            raise Failure(f"line {block.line}: scripts/demo.sh does not run: {line}")


def run(block, folder, environment):
    """What the block prints. As a user who does what the page says when the machine was too busy for a decision: once more."""
    print(*(f"$ {line}" for line in block.lines), sep="\n", flush=True)
    for _ in range(5):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=folder, env={**os.environ, **environment}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        print(done.stdout, flush=True)
        if "not locked: too much interference" not in done.stdout:
            break
    if done.returncode:
        raise Failure(f"line {block.line}: the commands failed with {done.returncode}")
    return done.stdout


def follow(text, demo, folder, environment):
    """The numbers of files, runs and outputs that were followed."""
    counts, printed = {"file": 0, "run": 0, "output": 0, "checkout": 0}, ""
    for kind, block in steps(Page(text)):
        counts[kind] += 1
        if kind == "file":
            name = block.info[1]
            if f"`{name}`" not in text:
                raise Failure(f"line {block.line}: the text does not say that this is {name}")
            (folder / name).write_text(block.text)
        elif kind == "run":
            printed = run(block, folder, environment)
        elif kind == "output":
            check_output(block, printed)
        else:
            check_checkout(block, demo, environment)
    return counts


def main():
    page, demo, folder = map(pathlib.Path, sys.argv[1:4])
    environment = dict(argument.split("=", 1) for argument in sys.argv[4:])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        counts = follow(page.read_text(), demo.read_text(), folder, environment)
    except Failure as failure:
        sys.exit(f"{page}: {failure}")
    if not all(counts.values()):
        sys.exit(f"{page}: nothing of one kind was followed: {counts}")
    print(f"{page}: followed", counts)


if __name__ == "__main__":
    main()
