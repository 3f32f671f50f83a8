"""main.py BUILD: causal attention as a tuned operator of torch: eager, compiled, and in a CUDA graph.

Each is checked against torch in float32. Then a prompt, a chunk of one and a decoding step are timed beside torch's own
scaled_dot_product_attention, by FlashAttention 2 and by cuDNN. Exits with 77 where there is no GPU."""
import pathlib
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

HEADS, KV_HEADS, DIM = 32, 8, 128
CALLS = {"prompt": (1, 4096, 4096), "chunk": (1, 512, 8192), "decoding": (8, 1, 8192)}  # entries, queries, keys


def load(build):
    torch.ops.load_library(str(pathlib.Path(build).resolve() / "deepgen_torch_attention.so"))

    @torch.library.register_fake("deepgen_attention::causal")
    def _(q, key, value):
        return q.new_empty(q.shape[0], q.shape[2], q.shape[1], value.shape[3]).transpose(1, 2)


def tuned(q, key, value):
    return torch.ops.deepgen_attention.causal(q, key, value)


def operands(batch, queries, keys):
    """As a projection leaves them: [batch, token, head, dimension] in memory, seen as [batch, head, token, dimension]."""
    make = lambda tokens, heads: torch.randn(batch, tokens, heads, DIM, device="cuda").bfloat16().transpose(1, 2)
    return make(queries, HEADS), make(keys, KV_HEADS), make(keys, KV_HEADS)


def expected(q, key, value):
    """In float32. The last query sees the last key."""
    q, key, value = q.float(), *(t.float().repeat_interleave(HEADS // KV_HEADS, 1) for t in (key, value))
    scores = q @ key.transpose(2, 3) / DIM ** 0.5
    hidden = torch.ones(scores.shape[2:], dtype=torch.bool, device="cuda").triu(1 + key.shape[2] - q.shape[2])
    return torch.softmax(scores.masked_fill_(hidden, -torch.inf), -1) @ value


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


def check(name, y, right):
    error = (y.float() - right).abs().max().item()
    print(f"{name}: largest {right.abs().max().item():.3g}, error {error:.2g}")
    if not error <= 2 ** -7 * right.abs().max().item():
        sys.exit(f"{name} is wrong by {error}")


def with_torch(backend, queries, keys):
    """None where torch takes another backend, whatever is asked for: causal_lower_right() has FlashAttention 2 alone."""
    mask = {}
    if queries == keys:
        mask = {"is_causal": True}
    elif queries > 1 and backend == SDPBackend.CUDNN_ATTENTION:
        return None
    elif queries > 1:
        mask = {"attn_mask": causal_lower_right(queries, keys)}

    def call(q, key, value):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, key, value, enable_gqa=True, **mask)

    return call


def times_of(replays, rounds=30):
    """Microseconds a call of each, in turns: their medians."""
    times = {name: [] for name in replays}
    for replay in replays.values():
        replay()
    for _ in range(rounds):
        for name, replay in replays.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(10):
                replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) / 10 * 1e3)
    return {name: statistics.median(list_) for name, list_ in times.items()}


def compare(name, shape):
    batch, queries, keys = shape
    arguments = operands(*shape)
    replays = {"DeepGen": captured(tuned, arguments)[0]}
    for peer, backend in (("torch, FlashAttention 2", SDPBackend.FLASH_ATTENTION), ("torch, cuDNN", SDPBackend.CUDNN_ATTENTION)):
        if not (call := with_torch(backend, queries, keys)):
            continue
        try:
            replay, y = captured(call, arguments)
            replay()
            check(f"{name}, {peer}", y, expected(*arguments))
            replays[peer] = replay
        except (RuntimeError, TypeError) as error:
            print(f"{name}: {peer} does not serve it: {str(error).splitlines()[0][:100]}")
    pairs = batch * (queries * keys - queries * (queries - 1) / 2)
    read = sum(t.numel() * t.element_size() for t in arguments[1:])
    times = times_of(replays)
    for peer, us in times.items():
        print(f"{name}, {peer}: {us:.1f} us, {4e-6 * HEADS * DIM * pairs / us:.0f} TFLOP/s, {read / us * 1e-3:.0f} GB/s of keys and "
              f"values; DeepGen is {us / times['DeepGen']:.3f} x as fast")


def main(build):
    if not torch.cuda.is_available():
        print("no GPU")
        sys.exit(77)
    load(build)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    small = operands(2, 700, 1000)
    right = expected(*small)
    torch.library.opcheck(torch.ops.deepgen_attention.causal.default, small, test_utils=("test_schema", "test_faketensor"))
    check("eager", tuned(*small), right)
    check("dense [batch, head, token, dimension]", tuned(*(t.contiguous() for t in small)), right)
    check("compiled", torch.compile(tuned, fullgraph=True)(*small), right)
    replay, y = captured(tuned, small)
    y.zero_()
    replay()
    check("CUDA graph", y, right)
    try:
        tuned(small[0][:, :7], *small[1:])
        sys.exit("other heads were taken")
    except RuntimeError as error:
        print(f"refused as it should be: {str(error).splitlines()[0]}")
    for name, shape in CALLS.items():
        check(name, tuned(*(arguments := operands(*shape))), expected(*arguments))
        compare(name, shape)
    print("All results agree")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build")
