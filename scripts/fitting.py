"""What scripts/fit_*.py have in common."""
import struct


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def solve(rows):
    """Gauss' elimination; each row ends with its right-hand side."""
    size = len(rows)
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]
