"""main.py BUILD: calls a tuned layer by ctypes, checks it against plain Python, and prints its time.

Python holds the memory (array.array), and calls release the interpreter's lock, as ctypes.CDLL does."""
import array
import ctypes
import math
import pathlib
import random
import sys
import time


class Layer:
    """y = relu(x w^T + bias) with sizes that the library was built for; arrays of type 'f'."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.layer_status_text.restype = self.library.layer_config.restype = ctypes.c_char_p
        sizes = (ctypes.c_int64 * 3)()
        self.library.layer_sizes(sizes)
        self.rows, self.outputs, self.inputs = sizes

    @property
    def config(self):
        return self.library.layer_config().decode()

    def __call__(self, x, w, bias, y, stride=0):
        for name, values, count in (("x", x, self.rows * self.inputs), ("w", w, self.outputs * self.inputs),
                                    ("bias", bias, self.outputs),
                                    ("y", y, (self.rows - 1) * (stride or self.outputs) + self.outputs)):
            if values.typecode != "f" or len(values) < count:
                raise ValueError(f"{name} wants {count} values of type 'f'")
        status = self.library.layer_run(*(ctypes.c_void_p(values.buffer_info()[0]) for values in (x, w, bias, y)),
                                        ctypes.c_int64(stride))
        if status:
            raise ValueError(self.library.layer_status_text(status).decode())


def expected(layer, x, w, bias, row, column):
    k = layer.inputs
    return max(0.0, math.fsum(x[row * k + i] * w[column * k + i] for i in range(k)) + bias[column])


def main(build):
    layer = Layer(pathlib.Path(build).resolve() / "layer.so")
    rng = random.Random(1)
    make = lambda count: array.array("f", (rng.uniform(-1, 1) for _ in range(count)))
    x, w, bias = make(layer.rows * layer.inputs), make(layer.outputs * layer.inputs), make(layer.outputs)
    stride = layer.outputs + 3
    y = array.array("f", [7.0]) * (layer.rows * stride)
    layer(x, w, bias, y, stride)
    worst = max(abs(y[m * stride + n] - expected(layer, x, w, bias, m, n))
                for m in range(layer.rows) for n in range(m % 5, layer.outputs, 5))
    assert worst < 1e-4, f"wrong by {worst}"
    assert all(y[m * stride + n] == 7.0 for m in range(layer.rows) for n in range(layer.outputs, stride)), "beyond the rows"
    try:
        layer(x, w, bias, y, layer.outputs - 1)
        raise AssertionError("a stride below a row was taken")
    except ValueError as error:
        print(f"refused as it should be: {error}")

    best = math.inf
    for _ in range(50):
        begin = time.perf_counter()
        layer(x, w, bias, y, stride)
        best = min(best, time.perf_counter() - begin)
    flops = 2 * layer.rows * layer.outputs * layer.inputs
    print(f"{layer.config}\n{best * 1e6:.0f} us a call, {flops / best * 1e-9:.1f} GFLOP/s, the call of Python included")
    print("All results agree")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build")
