// Memory, streams, graphs and events.
#include "internal.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace fake_hip {
namespace {

struct Graph {
  std::vector<std::pair<double, std::function<int()>>> work;
};
struct Stream {
  double clock = 0; ///< seconds of work that was done
  Graph* capture = nullptr;
  int failure = 0; ///< of work that was done, for the next synchronisation
};
struct Event {
  double at = -1;
};

std::map<uintptr_t, size_t> allocations; ///< by their first byte

Stream& stream_of(void* stream) {
  static Stream of_null;
  return stream ? *static_cast<Stream*>(stream) : of_null;
}

void replay(Stream& s, const Graph& g) {
  for (const auto& [seconds, work] : g.work) {
    s.clock += seconds;
    if (!state().replays) continue;
    if (int r = work()) s.failure = s.failure ? s.failure : r;
  }
}

} // namespace

int allocation_of(const void* address, void** begin, size_t* bytes) {
  auto at = allocations.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (at == allocations.begin()) return 0;
  --at;
  if (reinterpret_cast<uintptr_t>(address) - at->first >= at->second) return 0;
  *begin = reinterpret_cast<void*>(at->first), *bytes = at->second;
  return 1;
}

size_t allocated_bytes() {
  std::lock_guard lock(state().mutex);
  size_t sum = 0;
  for (const auto& [begin, bytes] : allocations) sum += bytes;
  return sum;
}

int enqueue(void* stream, double seconds, std::function<int()> work) {
  Stream& s = stream_of(stream);
  if (s.capture) {
    s.capture->work.emplace_back(seconds, std::move(work));
    return success;
  }
  s.clock += seconds;
  return work();
}

namespace {

/// All of it lies in device memory.
bool is_device_memory(const void* address, size_t bytes) {
  void* begin = nullptr;
  size_t size = 0;
  if (!allocation_of(address, &begin, &size)) return false;
  return static_cast<const char*>(address) + bytes <= static_cast<char*>(begin) + size;
}

int copy(void* to, const void* from, size_t bytes, const void* on_device) {
  if (int r = forbidden_in_capture()) return r;
  if (bytes && !is_device_memory(on_device, bytes)) return invalid_value;
  std::memcpy(to, from, bytes);
  return success;
}

} // namespace
} // namespace fake_hip

using namespace fake_hip;

extern "C" {

int hipMemGetInfo(size_t* free, size_t* total) {
  ENTER(hipMemGetInfo);
  return *free = *total = state().devices.at(size_t(current_device())).memory, success;
}
int hipMalloc(void** address, size_t bytes) {
  ENTER(hipMalloc);
  if (int r = forbidden_in_capture()) return r;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*address) return out_of_memory;
  allocations[reinterpret_cast<uintptr_t>(*address)] = bytes;
  return success;
}
int hipFree(void* address) {
  ENTER(hipFree);
  if (address && !allocations.erase(reinterpret_cast<uintptr_t>(address))) return invalid_value;
  std::free(address);
  return success;
}
int hipMemcpyHtoD(void* to, void* from, size_t bytes) {
  ENTER(hipMemcpyHtoD);
  return copy(to, from, bytes, to);
}
int hipMemcpyDtoH(void* to, void* from, size_t bytes) {
  ENTER(hipMemcpyDtoH);
  return copy(to, from, bytes, from);
}
int hipMemsetD32Async(void* to, int value, size_t count, void* stream) {
  ENTER(hipMemsetD32Async);
  if (!is_device_memory(to, count * sizeof value)) return invalid_value;
  return enqueue(stream, double(count) * 1e-12, [=] {
    // What passes the time sets much memory over and over.
    auto* words = static_cast<int*>(to);
    if (count * sizeof value >= size_t(64) << 20 && words[0] == value && words[count - 1] == value)
      return int(success);
    if (const uint32_t byte = uint8_t(value);
        uint32_t(value) == 0x01010101u * byte) { // much faster, unoptimized
      std::memset(to, int(byte), count * sizeof value);
      return int(success);
    }
    for (size_t i = 0; i < count; ++i)
      std::memcpy(static_cast<char*>(to) + i * sizeof value, &value, sizeof value);
    return int(success);
  });
}

int hipStreamCreateWithFlags(void** stream, unsigned) {
  ENTER(hipStreamCreateWithFlags);
  return *stream = new Stream, success;
}
int hipStreamDestroy(void* stream) {
  ENTER(hipStreamDestroy);
  delete static_cast<Stream*>(stream);
  return success;
}
int hipStreamSynchronize(void* stream) {
  ENTER(hipStreamSynchronize);
  Stream& s = stream_of(stream);
  if (s.capture) return capture_unsupported;
  return std::exchange(s.failure, 0);
}
int hipStreamBeginCapture(void* stream, int mode) {
  ENTER(hipStreamBeginCapture);
  Stream& s = stream_of(stream);
  if (!stream || s.capture) return capture_unsupported; // the default stream cannot be captured
  s.capture = new Graph;
  captures += mode != 2;
  return success;
}
int hipStreamEndCapture(void* stream, void** graph) {
  ENTER(hipStreamEndCapture);
  Stream& s = stream_of(stream);
  if (!s.capture) return capture_unmatched;
  *graph = std::exchange(s.capture, nullptr);
  captures = captures ? captures - 1 : 0;
  return success;
}
int hipGraphInstantiate(void** executable, void* graph, void*, char*, size_t) {
  ENTER(hipGraphInstantiate);
  return *executable = new Graph(*static_cast<Graph*>(graph)), success;
}
int hipGraphLaunch(void* executable, void* stream) {
  ENTER(hipGraphLaunch);
  replay(stream_of(stream), *static_cast<Graph*>(executable));
  return success;
}
int hipGraphExecDestroy(void* executable) {
  ENTER(hipGraphExecDestroy);
  delete static_cast<Graph*>(executable);
  return success;
}
int hipGraphDestroy(void* graph) {
  ENTER(hipGraphDestroy);
  delete static_cast<Graph*>(graph);
  return success;
}
int hipEventCreate(void** event) {
  ENTER(hipEventCreate);
  return *event = new Event, success;
}
int hipEventDestroy(void* event) {
  ENTER(hipEventDestroy);
  delete static_cast<Event*>(event);
  return success;
}
int hipEventRecord(void* event, void* stream) {
  ENTER(hipEventRecord);
  return static_cast<Event*>(event)->at = stream_of(stream).clock, success;
}
int hipEventElapsedTime(float* milliseconds, void* begin, void* end) {
  ENTER(hipEventElapsedTime);
  const double from = static_cast<Event*>(begin)->at, to = static_cast<Event*>(end)->at;
  if (from < 0 || to < 0) return invalid_handle;
  return *milliseconds = float((to - from) * 1e3), success;
}

} // extern "C"
