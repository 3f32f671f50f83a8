#include "measure/values/attention/host_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace deepgen {
namespace {

constexpr int64_t kMostThreads = 16; ///< whose stacks and arenas a sandbox has room for

} // namespace

void on_host_threads(int64_t count, const std::function<void(int64_t)>& task) {
  std::atomic<int64_t> next = 0;
  std::exception_ptr thrown;
  std::mutex guard;
  const auto work = [&] {
    try {
      for (int64_t i = next++; i < count; i = next++) task(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(guard);
      if (!thrown) thrown = std::current_exception();
    }
  };
  const int64_t threads = std::min({count, kMostThreads, int64_t(std::thread::hardware_concurrency())});
  std::vector<std::thread> others;
  try {
    while (int64_t(others.size()) + 1 < threads) others.emplace_back(work);
  } catch (const std::system_error&) { // no more threads to be had: those that there are do it
  }
  work();
  for (std::thread& t : others) t.join();
  if (thrown) std::rethrow_exception(thrown);
}

} // namespace deepgen
