#!/usr/bin/env python3
"""Draws the suite beside cuBLASLt in its three regimes: chart.py [--check] [-o docs/images/suite.svg] [RESULTS_FOLDER]

The picture is made of results.csv alone, every row of it, and is the same on every host. --check compares the picture that is
there with what would be drawn, and the table of README.md with what it prints; it writes nothing."""
import argparse
import csv
import math
import pathlib
import sys
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results/h200_ties" # the tuning that the pages show
README = HERE.parents[1] / "README.md"
PICTURE = HERE.parents[1] / "docs/images/suite.svg"

REGIMES = [("", "sustained", "calls go on and on"),
           ("burst_", "bursts", "1 ms of calls, then a pause: full clock"),
           ("serial_", "serial", "each launch waits for the one before")]
LEFT, PANEL, GAP, TOP, ROW, BOTTOM = 304, 208, 34, 112, 16, 62
LOW, HIGH, TICKS = 0.85, 1.5, (0.9, 1, 1.1, 1.2, 1.3, 1.4)
# The side of 1 gives the hue, whether the whole interval lies beyond the noise the strength.
COLOURS = {("faster", True): "#2166ac", ("faster", False): "#a6c8e4", ("slower", True): "#c8501e", ("slower", False): "#f0b999"}


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


class Picture:
    def __init__(self, width, height):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      'font-family="Helvetica, Arial, sans-serif" font-size="11" fill="#1f2328">',
                      f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def text(self, x, y, text, **options):
        more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in options.items())
        self.parts.append(f'<text x="{number(x)}" y="{number(y)}"{more}>{escape(text)}</text>')

    def box(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" fill="{colour}"/>')

    def line(self, x1, y1, x2, y2, colour, width=1):
        self.parts.append(f'<path d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}" stroke="{colour}" stroke-width="{width}"/>')

    def finished(self):
        return "\n".join([*self.parts, "</svg>", ""])


def label(row):
    """`bf16 64 x 28672 x 4096`, with what is special behind it."""
    fields = dict(field.split("=", 1) for field in row["problem"].split()[1:])
    text = f"{fields['a']} {fields['m']}×{fields['n']}×{fields['k']}"
    if fields["layout"] != "nt":
        text += " " + fields["layout"]
    if fields["batch"] != "1":
        text += f", batch {fields['batch']}"
    if "groups" in fields:
        text += f", {fields['groups']} groups"
    if "gate" in fields:
        text += ", gated"
    if fields["epilogue"] != "none":
        text += ", " + fields["epilogue"].replace("_tanh", "")
    return text


def at(ratio):
    """Where a ratio lies in a panel, from its left. The scale is logarithmic, so that 1.1 and 1 / 1.1 are as far from 1."""
    return PANEL * math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)


def counted(rows, prefix):
    """Geometric mean; how many are faster, slower and neither, beyond the noise."""
    ratios = [float(row[prefix + "ratio"]) for row in rows]
    verdicts = [row[prefix + "verdict"] for row in rows]
    wins, losses = verdicts.count("win"), verdicts.count("loss")
    return math.exp(sum(map(math.log, ratios)) / len(ratios)), wins, losses, len(rows) - wins - losses


def summary(rows, prefix):
    return "mean {:.3f}: {} faster, {} slower, {} even".format(*counted(rows, prefix))


def cells(rows, prefix):
    """What a row of README.md's table ends with."""
    worst = min(rows, key=lambda row: float(row[prefix + "ratio"]))
    return "| {:.3f} | {} | {} | {} | ".format(*counted(rows, prefix)) + f"{float(worst[prefix + 'ratio']):.3f} (`{worst['name']}`) |"


def draw_bar(picture, x, y, row, prefix):
    ratio, low, high = (float(row[prefix + name]) for name in ("ratio", "ratio_low", "ratio_high")) if not prefix else (
        float(row[prefix + name]) for name in ("ratio", "low", "high"))
    side, sure = "faster" if ratio >= 1 else "slower", row[prefix + "verdict"] in ("win", "loss")
    one, end = x + at(1), x + at(ratio)
    picture.box(min(one, end), y + 3, max(abs(end - one), 0.8), ROW - 6, COLOURS[side, sure])
    if ratio > HIGH: # longer than the panel: the end is cut, the number tells
        for offset in (5, 9):
            picture.line(end - offset - 3, y + ROW - 2, end - offset, y + 2, "#ffffff", 1.5)
    elif high - low > 0.002:
        picture.line(x + at(low), y + ROW / 2, x + at(high), y + ROW / 2, "#1f2328", 0.8)
    if ratio > 1.3: # no room behind the bar
        picture.text(end - 13 if ratio > HIGH else end - 4, y + 11.5, f"{ratio:.2f}", text_anchor="end", font_size=9.5, fill="#ffffff", font_weight="bold")
    else:
        beside = max(x + at(high), end, one) + 3 if ratio >= 1 else min(x + at(low), end) - 3
        picture.text(beside, y + 11.5, f"{ratio:.3f}" if ratio < 1.1 else f"{ratio:.2f}", text_anchor="start" if ratio >= 1 else "end", font_size=9.5,
                     fill="#57606a" if ratio >= 1 else "#9a3412")


def draw(rows):
    rows = sorted(rows, key=lambda row: -float(row["ratio"]))
    bottom = TOP + ROW * len(rows)
    picture = Picture(LEFT + 3 * PANEL + 2 * GAP + 16, bottom + BOTTOM)
    picture.text(14, 26, f"{len(rows)} problems on an {rows[0]['device']}: DeepGen beside the best of cuBLASLt's algorithms", font_size=16, font_weight="bold")
    picture.text(14, 44, "Time of cuBLASLt / time of DeepGen, measured once more after the choice. Right of the line DeepGen is faster, left of it slower.", fill="#57606a")
    for index, row in enumerate(rows):
        y = TOP + ROW * index
        if index % 2 == 0:
            picture.box(8, y, LEFT + 3 * PANEL + 2 * GAP, ROW, "#f6f8fa")
        picture.text(14, y + 11.5, row["name"], font_weight="bold", font_size=10)
        picture.text(LEFT - 12, y + 11.5, label(row), text_anchor="end", font_size=10, fill="#57606a")
    for index, (prefix, name, meaning) in enumerate(REGIMES):
        x = LEFT + index * (PANEL + GAP)
        picture.text(x, 70, name, font_size=13, font_weight="bold")
        picture.text(x, 84, meaning, font_size=10, fill="#57606a")
        picture.text(x, 98, summary(rows, prefix), font_size=10, fill="#57606a")
        for tick in TICKS:
            picture.line(x + at(tick), TOP - 2, x + at(tick), bottom + 3, "#8c959f" if tick == 1 else "#e1e4e8", 1)
            picture.text(x + at(tick), bottom + 15, f"{tick:g}", text_anchor="middle", font_size=9.5, fill="#57606a")
        for place, row in enumerate(rows):
            draw_bar(picture, x, TOP + ROW * place, row, prefix)
        picture.line(x + at(1), TOP - 2, x + at(1), bottom + 3, "#57606a", 1)
    x = 14
    for (side, sure), colour in COLOURS.items():
        picture.box(x, bottom + 30, 12, 10, colour)
        text = f"DeepGen is {side}" if sure else f"{side}, but within the noise or undecided"
        picture.text(x + 17, bottom + 39, text, font_size=10)
        x += 17 + 5.4 * len(text) + 22
    about = rows[0]["driver"].split(",")
    picture.text(14, bottom + 55, f"Driver {about[0]},{about[1]}, {rows[0]['vendor'].replace('cublaslt', 'cuBLASLt')}. Thin lines: 95 % intervals. "
                 "Cut bars are longer than the panel; their numbers tell.", font_size=10, fill="#57606a")
    return picture.finished()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", type=pathlib.Path, default=RESULTS)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=PICTURE)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    rows = list(csv.DictReader((arguments.results / "results.csv").open(newline="")))
    missing = [row["name"] for row in rows if not all(row[prefix + "ratio"] for prefix, _, _ in REGIMES)]
    if missing or not rows:
        sys.exit(f"chart: {arguments.results} lacks a ratio of {', '.join(missing) or 'every row'}; a chart leaves no row out")
    svg = draw(rows)
    if not arguments.check:
        arguments.output.write_text(svg)
        for prefix, name, _ in REGIMES:
            print(name, cells(rows, prefix))
        return
    lines = README.read_text().splitlines()
    for prefix, name, _ in REGIMES:
        if not any(line.startswith(f"| {name}:") and line.endswith(cells(rows, prefix)) for line in lines):
            sys.exit(f"chart: README.md's row of {name} should end with\n{cells(rows, prefix)}")
    if not arguments.output.exists() or arguments.output.read_text() != svg:
        sys.exit(f"chart: {arguments.output} is not what {arguments.results} gives; run benchmarks/gpu/chart.py and commit the picture")


if __name__ == "__main__":
    main()
