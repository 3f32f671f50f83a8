#!/usr/bin/env python3
"""What is hashed for the cache's keys against what the compiler has read, and what hashed code calls.

usage: hashes.py <ninja> <build folder> <source folder> <nm> <list of hashed files> <object or folder of objects>...

The objects generate kernels, or measure them. Every file of ours that one of them includes must be in the list, or an edit
of it would leave old kernels and verdicts in users' caches. So must be the source of every function of ours that an object
of a hashed source calls: a new source file is called from somewhere. Exit status 77: no dependencies are known, as in a build
without Ninja.
"""
import os
import subprocess
import sys

LIBRARIES = ("base/", "generator/", "measure/", "remote/", "runtime/", "templates/")  # not tests and examples, which call them


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


def sources_of(files, source, build):
    """Of an object the source files of ours, several where the build puts them together; none of what is generated."""
    return {file for file in files
            if file.endswith(".cpp") and file.startswith(source + os.sep) and not file.startswith(build + os.sep)}


def symbols(nm, build, objects):
    """Of each object the functions and variables that it defines, and those that it needs. Inline ones are in headers."""
    text = subprocess.run([nm, "-A", "-P", *objects], cwd=build, capture_output=True, text=True, check=True).stdout
    defined, needed = {}, {target: set() for target in objects}
    for line in text.splitlines():
        target, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        if kind in "TDBRG":
            defined[name] = target
        elif kind == "U":
            needed[target].add(name)
    return defined, needed


def called(defined, needed, sources, hashed):
    """Objects of sources that are not hashed whose functions those call that are: each with such a caller."""
    def is_hashed(target):
        return bool(sources[target]) and sources[target] <= hashed
    return {defined[name]: target for target, names in needed.items() if is_hashed(target)
            for name in names if name in defined and sources[defined[name]] and not is_hashed(defined[name])}


def main():
    ninja, build, source, nm, hashed_list = sys.argv[1:6]
    build, source = os.path.realpath(build), os.path.realpath(source)
    folders = sys.argv[6:]
    with open(hashed_list) as lines:
        hashed = {os.path.realpath(line.strip()) for line in lines if line.strip()}
    of = dependencies(ninja, build)
    for folder in folders:
        if not any(target.startswith(folder) for target in of):
            print(f"no object {folder} has dependencies: was it built by Ninja?")
            return 77
    found = missing(of, folders, source, build, hashed)
    for file, target in sorted(found.items()):
        print(f"{os.path.relpath(file, source)} is read for {target} and is not hashed")
    objects = [target for target in of if target.startswith(LIBRARIES) and os.path.exists(os.path.join(build, target))]
    defined, needed = symbols(nm, build, objects)
    sources = {target: sources_of(of[target], source, build) for target in objects}
    forgotten = called(defined, needed, sources, hashed)
    for target, caller in sorted(forgotten.items()):
        print(f"{target} is called by {caller} and its source is not hashed")
    # The checks themselves must be able to fail: without the first header that objects include, and without the first
    # source that others call, they do.
    read = {file for target, files in of.items() if target.startswith(tuple(folders)) for file in files}
    witness = min(file for file in hashed & read if file.endswith(".h"))
    assert witness in missing(of, folders, source, build, hashed - {witness})
    used = set().union(*needed.values())
    witness = min(target for name, target in defined.items() if name in used and sources[target] and sources[target] <= hashed)
    assert witness in called(defined, needed, sources, hashed - sources[witness])
    return 1 if found or forgotten else 0


sys.exit(main())
