// libcuda.so.1 as deepgen-measure loads it, without a device: memory is the host's, kernels do nothing, and so what
// verifies a kernel finds nothing wrong. It shows what becomes of a search when the driver fails.
//   FAKE_DRIVER_FAILS=<file> <n> <code>   the n-th call that all processes with this file make together fails with the
//                                         code, and every later one of the process that made it: its context is lost.
//                                         Call 0: all of all processes
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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
  void* page = fd >= 0 && ftruncate(fd, 4096) == 0 ? mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
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

template <typename T> int give(T* out, T value) {
  const int code = call();
  if (code == 0) *out = value;
  return code;
}

void* handle() {
  static char one;
  return &one;
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
  constexpr int kFacts[][2] = {{13, 1980000}, {16, 132}, {36, 2619000}, {37, 5120}, {38, 50 << 20},
                               {75, 9},       {76, 0},   {81, 233472},  {97, 232448}};
  for (const auto& fact : kFacts)
    if (fact[0] == attribute) *value = fact[1];
  return call();
}
int cuDevicePrimaryCtxRetain(void** context, int) { return give(context, handle()); }
int cuCtxSetCurrent(void*) { return call(); }
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t(1) << 30;
  return call();
}
int cuMemAlloc_v2(uint64_t* address, size_t size) {
  return give(address, uint64_t(reinterpret_cast<uintptr_t>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096))));
}
int cuMemFree_v2(uint64_t address) {
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
int cuMemsetD32Async(uint64_t, unsigned, size_t, void*) { return call(); }
int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) { return give(module, handle()); }
int cuModuleUnload(void*) { return call(); }
int cuModuleGetFunction(void** function, void*, const char*) { return give(function, handle()); }
int cuFuncSetAttribute(void*, int, int) { return call(); }
int cuLaunchKernelEx(const void*, void*, void**, void**) { return call(); }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, void*, int, size_t) { return give(count, 2); }
int cuStreamCreate(void** stream, unsigned) { return give(stream, handle()); }
int cuStreamSynchronize(void*) { return call(); }
int cuStreamBeginCapture_v2(void*, int) { return call(); }
int cuStreamEndCapture(void*, void** graph) { return give(graph, handle()); }
int cuGraphInstantiateWithFlags(void** graph, void*, unsigned long long) { return give(graph, handle()); }
int cuGraphUpload(void*, void*) { return call(); }
int cuGraphLaunch(void*, void*) { return call(); }
int cuGraphExecDestroy(void*) { return call(); }
int cuGraphDestroy(void*) { return call(); }
int cuEventCreate(void** event, unsigned) { return give(event, handle()); }
int cuEventRecord(void*, void*) { return call(); }
int cuEventElapsedTime(float* milliseconds, void*, void*) { return give(milliseconds, 0.01F); }

} // extern "C"
