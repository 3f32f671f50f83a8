"""function_names.py SOURCE OBJECTS CXX [DWARFDUMP]: no two functions of one name and signature in one namespace, across all rooms.

Two such functions in one program are undefined behaviour without a diagnostic where one of them is inline: the linker
keeps either, and inlining hides that. OBJECTS lists `target object` a line. Of clang's objects DWARFDUMP, llvm's, tells the name and
the place of every function that is called, inlined or not (-fdebug-info-for-profiling). Beside each object of gcc lies what its
-fstack-usage says: the place and the signature of every function that the object has. Without optimisation that is every
inline function that is called. Sources of the rooms are one program; those of a test are one with them, and not with other tests.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LINE = re.compile(r"(.+?):(\d+):\d+:(.*)\t\d+\t[\w,]+$")
LEAST = 2000  # functions: fewer, and something was not read


def signature(text):
    """Without the type of the result, by which functions do not differ; None for what other objects cannot see."""
    if "{anonymous}" in text or "<lambda" in text:
        return None
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        if letter == "(" and depth == 0 and not text.endswith("operator", 0, at):
            break
        depth += {"<": 1, ">": -1}.get(letter, 0) if "operator" not in text[begin:at] else 0
        if letter == " " and depth == 0 and "operator" not in text[begin:at]:
            begin = at + 1
    name = text[begin:].lstrip("*&")
    return name if name.startswith("deepgen::") else None


class Sources:
    """Paths as a compiler has written them, in whichever checkout it ran: those of this one."""

    def __init__(self, root):
        self.root, self.known = root, {}

    def __getitem__(self, path):
        if path not in self.known:
            parts = pathlib.PurePosixPath(os.path.normpath(path)).parts
            rest = ["/".join(parts[at:]) for at in range(len(parts))]
            self.known[path] = next((r for r in rest[1:] if r.count("/") and (self.root / r).is_file()), path)
        return self.known[path]


def functions_of(text, sources):
    """Of what -fstack-usage wrote: {signature: place}."""
    found = {}
    for line in text.splitlines():
        match = None if line.startswith("/usr/") else LINE.match(line)  # templates of libraries are theirs
        name = match and signature(match[3])
        if name:
            found[name] = f"{sources[match[1]]}:{match[2]}"
    return found


# Of the namespace deepgen, and none of what other objects cannot see: unnamed namespaces, lambdas, what is static.
MANGLED = re.compile(r"_ZNK?R?O?7deepgen(?!.*(_GLOBAL__N_|Ul|\$_|_block_invoke))(?!(\d+[A-Za-z_]\w*?)?L\d)")
SUBPROGRAM = re.compile(r'DW_AT_linkage_name\s+\("([^"]+)"\)\s+DW_AT_name\s+\(.*\)\s+DW_AT_decl_file\s+\("([^"]+)"\)\s+DW_AT_decl_line\s+\((\d+)\)')


def functions_of_object(path, dwarfdump, sources):
    """Of an object of clang: {mangled name: place}; None where it has no such information."""
    text = subprocess.run([dwarfdump, "--debug-info", "-r", "1", path], stdout=subprocess.PIPE, text=True, errors="replace", check=True).stdout
    if "DW_TAG_compile_unit" not in text:
        # clang says nothing of a source that defines nothing, such as one of static_asserts alone.
        nm = [pathlib.Path(dwarfdump).with_name("llvm-nm"), "--defined-only", path]
        symbols = subprocess.run(nm, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout
        own = [name for name in symbols.split()[2::3] if "asan" not in name] # AddressSanitizer adds two of its own
        return None if own else {}
    defined = "".join(entry for entry in text.split("\n\n") if "DW_AT_declaration" not in entry)
    return {name: f"{sources[file]}:{line}" for name, file, line in SUBPROGRAM.findall(defined)
            if MANGLED.match(name) and not file.startswith("/usr/")}


def clashes(targets, tests):
    """Of {target: [{signature: place} of each object]}: {signature: places} of those with more than one in a program."""
    rooms, found = collections.defaultdict(set), {}
    for target, objects in targets.items():
        if target not in tests:
            for functions in objects:
                for name, place in functions.items():
                    rooms[name].add(place)
    found = {name: places for name, places in rooms.items() if len(places) > 1}
    for target in tests:
        own = collections.defaultdict(set)
        for functions in targets[target]:
            for name, place in functions.items():
                own[name].add(place)
        for name, places in own.items():
            if len(places | rooms.get(name, set())) > 1:
                found[name] = found.get(name, set()) | places | rooms.get(name, set())
    return found, len(rooms)


def check_itself():
    lines = {"double deepgen::rounded(double)": "deepgen::rounded(double)",
             "std::map<int, void (*)(int)> deepgen::a::f(deepgen::B) [with T = int]": "deepgen::a::f(deepgen::B) [with T = int]",
             "deepgen::S::S()": "deepgen::S::S()", "bool deepgen::operator<(deepgen::S, deepgen::S)": None,
             "void deepgen::S::operator()(int) const": "deepgen::S::operator()(int) const",
             "const char* deepgen::{anonymous}::f()": None, "deepgen::f()::<lambda(int)>": None, "void std::f(deepgen::S)": None}
    for text, wanted in lines.items():
        got = signature(text)
        assert got == (wanted or got and "operator<" in text and "deepgen::operator<(deepgen::S, deepgen::S)"), (text, got)
    sources = Sources(pathlib.Path("/nowhere"))
    one, two, three = (functions_of(f"/x/{file}.h:12:15:double deepgen::rounded({of})\t16\tstatic", sources)
                       for file, of in (("one", "double"), ("two", "double"), ("three", "float")))
    assert clashes({"a": [one, one], "b": [three]}, set())[0] == {}
    assert clashes({"a": [one], "b": [two]}, set())[0] == {"deepgen::rounded(double)": {"/x/one.h:12", "/x/two.h:12"}}
    assert clashes({"a": [one], "t": [two]}, {"t"})[0] and not clashes({"t": [one], "u": [two]}, {"t", "u"})[0]


def check_compiler(cxx, dwarfdump):
    """Two headers with one function each, of one name: what the compiler says of the sources that have them is found."""
    how = ["-O1", "-g1", "-fdebug-info-for-profiling"] if dwarfdump else ["-O0", "-fstack-usage"]
    with tempfile.TemporaryDirectory() as folder:
        objects, sources = [], Sources(pathlib.Path(folder))
        for name, factor in (("one", "1e3"), ("two", "1e4")):
            header, source = pathlib.Path(folder, name + ".h"), pathlib.Path(folder, name + ".cpp")
            header.write_text("namespace deepgen {\ninline double rounded(double x) { return x * %s; }\n" % factor +
                              "namespace { double hidden(double x) { return x + %s; } }\n}\n" % factor)
            source.write_text(f'#include "{name}.h"\ndouble {name}(double x) {{ return deepgen::rounded(x) + deepgen::hidden(x); }}\n')
            subprocess.run([cxx, *how, "-c", source, "-o", f"{source}.o"], check=True)
            objects.append(functions_of_object(f"{source}.o", dwarfdump, sources) if dwarfdump
                           else functions_of(pathlib.Path(f"{source}.su").read_text(), sources))
        found = clashes({"planted": objects}, set())[0]
        wanted = "_ZN7deepgen7roundedEd" if dwarfdump else "deepgen::rounded(double)"
        assert list(found) == [wanted] and len(found[wanted]) == 2, (objects, found)


def main():
    check_itself()
    dwarfdump = sys.argv[4] if len(sys.argv) > 4 else None
    check_compiler(sys.argv[3], dwarfdump)
    root = pathlib.Path(sys.argv[1])
    sources, targets, silent = Sources(root), collections.defaultdict(list), []
    for line in pathlib.Path(sys.argv[2]).read_text().splitlines():
        target, _, path = line.partition(" ")
        said = pathlib.Path(path).with_suffix(".su")
        if not pathlib.Path(path).is_file():
            continue  # a target that this build leaves out
        if dwarfdump:
            functions = functions_of_object(path, dwarfdump, sources)
        else:
            functions = functions_of(said.read_text(errors="replace"), sources) if said.is_file() else None
        if functions is None:
            silent.append(path)
        else:
            targets[target].append(functions)
    tests = {target for target in targets if target.endswith("_test")}
    found, count = clashes(targets, tests)
    for name, places in sorted(found.items()):
        print(f"{name} is defined at {', '.join(sorted(places))}: rename all but one, or make them local to their sources")
    for path in silent:
        print(f"{path} was compiled without what says where its functions are from: build it again")
    print(f"{count} functions of {sum(map(len, targets.values()))} objects")
    return 1 if found or silent or count < LEAST else 0


sys.exit(main())
