#!/usr/bin/env python3
"""tidy.py finds planted faults, knows what has passed, and says what it leaves out.

usage: tidy_test.py CLANG_TIDY SOURCE      SOURCE has the .clang-tidy of this project
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

CLEAN = """#include "base/name.h"
#include <utility>
namespace deepgen {
std::string joined(std::string a, const std::string& b) { return std::move(a) + b; }
}
"""
USED_AFTER_MOVE = """#include "base/name.h"
#include <utility>
namespace deepgen {
size_t taken(std::string a) {
  const std::string b = std::move(a);
  return b.size() + a.size();
}
}
"""
# It compiles behind clean.cpp, as in a unity source.
INCLUDES_NOTHING = "namespace deepgen {\nint length(const std::string& a) { return int(a.size()); }\n}\n"
HEADER = "#pragma once\n#include <string>\n"


class Checkout:
    def __init__(self, folder, clang_tidy, checks):
        self.folder, self.clang_tidy = folder, clang_tidy
        self.cache = os.path.join(folder, "cache")
        shutil.copy(checks, os.path.join(folder, ".clang-tidy"))
        self.write("base/name.h", HEADER)
        self.write("base/clean.cpp", CLEAN)
        self.write("base/moved.cpp", USED_AFTER_MOVE)
        self.write("base/bare.cpp", INCLUDES_NOTHING)
        unity = self.write("build/unity_0_cxx.cxx", "".join(
            f'#include "{folder}/base/{name}.cpp"\n\n' for name in ("clean", "moved", "bare")))
        command = f"/usr/bin/ccache /usr/bin/c++ -I{folder} -O2 -Werror -Wno-restrict -std=gnu++20 -o unity.o -c {unity}"
        self.write("build/compile_commands.json", json.dumps([{"directory": folder + "/build", "command": command, "file": unity}]))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def run(self, *options):
        tidy = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy.py")
        done = subprocess.run([sys.executable, tidy, self.clang_tidy, self.folder, self.folder + "/build", "--cache", self.cache,
                               *options], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def expect(condition, output):
    if not condition:
        sys.exit(f"tidy.py said:\n{output}")


def main():
    clang_tidy, source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        checkout = Checkout(os.path.realpath(folder), clang_tidy, os.path.join(source, ".clang-tidy"))
        status, said = checkout.run()
        expect(status == 1 and "bugprone-use-after-move" in said and "base/moved.cpp:6" in said, said)
        expect("base/bare.cpp:2" in said and "clang-diagnostic-error" in said, said)
        expect("base/clean.cpp" not in said and "3 sources: 3 checked" in said and "2 with findings" in said, said)
        # What passed is known, until a header changes.
        status, said = checkout.run()
        expect(status == 1 and "3 sources: 2 checked" in said and "1 are as they passed before" in said, said)
        checkout.write("base/name.h", HEADER + "// more\n")
        status, said = checkout.run("--only", "clean")
        expect(status == 0 and "1 sources: 1 checked" in said, said)
        # Without time nothing is checked, and all of it is said.
        status, said = checkout.run("--seconds", "1e-9")
        expect(status == 0 and "2 left out" in said and "base/bare.cpp" in said and "base/moved.cpp" in said, said)


main()
