#!/usr/bin/env python3
"""What is hashed for the cache's keys against what the compiler has read.

usage: hashes.py <ninja> <build folder> <source folder> <list of hashed files> <object folder>...

The objects under the folders generate kernels, or measure them. Every file of ours that one of them includes must be in the
list, or an edit of it would leave old kernels and verdicts in users' caches. Exit status 77: no dependencies are known, as
in a build without Ninja.
"""
import os
import subprocess
import sys


def dependencies(ninja, build):
    """The files that each object was compiled from, as Ninja has noted them."""
    text = subprocess.run([ninja, "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    of = {}
    target = None
    for line in text.splitlines():
        if line.startswith("    "):
            of[target].append(os.path.realpath(os.path.join(build, line.strip())))
        elif ": #deps" in line:
            target = line.split(": #deps")[0]
            of[target] = []
    return of


def missing(of, folders, source, build, hashed):
    """Files of ours that objects in the folders include and that are not hashed, each with one such object."""
    found = {}
    for target, files in of.items():
        if not any(target.startswith(folder) for folder in folders):
            continue
        for file in files:
            ours = file.startswith(source + os.sep) and not file.startswith(build + os.sep)
            if ours and file not in hashed:
                found.setdefault(file, target)
    return found


def main():
    ninja, build, source, hashed_list = sys.argv[1:5]
    build, source = os.path.realpath(build), os.path.realpath(source)
    folders = sys.argv[5:]
    with open(hashed_list) as lines:
        hashed = {os.path.realpath(line.strip()) for line in lines if line.strip()}
    of = dependencies(ninja, build)
    for folder in folders:
        if not any(target.startswith(folder) for target in of):
            print(f"no object under {folder} has dependencies: was it built by Ninja?")
            return 77
    found = missing(of, folders, source, build, hashed)
    for file, target in sorted(found.items()):
        print(f"{os.path.relpath(file, source)} is read for {target} and is not hashed")
    # The check itself must be able to fail: without the list's first header that objects include, it does.
    read = {file for target, files in of.items() if target.startswith(tuple(folders)) for file in files}
    witness = min(file for file in hashed & read if file.endswith(".h"))
    assert witness in missing(of, folders, source, build, hashed - {witness})
    return 1 if found else 0


sys.exit(main())
