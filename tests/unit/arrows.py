"""arrows.py SOURCE: who may include whom, as the table of folders in CONTRIBUTING.md says.

The table is read from the page, so that page and test cannot differ. A folder may include itself and the folders of its
row's last column, all of which stand above it; `base/` is all folders of base. Every folder of sources has a row, no row names
a folder that its sources do not use, and no folder has more files than somebody can take in.
"""
import collections
import pathlib
import re
import sys

ROOM = re.compile(r"^\s*add_subdirectory\((?!tests)(\w+)\)", re.MULTILINE)  # in the CMakeLists.txt at the top
SUFFIXES = (".h", ".cpp", ".in", ".cu")
MOST = 28  # files in a folder, the headers of pairs too; about 25 are what is wanted
ROW = re.compile(r"\| `([\w/]+)` \|[^|]*\|([^|]*)\|$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"\n]+)"|<(deepgen/[^>\n]+)>)', re.MULTILINE)


def rows_of(page):
    """{folder: the folders that its row names}, in the order of the table."""
    return {match[1]: re.findall(r"`([^`]+)`", match[2]) for line in page.split("\n") if (match := ROW.match(line))}


def target(path, name, files):
    """The file that `path` includes as `name`; None for what is not ours, or is made by the build."""
    rooms = {file.partition("/")[0] for file in files}
    parts = []
    for part in (pathlib.PurePosixPath(path).parent / name).parts:
        parts = parts[:-1] if part == ".." else parts + [part]
    beside = "/".join(parts)
    if beside in files:
        return beside
    if name.startswith("deepgen/"):
        return "runtime/include/" + name
    return name if name.partition("/")[0] in rooms and not name.endswith(".inc") else None


def complaints(rows, files):
    """Of a table and {path: text} of all sources."""
    above, used, said = {}, collections.defaultdict(set), []
    for folder, names in rows.items():
        for name in names:
            if not any(name == row or name.endswith("/") and row.startswith(name) for row in above):
                said.append(f"the row of {folder} lets it include {name}, which has no row above it")
        above[folder] = {row for row in above for name in names if name == row or name.endswith("/") and row.startswith(name)}
    count = collections.Counter(path.rpartition("/")[0] for path in files)
    for folder in sorted(count):
        if folder not in above:
            said.append(f"{folder} has sources and no row")
        if count[folder] > MOST:
            said.append(f"{folder} has {count[folder]} files, more than {MOST}: split it by what they are for")
    said += [f"{folder} has a row and no sources" for folder in above if not count[folder]]
    for path, text in files.items():
        folder = path.rpartition("/")[0]
        for match in INCLUDE.finditer(text):
            found = target(path, match[1] or match[2], files)
            of = found and found.rpartition("/")[0]
            if found and found not in files:
                said.append(f"{path} includes {found}, which is not there")
            elif found and of != folder:
                used[folder].add(of)
                if of not in above.get(folder, ()):
                    said.append(f"{path} includes {found}: {folder} may include {' '.join(rows.get(folder, [])) or 'nothing'}")
    for folder, names in rows.items():
        for name in names:
            if name not in used[folder] and not name.endswith("/"):
                said.append(f"the row of {folder} lets it include {name}, and no source does")
    return said


def check_itself():
    """A table and sources that agree, and with each change one complaint."""
    page = "| `base/a` | x | |\n| `base/b` | x | `base/a` |\n| `measure` | x | `base/` |\n"
    files = {"base/a/x.h": "", "base/b/x.h": '#include "base/a/x.h"\n#include "base/a/x_hash.inc"\n',
             "measure/y.cpp": '#include "base/b/x.h"\n#include <vector>\n'}

    def one(page=page, **change):
        said = complaints(rows_of(page), files | {path.replace("__", "/").replace("_", "."): text for path, text in change.items()})
        return said[0] if len(said) == 1 else said
    assert one() == []
    assert one(base__a__z_cpp='#include "base/b/x.h"\n') == "base/a/z.cpp includes base/b/x.h: base/a may include nothing"
    assert one(base__a__z_cpp='#include "../b/x.h"\n') == "base/a/z.cpp includes base/b/x.h: base/a may include nothing"
    assert one(measure__z_cpp='#include "base/b/gone.h"\n') == "measure/z.cpp includes base/b/gone.h, which is not there"
    assert one(measure__c__z_cpp="") == "measure/c has sources and no row"
    assert one(**{f"measure__z{i}_cpp": "" for i in range(MOST)}).startswith(f"measure has {MOST + 1} files")
    assert one(page.replace("x | |", "x | `base/b` |"))[0].endswith("base/b, which has no row above it")
    assert one(page + "| `measure/c` | x | |\n") == "measure/c has a row and no sources"
    assert one(base__b__x_h="") == "the row of base/b lets it include base/a, and no source does"


def main():
    check_itself()
    source = pathlib.Path(sys.argv[1])
    rooms = ROOM.findall((source / "CMakeLists.txt").read_text())
    files = {path.relative_to(source).as_posix(): path.read_text()
             for room in rooms for path in sorted((source / room).rglob("*")) if path.suffix in SUFFIXES}
    rows = rows_of((source / "CONTRIBUTING.md").read_text())
    said = complaints(rows, files)
    for line in said:
        print(line)
    if said:
        print("The table is in CONTRIBUTING.md. Put code where it may include what it needs; a new arrow is the last resort.")
    print(f"{len(files)} sources in {len(rows)} folders of {' '.join(sorted(rooms))}")
    return 1 if said or len(rows) < 30 or len(files) < 350 else 0


sys.exit(main())
