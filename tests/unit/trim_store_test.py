"""trim_store_test.py TRIM_STORE: what was used last stays, whatever folder it is in; the rest goes."""
import os
import pathlib
import subprocess
import sys
import tempfile


def check(got, wanted, what):
    if got != wanted:
        sys.exit(f"{what}: {got}, not {wanted}")


with tempfile.TemporaryDirectory() as name:
    store = pathlib.Path(name, "a store")
    for at, (path, kib) in enumerate((("a/oldest", 400), ("b/old", 500), ("a/new", 300), ("b/newest", 200))):
        file = store / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(kib << 10))
        os.utime(file, (1e9 + at, 1e9 + at))

    def trim(megabytes):
        subprocess.run([sys.executable, sys.argv[1], store, str(megabytes)], check=True)
        return sorted(str(file.relative_to(store)) for file in store.rglob("*") if file.is_file())

    check(trim(2), ["a/new", "a/oldest", "b/newest", "b/old"], "all fit")
    check(trim(1), ["a/new", "b/newest", "b/old"], "one does not")
    check(trim(0), [], "none may stay")
    subprocess.run([sys.executable, sys.argv[1], store / "absent", "1"], check=True)
