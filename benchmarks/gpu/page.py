#!/usr/bin/env python3
"""Takes the picture of the report that the pages show: page.py DEEPGEN [-o docs/images/report.png] [RESULTS_FOLDER]

It is what `deepgen report` makes of the committed records, in headless Chromium. Fonts differ between hosts, so no test compares
it: take it again when the page or the results change."""
import argparse
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT, MOST_BYTES = 1180, 786, 200000


def chunks(png):
    at = 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        yield kind, png[at + 8:at + 8 + size]
        at += size + 12


def packed(png):
    """The same picture, compressed as well as zlib can."""
    data = zlib.compress(zlib.decompress(b"".join(body for kind, body in chunks(png) if kind == b"IDAT")), 9)
    parts = [(b"IHDR", next(body for kind, body in chunks(png) if kind == b"IHDR")), (b"IDAT", data), (b"IEND", b"")]
    return png[:8] + b"".join(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("deepgen")
    parser.add_argument("results", nargs="?", type=pathlib.Path, default=HERE / "results/h200_fabric")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=HERE.parents[1] / "docs/images/report.png")
    arguments = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not chromium:
        sys.exit("page: no chromium; scripts/install-deps.sh installs it")
    with tempfile.TemporaryDirectory() as folder:
        page, picture = pathlib.Path(folder) / "report.html", pathlib.Path(folder) / "report.png"
        records = sorted(arguments.results.glob("raw/*/*.jsonl"))
        subprocess.run([arguments.deepgen, "report", "--html", page, "--records", *records], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                        f"--user-data-dir={folder}/profile", "--virtual-time-budget=2000", "--force-device-scale-factor=1",
                        f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}", page.as_uri() + "#/"], check=True, capture_output=True)
        png = packed(picture.read_bytes())
    if len(png) > MOST_BYTES:
        sys.exit(f"page: the picture has {len(png)} bytes, more than {MOST_BYTES}")
    arguments.output.write_bytes(png)


if __name__ == "__main__":
    main()
