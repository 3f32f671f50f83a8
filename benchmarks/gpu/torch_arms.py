"""What comparisons with torch have in common: kernels of .dgk files, and arms that take turns in one process."""
import ctypes, json, sys

try:
    import torch
except ImportError:
    print("skipped: no torch here")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: torch sees no GPU here")
    sys.exit(77)

driver = ctypes.CDLL("libcuda.so.1")


def check(code, what):
    if code:
        raise RuntimeError("%s: driver error %d" % (what, code))


def parse(key):
    fields = dict(word.split("=", 1) for word in key.split()[1:])
    fields["options"] = set(fields["options"].split("+")) - {"none"}
    return fields


class Kernel:
    """The main kernel of a .dgk file: a line of JSON, then the code of each kernel and its PTX."""

    def __init__(self, path):
        data = open(path, "rb").read()
        end = data.index(b"\n")
        head = json.loads(data[:end])
        at = end + 1
        for k in head["kernels"]:
            code = data[at : at + k["code_bytes"]]
            ptx = data[at + k["code_bytes"] : at + k["code_bytes"] + k["ptx_bytes"]]
            at += k["code_bytes"] + k["ptx_bytes"]
            if k["role"] == "main":
                self.about, self.image = k, code if code else ptx + b"\0"
        module = ctypes.c_void_p()
        check(driver.cuModuleLoadData(ctypes.byref(module), self.image), "loading " + path)
        self.launches = []
        for launch in self.about["launches"]:
            function = ctypes.c_void_p()
            check(driver.cuModuleGetFunction(ctypes.byref(function), module, launch["entry"].encode()), "entry")
            if launch["shared"]:
                check(driver.cuFuncSetAttribute(function, 8, launch["shared"]), "shared memory")
            if launch["persistent"]:
                fit = ctypes.c_int()
                x, y, z = launch["block"]
                check(
                    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                        ctypes.byref(fit), function, x * y * z, ctypes.c_size_t(launch["shared"])
                    ),
                    "occupancy",
                )
                cores = torch.cuda.get_device_properties(0).multi_processor_count
                launch["grid"][0] = min(launch["grid"][0], fit.value * cores)
            self.launches.append((function, launch))

    def launch(self, values, grid_of=lambda launch: launch["grid"]):
        """`values`: of ctypes, in the order of self.about["args"]."""
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values])
        for function, launch in self.launches:
            check(
                driver.cuLaunchKernel(
                    function, *grid_of(launch), *launch["block"], launch["shared"], stream, pointers, None
                ),
                "launching",
            )


class Arm:
    def __init__(self, call, sets, calls):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for o in sets[:3]:
                call(o)
        torch.cuda.synchronize()
        self.graph, self.calls = torch.cuda.CUDAGraph(), calls
        with torch.cuda.graph(self.graph):
            # What a call makes lives until the next one, so that torch's allocator gives it other memory.
            kept = []
            for i in range(calls):
                kept.append(call(sets[i % len(sets)]))
                if len(kept) > len(sets):
                    kept.pop(0)
        self.samples = []

    def sample(self):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        self.samples.append(begin.elapsed_time(end) * 1e-3 / self.calls)


def winner(folder):
    lines = [json.loads(line) for line in open(folder + "/final.jsonl")]
    finals = [x for x in lines if x.get("stage") == "final" and x["template"] != "vendor" and x.get("status") == "ok" and x.get("timing")]
    return min(finals, key=lambda x: x["timing"]["ratio"]) if finals else None
