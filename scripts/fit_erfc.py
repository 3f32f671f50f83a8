#!/usr/bin/env python3
"""Coefficients of runtime/include/deepgen/erfc_table.h and templates/ir/epilogue.cpp: erfc(z) exp(z^2), z >= 0, as a polynomial in t = (z - c) / (z + c).

A truncated Chebyshev series, computed with 70 digits (series below z = 6, continued fraction above), printed in
powers of t with its largest relative error when evaluated in the type itself. Usage: fit_erfc.py
"""
import struct
from decimal import Decimal, getcontext

getcontext().prec = 70
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def scaled_erfc(z):
    if z < 6:
        total, term, n = Decimal(0), z, 0
        while abs(term) > Decimal(10) ** -65 or n < 5:
            total += term
            n += 1
            term = term * 2 * z * z / (2 * n + 1)
        return (z * z).exp() - 2 / PI.sqrt() * total
    f = z
    for k in range(300, 0, -1):
        f = z + Decimal(k) / 2 / f
    return 1 / (f * PI.sqrt())


def cosine(x):
    total, term, n = Decimal(1), Decimal(1), 0
    while abs(term) > Decimal(10) ** -65:
        n += 2
        term = -term * x * x / (n * (n - 1))
        total += term
    return total


def chebyshev(k, x):
    a, b = Decimal(1), x
    if k == 0:
        return a
    for _ in range(k - 1):
        a, b = b, 2 * x * b - a
    return b


def fit(centre, degree, nodes=60):
    c = Decimal(centre)
    xs = [cosine(PI * (2 * i + 1) / (2 * nodes)) for i in range(nodes)]
    fs = [scaled_erfc(c * (1 + x) / (1 - x)) for x in xs]
    series = [sum(f * chebyshev(k, x) for f, x in zip(fs, xs)) * (2 if k else 1) / nodes for k in range(degree + 1)]
    n = degree + 1
    powers = [[0] * n for _ in range(n)]
    powers[0][0] = 1
    if n > 1:
        powers[1][1] = 1
    for k in range(2, n):
        for j in range(n):
            powers[k][j] = (2 * powers[k - 1][j - 1] if j else 0) - powers[k - 2][j]
    return [sum(series[k] * powers[k][j] for k in range(n)) for j in range(n)]


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


for name, centre, degree, rounded in (("f32", 3, 10, single), ("f64", 4, 22, float)):
    coefficients = fit(centre, degree)
    values = [rounded(float(x)) for x in coefficients]
    worst = 0.0
    for i in range(3000):
        z = i * 9.0 / 3000 if i < 2000 else i / 300.0
        t = rounded((z - centre) / (z + centre))
        p = 0.0
        for q in reversed(values):
            p = rounded(p * t + q)
        exact = float(scaled_erfc(Decimal(z)))
        worst = max(worst, abs(p - exact) / exact)
    print(f"{name}: centre {centre}, degree {degree}, largest relative error {worst:.2e}")
    print("  " + ", ".join(repr(float(x)) for x in coefficients))
