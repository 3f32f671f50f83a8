#!/usr/bin/env python3
"""Coefficients of templates/ir/narrow_epilogue.cpp, whose results are rounded to 16 or 8 bits.

2^f on |f| <= 1/2 as a polynomial; and the tail of the normal distribution, Phi(-m) exp(m^2/2) for 0 <= m <= 13.27, as
t (c0 + c1 t + ...) with t = 1 / (1 + q m). Of the tail both errors count: the absolute one of Phi, in units of ABSOLUTE, and the
relative one, in units of RELATIVE. The largest of them is made small by weights that grow where the error is large (Lawson's
algorithm), for each q of a list. Errors are then those of a polynomial that is evaluated in f32. Usage: fit_narrow.py
"""
import math

from fitting import f32, solve

ABSOLUTE, RELATIVE = 1.5e-7, 2.0 ** -14
POWERS, TAIL = 5, 6 # degrees; the tail has no constant
MOST = 13.27


def minimax(basis, values, units, rounds=60):
    """Coefficients whose largest |error| / unit is small: least squares, again and again."""
    count, weights = len(basis[0]), [1.0] * len(values)
    best, least = None, math.inf
    for _ in range(rounds):
        rows = [[0.0] * (count + 1) for _ in range(count)]
        for b, v, u, w in zip(basis, values, units, weights):
            s = w / (u * u)
            for i in range(count):
                sb = s * b[i]
                for j in range(i, count):
                    rows[i][j] += sb * b[j]
                rows[i][count] += sb * v
        for i in range(count):
            for j in range(i):
                rows[i][j] = rows[j][i]
        c = solve(rows)
        errors = [abs(sum(x * y for x, y in zip(c, b)) - v) / u for b, v, u in zip(basis, values, units)]
        worst = max(errors)
        if worst < least:
            best, least = c, worst
        weights = [w * (0.02 + e / worst) for w, e in zip(weights, errors)]
        total = sum(weights)
        weights = [w / total for w in weights]
    return best, least


def tail(m):
    return 0.5 * math.erfc(m / math.sqrt(2))


def scaled(m):
    return tail(m) * math.exp(m * m / 2)


def evaluate(c, t):
    p = f32(c[-1])
    for x in c[-2::-1]:
        p = f32(p * t + f32(x))
    return p


grid = [-0.5 + i / 400 for i in range(401)]
power, least = minimax([[f ** i for i in range(POWERS + 1)] for f in grid], [2.0 ** f for f in grid], [2.0 ** f for f in grid])
print("2^f: largest relative error %.3g" % least, "coefficients", ", ".join(repr(x) for x in power))
print("  evaluated in f32: %.3g" % max(abs(evaluate(power, f32(f)) / 2.0 ** f32(f) - 1) for f in grid))

ms = [MOST * (i / 300) ** 2 for i in range(301)]
values = [scaled(m) for m in ms]
units = [min(RELATIVE * s, ABSOLUTE * math.exp(m * m / 2)) for s, m in zip(values, ms)]
found = None
for step in range(22, 50):
    q = step / 100
    ts = [1 / (1 + q * m) for m in ms]
    c, least = minimax([[t ** (i + 1) for i in range(TAIL)] for t in ts], values, units, 40)
    print("q %.2f: %.3f units" % (q, least))
    if not found or least < found[0]:
        found = (least, q, c)
least, q, c = found
print("tail: q", q, "coefficients", ", ".join(repr(x) for x in c))
absolute = relative = 0.0
for m in map(f32, ms):
    t = f32(1 / f32(1 + f32(q) * m))
    s = f32(evaluate(c, t) * t)
    relative = max(relative, abs(s / scaled(m) - 1))
    absolute = max(absolute, abs(s - scaled(m)) * math.exp(-m * m / 2))
print("  evaluated in f32: absolute %.3g, relative %.3g" % (absolute, relative))
