#!/usr/bin/env python3
"""Coefficients of exp(r) on |r| <= ln(2)/2 as 1 + c1 r + c2 r^2 + ..., for templates/cpu/rows/cpu_rows_math.cpp, and those of 2^x on
|x| <= 1/2, for templates/nvidia/attention/mma_attention_softmax.cpp: the least largest relative error, by Remez' exchange. Prints
them, and the largest error of the first polynomial when each step is rounded to f32."""
import math
import sys

from fitting import f32, solve

DEGREE = int(sys.argv[1]) if len(sys.argv) > 1 else 5
EDGE = math.log(2) / 2


def error(c, r):
    return (1 + sum(x * r ** (i + 1) for i, x in enumerate(c))) / math.exp(r) - 1


# The constant term is 1 exactly, so the error is 0 at 0: on either side of it as many extremes as there are coefficients.
points = [EDGE * math.cos(math.pi * i / DEGREE) for i in range(DEGREE + 1)]
grid = [EDGE * (i / 5000 - 1) for i in range(10001)]
for _ in range(50):
    c = solve([[r ** (i + 1) / math.exp(r) for i in range(DEGREE)] + [(-1) ** k, 1 - 1 / math.exp(r)]
               for k, r in enumerate(points)])[:DEGREE]
    e = [error(c, r) for r in grid]
    peaks = [i for i in range(len(grid)) if (i == 0 or abs(e[i]) >= abs(e[i - 1]) or e[i] * e[i - 1] < 0)
             and (i + 1 == len(grid) or abs(e[i]) >= abs(e[i + 1]) or e[i] * e[i + 1] < 0) and e[i] != 0]
    alternating = []
    for i in peaks:
        if alternating and e[alternating[-1]] * e[i] > 0:
            if abs(e[i]) > abs(e[alternating[-1]]):
                alternating[-1] = i
        else:
            alternating.append(i)
    while len(alternating) > DEGREE + 1:
        alternating.pop(min((0, -1), key=lambda i: abs(e[alternating[i]])))
    if len(alternating) < DEGREE + 1:
        break
    points = [grid[i] for i in reversed(alternating)]
print("coefficients", ", ".join(repr(x) for x in c))
print("of 2^x", ", ".join("%.9g" % (x * math.log(2) ** (i + 1)) for i, x in enumerate(c)))
print("largest relative error %.3g" % max(abs(error(c, r)) for r in grid))
worst = 0
for r in map(f32, grid):
    p = f32(c[-1])
    for x in [*c[-2::-1], 1.0]:
        p = f32(p * r + f32(x))  # rounded once, as by fma
    worst = max(worst, abs(p / math.exp(r) - 1))
print("evaluated in f32 %.3g" % worst)
