"""type_names.py SOURCE: no two types of one name in one namespace, across all rooms.

Two such types in two libraries of one program are undefined behaviour without a diagnostic. Reads the headers that
clang-format has formatted, so that a declaration of a type at namespace level begins its line.
"""
import collections
import pathlib
import re
import sys

ROOM = re.compile(r"^\s*add_subdirectory\((?!tests)(\w+)\)", re.MULTILINE)  # as in arrows.py
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|union|enum(?: class)?)\s+(?:DEEPGEN_\w+ )?(\w+)(?: final)?"
                  r"(?: : [^;{]*)?(?: \{.*)?$")
ALIAS = re.compile(r"(?:template <.*> )?using (\w+) =")
NAMESPACE = re.compile(r"\s*(?:inline )?namespace ([\w: ()]*)\{")


def types_in(text):
    """Of one header: (namespace, name) of each type that it defines at namespace level."""
    inside, found = [], []
    for line in text.split("\n"):
        if match := NAMESPACE.match(line):
            # An inline namespace is transparent to those who look a name up.
            inside.append("" if line.lstrip().startswith("inline") else
                          match.group(1).replace(" ", "").replace("::inlineDEEPGEN_ABI_NAMESPACE", ""))
        elif line.startswith("}") and "// namespace" in line:
            inside.pop()
        elif match := TYPE.match(line) or ALIAS.match(line):
            found.append(("::".join(part for part in inside if part), match.group(1)))
    return found


def clashes(headers):
    places = collections.defaultdict(set)
    for path, text in headers.items():
        for name in types_in(text):
            places[name].add(path)
    return {name: sorted(where) for name, where in places.items() if len(where) > 1}, len(places)


def main():
    same = "namespace deepgen {\n\nstruct A {\n};\n\n} // namespace deepgen\n"
    assert clashes({"x.h": same, "y.h": same})[0] == {("deepgen", "A"): ["x.h", "y.h"]}
    assert not clashes({"x.h": same, "y.h": same.replace("deepgen", "other")})[0]
    source = pathlib.Path(sys.argv[1])
    rooms = ROOM.findall((source / "CMakeLists.txt").read_text())
    headers = {str(path.relative_to(source)): path.read_text()
               for room in rooms for path in sorted((source / room).rglob("*.h"))}
    found, count = clashes(headers)
    for (namespace, name), where in found.items():
        print(f"{namespace}::{name} is defined in {', '.join(where)}: rename all but one")
    print(f"{count} types of {len(headers)} headers of {' '.join(sorted(rooms))}")
    return 1 if found or count < 300 else 0


sys.exit(main())
