#!/usr/bin/env python3
"""trim-store.py FOLDER MEGABYTES: of what runs of the tests keep for later ones, removes what was used longest ago, until the
rest has no more than that. Runs may go on beside it."""
import pathlib
import sys


def trim(folder, most):
    """Returns how many files are left, and how many were removed."""
    files = []
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                told = path.stat()
                files.append((told.st_mtime, told.st_size, path))
        except FileNotFoundError:
            pass  # another run has removed it
    files.sort(key=lambda file: file[0], reverse=True)
    total = left = 0
    for _, size, path in files:
        total += size
        if total <= most:
            left += 1
        else:
            path.unlink(missing_ok=True)
    return left, len(files) - left


if __name__ == "__main__":
    left, removed = trim(pathlib.Path(sys.argv[1]), int(sys.argv[2]) << 20)
    print(f"{sys.argv[1]}: {left} files of earlier runs, {removed} removed")
