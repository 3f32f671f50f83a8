"""main.py BUILD: a feed-forward block by tuned operators of torch: eager, compiled, and in a CUDA graph.

Each is checked against torch in float32, and timed beside torch's own bfloat16. Exits with 77 where there is no GPU."""
import pathlib
import statistics
import sys

import torch
import torch.nn.functional as F

ROWS, MODEL, HIDDEN = 2048, 2048, 8192


def load(build):
    torch.ops.load_library(str(pathlib.Path(build).resolve() / "deepgen_torch.so"))

    @torch.library.register_fake("deepgen_ffn::up")
    def _(x, w, bias):
        return x.new_empty(x.shape[0], w.shape[0])

    @torch.library.register_fake("deepgen_ffn::down")
    def _(h, w, bias, residual):
        return h.new_empty(h.shape[0], w.shape[0])


def tuned(x, w1, b1, w2, b2):
    h = torch.ops.deepgen_ffn.up(x, w1, b1)
    return torch.ops.deepgen_ffn.down(h, w2, b2, x)


def plain(x, w1, b1, w2, b2):
    return F.linear(F.gelu(F.linear(x, w1, b1), approximate="tanh"), w2, b2) + x


def captured(function, arguments):
    """The function in a CUDA graph: a replay, and its output."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function(*arguments)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = function(*arguments)
    return graph.replay, y


def check(name, y, expected):
    error = (y.float() - expected).abs().max().item()
    bound = 2 ** -7 * expected.abs().max().item()
    print(f"{name}: largest {expected.abs().max().item():.3g}, error {error:.2g}")
    if not error <= bound:
        sys.exit(f"{name} is wrong: {error} is more than {bound}")


def times_of(replays, rounds=30, calls=20):
    """Microseconds a call of each, in turns."""
    times = {name: [] for name in replays}
    for name in replays:
        replays[name]()
    for _ in range(rounds):
        for name, replay in replays.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(calls):
                replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) / calls * 1e3)
    return {name: statistics.median(list_) for name, list_ in times.items()}


def main(build):
    if not torch.cuda.is_available():
        print("no GPU")
        sys.exit(77)
    load(build)
    torch.manual_seed(1)
    make = lambda *shape, scale=1.0: ((torch.rand(*shape, device="cuda") * 2 - 1) * scale).bfloat16()
    arguments = (make(ROWS, MODEL), make(HIDDEN, MODEL, scale=0.05), make(HIDDEN), make(MODEL, HIDDEN, scale=0.05), make(MODEL))
    # The hidden layer is rounded to bfloat16 between the two products, as it is in memory.
    x, w1, b1, w2, b2 = (t.float() for t in arguments)
    torch.backends.cuda.matmul.allow_tf32 = False
    hidden = F.gelu(F.linear(x, w1, b1), approximate="tanh").bfloat16().float()
    expected = F.linear(hidden, w2, b2) + x

    for name, operands in (("up", arguments[:3]), ("down", (hidden.bfloat16(), *arguments[3:], arguments[0]))):
        torch.library.opcheck(getattr(torch.ops.deepgen_ffn, name).default, operands, test_utils=("test_schema", "test_faketensor"))
    check("eager", tuned(*arguments), expected)
    check("compiled", torch.compile(tuned, fullgraph=True)(*arguments), expected)
    replay, y = captured(tuned, arguments)
    y.zero_()
    replay()
    check("CUDA graph", y, expected)
    wide = torch.empty(ROWS, MODEL + 64, dtype=torch.bfloat16, device="cuda")[:, :MODEL].copy_(arguments[0])
    check("rows with gaps", tuned(wide, *arguments[1:]), expected)
    try:
        tuned(arguments[0][:7], *arguments[1:])
        sys.exit("other sizes were taken")
    except RuntimeError as error:
        print(f"refused as it should be: {str(error).splitlines()[0]}")

    compiled = torch.compile(plain, mode="max-autotune-no-cudagraphs")
    replays = {"DeepGen": replay, "torch": captured(plain, arguments)[0], "torch.compile, max-autotune": captured(compiled, arguments)[0]}
    times = times_of(replays)
    flops = 4 * ROWS * MODEL * HIDDEN
    for name, microseconds in times.items():
        print(f"{name}: {microseconds:.1f} us, {flops / microseconds * 1e-6:.0f} TFLOP/s, DeepGen is {microseconds / times['DeepGen']:.3f} x as fast")
    print("All results agree")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build")
