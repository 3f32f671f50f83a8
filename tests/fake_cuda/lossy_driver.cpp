// libcuda.so.1 as deepgen-measure loads it, without a device: memory is the host's, kernels do nothing, and
// so what verifies a kernel finds nothing wrong. It shows what becomes of a search when the driver fails.
//   FAKE_DRIVER_FAILS=<file> <n> <code>   the n-th call that all processes with this file make together fails
//   with the
//                                         code, and every later one of the process that made it: its context
//                                         is lost. Call 0: all of all processes
//
// Of its memory of 1 GiB is free what nobody holds, and lossy_contexts() counts the contexts that a process
// has made: what is linked with it can see what a worker leaves behind.
//
// Its clock stands still but for graphs: a launch takes 10 us, and 8 where it may start before the end of the
// one before. A graph of at most 1.6 ms takes 0.9 of that where the device rested for 30 ms before and where
// it begins on other operands than such a graph before it; else 3 times as much.
//   FAKE_DRIVER_BURST=<threads> <factor>  such a graph takes `factor` more for launches of so many threads a
//                                         block or more: in bursts other kernels are the fastest
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

struct Plan {
  std::atomic<int64_t>* calls = nullptr;
  int64_t fails = 0;
  int code = 0;
  bool lost = false;
};

Plan read_plan() {
  Plan plan;
  char file[1024];
  long long fails = 0;
  const char* text = std::getenv("FAKE_DRIVER_FAILS");
  if (!text || std::sscanf(text, "%1023s %lld %d", file, &fails, &plan.code) != 3) return plan;
  plan.fails = fails;
  const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* page = fd >= 0 && ftruncate(fd, 4096) == 0
                   ? mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
  if (fd >= 0) close(fd);
  if (page != MAP_FAILED) plan.calls = static_cast<std::atomic<int64_t>*>(page);
  return plan;
}

int call() {
  static Plan plan = read_plan();
  if (!plan.calls) return 0;
  if (++*plan.calls == plan.fails || plan.fails == 0) plan.lost = true;
  return plan.lost ? plan.code : 0;
}

template <typename T>
int give(T* out, T value) {
  const int code = call();
  if (code == 0) *out = value;
  return code;
}

void* handle() {
  static char one;
  return &one;
}

struct Edge { // CUgraphEdgeData
  unsigned char from_port = 0, to_port = 0, type = 0, reserved[5] = {};
};
struct Node {
  uint64_t operand = 0; ///< the first parameter
  double in_bursts = 1; ///< times as long
  Edge edge;            ///< from the one before
};
using Nodes = std::vector<Node>;

struct Config { // CUlaunchConfig
  unsigned grid[3], block[3], shared;
  void* stream;
  const struct Attribute {
    unsigned id, padding, value[16];
  }* attributes;
  unsigned count;
};

using Clock = std::chrono::steady_clock;
auto& memories = *new std::map<uint64_t, size_t>; ///< bytes of each; outlives whoever frees last
size_t held = 0;
int contexts = 0;
bool capturing = false;
Nodes captured;
double now = 0; ///< of the device, in microseconds
uint64_t begun_at = 0;
Clock::time_point idle_since = Clock::now();

double factor_in_bursts(unsigned threads) {
  const char* text = std::getenv("FAKE_DRIVER_BURST");
  unsigned least = 0;
  double factor = 1;
  return text && std::sscanf(text, "%u %lf", &least, &factor) == 2 && threads >= least ? factor : 1;
}

void add_node(uint64_t operand, bool early, unsigned threads = 0) {
  constexpr unsigned char kProgrammatic = 1;
  if (!capturing) return;
  captured.push_back({operand, factor_in_bursts(threads), {}});
  if (early && captured.size() > 1)
    captured.back().edge.from_port = captured.back().edge.type = kProgrammatic;
}

double duration(const Nodes& nodes) {
  constexpr double kShort = 1600;
  double sum = 0, in_bursts = 0;
  for (const Node& n : nodes) {
    const double one = n.edge.type ? 8 : 10;
    sum += one, in_bursts += one * n.in_bursts;
  }
  if (sum > kShort || nodes.empty()) return sum;
  const bool rested = Clock::now() - idle_since >= std::chrono::milliseconds(30),
             cold = nodes.front().operand != begun_at;
  begun_at = nodes.front().operand;
  return in_bursts * (rested && cold ? 0.9 : 3);
}

/// The node's number is its handle, plus one.
void* handle_of(size_t node) { return reinterpret_cast<void*>(node + 1); }
Node& node_of(void* graph, void* handle) {
  return static_cast<Nodes*>(graph)->at(reinterpret_cast<size_t>(handle) - 1);
}

} // namespace

#pragma GCC diagnostic ignored "-Wunused-parameter"
extern "C" {

int cuInit(unsigned) { return call(); }
int cuDriverGetVersion(int* version) { return give(version, 13000); }
int cuGetErrorName(int code, const char** name) {
  *name = code == 999 ? "CUDA_ERROR_UNKNOWN" : nullptr;
  return 0;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == 999 ? "unknown error" : nullptr;
  return 0;
}
int cuDeviceGetCount(int* count) { return give(count, 1); }
int cuDeviceGet(int* device, int) { return give(device, 0); }
int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, size_t(size), "a GPU without silicon");
  return call();
}
int cuDeviceGetUuid_v2(unsigned char* bytes, int) {
  std::memset(bytes, 7, 16);
  return call();
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kFacts[][2] = {{13, 1980000}, {16, 132}, {36, 2619000}, {37, 5120},  {38, 50 << 20},
                               {75, 9},       {76, 0},   {81, 233472},  {97, 232448}};
  for (const auto& fact : kFacts)
    if (fact[0] == attribute) *value = fact[1];
  return call();
}
int cuDevicePrimaryCtxRetain(void** context, int) { return ++contexts, give(context, handle()); }
int lossy_contexts() { return contexts; }
int cuCtxSetCurrent(void*) { return call(); }
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = size_t(1) << 30;
  *free = *total - std::min(*total, held);
  return call();
}
int cuMemAlloc_v2(uint64_t* address, size_t size) {
  const auto memory =
      uint64_t(reinterpret_cast<uintptr_t>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096)));
  held += memories[memory] = size;
  return give(address, memory);
}
int cuMemFree_v2(uint64_t address) {
  held -= memories[address], memories.erase(address);
  std::free(reinterpret_cast<void*>(uintptr_t(address)));
  return call();
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t size) {
  std::memcpy(reinterpret_cast<void*>(uintptr_t(to)), from, size);
  return call();
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t size) {
  std::memcpy(to, reinterpret_cast<const void*>(uintptr_t(from)), size);
  return call();
}
int cuMemsetD32Async(uint64_t to, unsigned, size_t, void*) { return add_node(to, false), call(); }
int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) { return give(module, handle()); }
int cuModuleUnload(void*) { return call(); }
int cuModuleGetFunction(void** function, void*, const char*) { return give(function, handle()); }
int cuFuncSetAttribute(void*, int, int) { return call(); }
int cuLaunchKernelEx(const Config* config, void*, void** parameters, void**) {
  constexpr unsigned kProgrammaticSerialization = 6;
  bool early = false;
  for (unsigned i = 0; i < config->count; ++i)
    early |= config->attributes[i].id == kProgrammaticSerialization && config->attributes[i].value[0];
  add_node(*static_cast<const uint64_t*>(parameters[0]), early,
           config->block[0] * config->block[1] * config->block[2]);
  return call();
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, void*, int, size_t) { return give(count, 2); }
int cuStreamCreate(void** stream, unsigned) { return give(stream, handle()); }
int cuStreamSynchronize(void*) { return idle_since = Clock::now(), call(); }
int cuStreamBeginCapture_v2(void*, int) {
  captured.clear(), capturing = true;
  return call();
}
int cuStreamEndCapture(void*, void** graph) {
  capturing = false;
  return give(graph, static_cast<void*>(new Nodes(captured)));
}
int cuGraphGetEdges_v2(void* graph, void** from, void** to, Edge* edges, size_t* count) {
  const Nodes& nodes = *static_cast<const Nodes*>(graph);
  if (!from) return give(count, nodes.empty() ? size_t(0) : nodes.size() - 1);
  for (size_t i = 0; i < *count; ++i)
    from[i] = handle_of(i), to[i] = handle_of(i + 1), edges[i] = nodes[i + 1].edge;
  return call();
}
int cuGraphRemoveDependencies_v2(void* graph, void* const*, void* const* to, const Edge* edges,
                                 size_t count) {
  for (size_t i = 0; i < count; ++i) {
    Node& node = node_of(graph, to[i]);
    if (node.edge.type != edges[i].type || node.edge.from_port != edges[i].from_port)
      return 1; // there is no such edge
    node.edge = {9, 9, 9, {}};
  }
  return call();
}
int cuGraphAddDependencies_v2(void* graph, void* const*, void* const* to, const Edge* edges, size_t count) {
  for (size_t i = 0; i < count; ++i) node_of(graph, to[i]).edge = edges[i];
  return call();
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return give(executable, static_cast<void*>(new Nodes(*static_cast<const Nodes*>(graph))));
}
int cuGraphUpload(void*, void*) { return call(); }
int cuGraphLaunch(void* executable, void*) {
  now += duration(*static_cast<const Nodes*>(executable));
  return call();
}
int cuGraphExecDestroy(void* executable) { return delete static_cast<Nodes*>(executable), call(); }
int cuGraphDestroy(void* graph) { return delete static_cast<Nodes*>(graph), call(); }
int cuEventCreate(void** event, unsigned) { return give(event, static_cast<void*>(new double(0))); }
int cuEventRecord(void* event, void*) { return *static_cast<double*>(event) = now, call(); }
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  const double passed = *static_cast<const double*>(end) - *static_cast<const double*>(begin);
  return give(milliseconds, passed > 0 ? float(passed * 1e-3) : 0.01F);
}

} // extern "C"
