#include "measure/cuda_take.h"

#include "base/error.h"
#include "measure/cuda_devices.h"

#include <chrono>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace deepgen::cuda {
namespace {

constexpr int kListings = 5; ///< of the devices, a second apart

std::vector<Device> candidates(const Device& model, const std::vector<Device>& attached,
                               const std::string& allowed) {
  std::vector<Device> found;
  for (size_t i = 0; i < attached.size(); ++i)
    if (same_model(model, attached[i]) && is_allowed(attached[i], i, allowed)) {
      found.push_back(attached[i]);
      found.back().arch = model.arch; // sm_90a, where the driver says sm_90
    }
  return found;
}

} // namespace

std::string lock_name(const Device& device) { return "deepgen-" + device.uuid; }

bool same_model(const Device& x, const Device& y) {
  const bool same_arch = x.compute_capability() ? x.compute_capability() == y.compute_capability() : x.arch == y.arch;
  return x.name == y.name && same_arch && x.cores == y.cores &&
         x.l2 == y.l2 && x.shared_block == y.shared_block &&
         x.shared_multiprocessor == y.shared_multiprocessor;
}

bool is_allowed(const Device& device, size_t number, const std::string& list) {
  std::istringstream words(list);
  bool none = true;
  for (std::string word; std::getline(words, word, ',');) {
    if (word.empty()) continue;
    none = false;
    if (word == std::to_string(number) || word == device.name) return true;
    const bool is_number = word.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number && (device.uuid.rfind(word, 0) == 0 || device.uuid.rfind("GPU-" + word, 0) == 0))
      return true;
  }
  return none;
}

Taken take(const Device& model, const std::vector<Device>& attached, const std::string& allowed,
           const std::function<void()>& waiting) {
  const std::vector<Device> devices = candidates(model, attached, allowed);
  if (devices.empty())
    throw Error(
        "no device to measure on", model.name + ", " + model.arch,
        "of " + std::to_string(attached.size()) + " visible GPUs none is of this model" +
            (allowed.empty() ? "" : " and among the allowed: " + allowed),
        "look at CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and DEEPGEN_DEVICES, or delete device.json to find the devices again");
  const auto first = size_t(getpid()); // so that edges that start together try different ones first
  for (auto pause = std::chrono::milliseconds(10);;
       pause = std::min(2 * pause, std::chrono::milliseconds(200))) {
    for (size_t i = 0; i < devices.size(); ++i) {
      const Device& device = devices[(first + i) % devices.size()];
      if (std::optional<FileLock> lock = FileLock::try_of_host(lock_name(device)))
        return {device, std::move(*lock)};
    }
    waiting();
    std::this_thread::sleep_for(pause);
  }
}

/// A GPU that is being reset is not there for a moment, or answers with an error.
Taken take(const Device& model, const std::string& allowed) {
  use(platform_of(model.arch));
  std::string why = "the driver lists no device";
  for (int attempt = 0; attempt < kListings; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    std::vector<Device> attached;
    try {
      attached = devices(platform());
    } catch (const Error& e) {
      why = first_line(e.what());
    }
    if (!attached.empty()) return take(model, attached, allowed, [] {});
  }
  throw Error("the GPU cannot be opened", model.name, why,
              "see `nvidia-smi` or `rocm-smi` and the kernel's log; then run the build again: it goes on here");
}

} // namespace deepgen::cuda
