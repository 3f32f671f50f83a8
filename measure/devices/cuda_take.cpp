#include "measure/devices/cuda_take.h"

#include "base/files/patience.h"
#include "base/text/error.h"
#include "measure/devices/cuda_devices.h"

#include <chrono>
#include <cstdlib>
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

constexpr double kHalfAnHour = 1800;
constexpr int kLooks = 10; ///< at a device for one at who has it

/// A line for each device: who has it.
std::string holders_of(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) {
    const std::string path = host_lock_path(lock_name(device)), holder = lock_holder(path);
    text += (text.empty() ? "" : "\n          ") + path + ": " +
            (holder.empty() ? "a process that cannot be seen here" : holder);
  }
  return text;
}

[[noreturn]] void give_up(const Device& model, const std::string& holders, double seconds) {
  throw HostFault(
      "no device became free", model.name + ", " + model.arch,
      "for " + std::to_string(int(seconds)) + " s all have been held by the same processes:\n          " +
          holders,
      "end these or ask their users to; or name other devices in DEEPGEN_DEVICES, wait longer with "
      "DEEPGEN_DEVICE_WAIT=<seconds>, or build without measuring by -DDEEPGEN_MODE=lock. The same command "
      "goes on here");
}

} // namespace

double longest_hold() {
  const char* text = std::getenv("DEEPGEN_DEVICE_WAIT");
  if (!text || !*text) return kHalfAnHour;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end || !(seconds >= 0 && seconds <= 1e9))
    throw Error("not a time: '" + std::string(text) + "'", "DEEPGEN_DEVICE_WAIT", "",
                "seconds, from 0 to 1e9");
  return seconds;
}

std::string lock_name(const Device& device) { return "deepgen-" + device.uuid; }

bool same_model(const Device& x, const Device& y) {
  const bool same_arch =
      x.compute_capability() ? x.compute_capability() == y.compute_capability() : x.arch == y.arch;
  return x.name == y.name && same_arch && x.cores == y.cores && x.l2 == y.l2 &&
         x.shared_block == y.shared_block && x.shared_multiprocessor == y.shared_multiprocessor;
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
           const std::function<void()>& waiting, double longest) {
  const std::vector<Device> devices = candidates(model, attached, allowed);
  if (devices.empty())
    throw Error("no device to measure on", model.name + ", " + model.arch,
                "of " + std::to_string(attached.size()) + " visible GPUs none is of this model" +
                    (allowed.empty() ? "" : " and among the allowed: " + allowed),
                "look at CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and DEEPGEN_DEVICES, or delete "
                "device.json to find the devices again");
  const auto first = size_t(getpid()); // so that edges that start together try different ones first
  Patience patience(longest);
  std::string holders;
  auto pause = std::chrono::milliseconds(10);
  for (int look = 0;; ++look) {
    for (size_t i = 0; i < devices.size(); ++i) {
      const Device& device = devices[(first + i) % devices.size()];
      if (std::optional<FileLock> lock = FileLock::try_of_host(lock_name(device)))
        return {device, std::move(*lock)};
    }
    waiting();
    if (const std::string now = look % kLooks == 0 ? holders_of(devices) : holders; now != holders) {
      holders = now;
      patience.restart(longest);
    }
    if (patience.left() <= 0) give_up(model, holders, longest);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(100));
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
  throw Error(
      "the GPU cannot be opened", model.name, why,
      "see `nvidia-smi` or `rocm-smi` and the kernel's log; then run the build again: it goes on here");
}

} // namespace deepgen::cuda
