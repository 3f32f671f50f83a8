#include "measure/devices/cuda_driver.h"

#include "base/files/library.h"
#include "base/text/memory.h"
#include "measure/devices/hip_driver.h"

#include <dlfcn.h>
#include <vector>

namespace deepgen::cuda {
namespace {

Platform in_use = Platform::cuda;

constexpr int kOutOfMemory = 2;
constexpr int kCaptureThreadLocal = 1;
constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;

std::string error_text(int code) {
  const char *name = nullptr, *text = nullptr;
  if (const Driver* d = driver()) d->cuGetErrorName(code, &name), d->cuGetErrorString(code, &text);
  return std::string(name ? name : "driver error " + std::to_string(code)) +
         (text ? ": " + std::string(text) : "");
}

NoDriver load(Driver& d) {
  const std::string none = "no NVIDIA driver of version 12.0 or later (libcuda.so.1)";
  const OpenedLibrary found = open_library({"libcuda.so.1"});
  if (!found) return {found.absence(none), !found.why.empty()};
  bool complete = true;
  const auto find = [&](auto& slot, const char* symbol, bool needed = true) {
    slot = reinterpret_cast<std::decay_t<decltype(slot)>>(dlsym(found.handle, symbol));
    if (!slot && needed) complete = false;
  };
  // The names with a version are what cuda.h means by the plain ones.
  find(d.cuInit, "cuInit"), find(d.cuDriverGetVersion, "cuDriverGetVersion");
  find(d.cuGetErrorName, "cuGetErrorName"), find(d.cuGetErrorString, "cuGetErrorString");
  find(d.cuDeviceGetCount, "cuDeviceGetCount"), find(d.cuDeviceGet, "cuDeviceGet");
  find(d.cuDeviceGetName, "cuDeviceGetName"), find(d.cuDeviceGetUuid, "cuDeviceGetUuid_v2");
  find(d.cuDeviceGetAttribute, "cuDeviceGetAttribute");
  find(d.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"), find(d.cuCtxSetCurrent, "cuCtxSetCurrent");
  find(d.cuMemGetInfo, "cuMemGetInfo_v2"), find(d.cuMemAlloc, "cuMemAlloc_v2"),
      find(d.cuMemFree, "cuMemFree_v2");
  find(d.cuMemcpyHtoD, "cuMemcpyHtoD_v2"), find(d.cuMemcpyDtoH, "cuMemcpyDtoH_v2");
  find(d.cuMemsetD32Async, "cuMemsetD32Async");
  find(d.cuModuleLoadDataEx, "cuModuleLoadDataEx"), find(d.cuModuleUnload, "cuModuleUnload");
  find(d.cuModuleGetFunction, "cuModuleGetFunction"), find(d.cuFuncSetAttribute, "cuFuncSetAttribute");
  find(d.cuLaunchKernelEx, "cuLaunchKernelEx");
  find(d.cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  find(d.cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", false);
  find(d.cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", false);
  find(d.cuStreamCreate, "cuStreamCreate"), find(d.cuStreamSynchronize, "cuStreamSynchronize");
  find(d.cuStreamBeginCapture, "cuStreamBeginCapture_v2"), find(d.cuStreamEndCapture, "cuStreamEndCapture");
  // Missing before 12.3, whose graphs have full dependencies alone.
  find(d.cuGraphGetEdges, "cuGraphGetEdges_v2", false);
  find(d.cuGraphRemoveDependencies, "cuGraphRemoveDependencies_v2", false);
  find(d.cuGraphAddDependencies, "cuGraphAddDependencies_v2", false);
  find(d.cuGraphInstantiate, "cuGraphInstantiateWithFlags"), find(d.cuGraphUpload, "cuGraphUpload");
  find(d.cuGraphLaunch, "cuGraphLaunch"), find(d.cuGraphExecDestroy, "cuGraphExecDestroy");
  find(d.cuGraphDestroy, "cuGraphDestroy");
  find(d.cuEventCreate, "cuEventCreate"), find(d.cuEventRecord, "cuEventRecord");
  find(d.cuEventElapsedTime, "cuEventElapsedTime");
  return {complete ? "" : none};
}

/// Of a platform: its calls, and why there are none.
struct Loaded {
  Driver table;
  NoDriver none;
  explicit Loaded(NoDriver (*load_it)(Driver&)) : none(load_it(table)) {}
};
const Loaded& loaded() {
  if (in_use == Platform::hip) {
    static const Loaded hip(load_hip);
    return hip;
  }
  static const Loaded cuda(load);
  return cuda;
}

} // namespace

DriverError::DriverError(int c, const std::string& text, const std::string& call)
    : DeviceError(text + ", in " + call), code(c) {}

// Illegal addresses, traps, misaligned accesses, launch time-outs and the like are 700 to 719; refused
// launches (701 and 720) and what came before any kernel ran leave the context as it was.
void DriverError::check_host() const {
  if (others)
    throw HostFault(what(), "", "others use the device",
                    "end them (nvidia-smi, rocm-smi), and run the same command again: it goes on here");
}

bool DriverError::sticky() const {
  return code == 700 || (code >= 702 && code <= 719) || code == 999 || code == 214;
}

void use(Platform p) { in_use = p; }
Platform platform() { return in_use; }
Platform platform_of(const std::string& arch) {
  return arch.rfind("gfx", 0) == 0 ? Platform::hip : Platform::cuda;
}

const Driver* driver() { return loaded().none.why.empty() ? &loaded().table : nullptr; }
const NoDriver& why_no_driver() { return loaded().none; }

void check(int code, const char* call) {
  if (code != 0) throw DriverError(code, error_text(code), call);
}

Context::Context(int ordinal) {
  const Driver* d = driver();
  if (!d) throw DriverError(100, why_no_driver().why, "loading the driver");
  check(d->cuInit(0), "starting the driver");
  check(d->cuDeviceGet(&device_, ordinal), "opening the device");
  void* context = nullptr;
  // The primary one, which libraries on top of the CUDA runtime use too.
  check(d->cuDevicePrimaryCtxRetain(&context, device_), "creating a context");
  check(d->cuCtxSetCurrent(context), "selecting the context");
  check(d->cuStreamCreate(&stream_, 1), "creating a stream"); // 1: does not wait for the default stream
  multiprocessors_ = attribute(Attribute::multiprocessors);
  if (in_use == Platform::hip) target_ = hip_target(ordinal);
}

int Context::attribute(Attribute a) const {
  int value = 0;
  check(driver()->cuDeviceGetAttribute(&value, int(a), device_), "asking for a fact about the device");
  return value;
}

void Context::synchronize() const { check(driver()->cuStreamSynchronize(stream_), "running kernels"); }

namespace {

size_t allocated = 0; ///< by Memory, in this process

/// What would not fit on an empty device either is the problem's or the config's fault. Else somebody else
/// has it.
[[noreturn]] void refuse(size_t bytes) {
  size_t free = 0, total = 0;
  const bool known = driver()->cuMemGetInfo(&free, &total) == 0;
  const std::string what =
      "allocating " + bytes_text(int64_t(bytes)) + " beside " + bytes_text(int64_t(allocated)) +
      (known ? "; of " + bytes_text(int64_t(total)) + " " + bytes_text(int64_t(free)) + " are free" : "");
  DriverError e(kOutOfMemory, "not enough device memory", what);
  e.others = known && allocated + bytes <= total;
  throw e;
}

} // namespace

Memory::Memory(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const int code = driver()->cuMemAlloc(&address_, bytes);
  if (code == kOutOfMemory) refuse(bytes);
  check(code, "allocating device memory");
  allocated += bytes;
}

Memory::~Memory() {
  if (!address_) return;
  driver()->cuMemFree(address_); // fails harmlessly after a sticky error
  allocated -= bytes_;
}

Module::Module(const std::string& image) {
  char log[4096] = "";
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(uintptr_t(sizeof log))};
  const int code = driver()->cuModuleLoadDataEx(&module_, image.c_str(), 2, options, values);
  if (code != 0)
    throw DriverError(code, error_text(code) + (*log ? std::string("; ") + log : ""), "loading code");
}

Module::~Module() {
  if (module_) driver()->cuModuleUnload(module_);
}

Function Module::function(const std::string& entry) const {
  Function f = nullptr;
  check(driver()->cuModuleGetFunction(&f, module_, entry.c_str()),
        ("looking for the entry " + entry).c_str());
  return f;
}

void Graph::begin(Stream stream) {
  check(driver()->cuStreamBeginCapture(stream, kCaptureThreadLocal), "beginning a graph");
}

void Graph::abandon(Stream stream) {
  void* graph = nullptr;
  driver()->cuStreamEndCapture(stream, &graph);
  if (graph) driver()->cuGraphDestroy(graph);
}

namespace {

/// Makes full dependencies of programmatic ones.
int make_serial(void* graph) {
  constexpr unsigned char kProgrammatic = 1; // CUgraphDependencyType
  const Driver& d = *driver();
  if (!d.cuGraphGetEdges || !d.cuGraphRemoveDependencies || !d.cuGraphAddDependencies) return 0;
  size_t count = 0;
  if (const int code = d.cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count)) return code;
  std::vector<void*> from(count), to(count);
  std::vector<GraphEdge> edges(count);
  if (const int code = d.cuGraphGetEdges(graph, from.data(), to.data(), edges.data(), &count)) return code;
  const GraphEdge full;
  for (size_t i = 0; i < count; ++i) {
    if (edges[i].type != kProgrammatic) continue;
    if (const int code = d.cuGraphRemoveDependencies(graph, &from[i], &to[i], &edges[i], 1)) return code;
    if (const int code = d.cuGraphAddDependencies(graph, &from[i], &to[i], &full, 1)) return code;
  }
  return 0;
}

} // namespace

void Graph::end(Stream stream, bool serial) {
  void* graph = nullptr;
  check(driver()->cuStreamEndCapture(stream, &graph), "ending a graph");
  int code = serial ? make_serial(graph) : 0;
  if (code == 0) code = driver()->cuGraphInstantiate(&executable_, graph, 0);
  driver()->cuGraphDestroy(graph);
  check(code, "instantiating a graph");
  check(driver()->cuGraphUpload(executable_, stream), "uploading a graph");
}

Graph::~Graph() {
  if (executable_) driver()->cuGraphExecDestroy(executable_);
}

void Graph::launch(Stream stream) const {
  check(driver()->cuGraphLaunch(executable_, stream), "launching a graph");
}

} // namespace deepgen::cuda
