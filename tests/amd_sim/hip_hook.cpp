#include "tests/amd_sim/hip_hook.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "base/text/sha256.h"
#include "tests/amd_sim/launch.h"
#include "tests/fake_hip/code_object.h"
#include "tests/ptx_sim/fault.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace deepgen::amd_sim {
namespace {

constexpr int kLaunchFailure = 719, kInvalidImage = 200;

std::map<std::string, std::string>& known() {
  static std::map<std::string, std::string> ir_of_code;
  return ir_of_code;
}

/// Null where nobody has told what the code was made from.
const std::string* ir_of(const std::string& code) {
  auto at = known().find(code);
  const char* folder = std::getenv("DEEPGEN_KEEP_IR");
  if (at == known().end() && folder && *folder) {
    const std::string file = std::string(folder) + "/" + sha256_hex(code) + ".ll";
    if (file_exists(file)) at = known().emplace(code, read_file(file)).first;
  }
  return at == known().end() ? nullptr : &at->second;
}

/// The allocations that a launch's arguments point into, as regions of the simulated memory, which has
/// addresses of its own.
class Allocations {
public:
  explicit Allocations(const fake_hip_launch& launch) : launch_(launch) {}

  /// The simulated address of what is a pointer into an allocation; other values are themselves.
  uint64_t translate(uint64_t value) {
    void* begin = nullptr;
    size_t bytes = 0;
    if (!launch_.allocation_of(reinterpret_cast<const void*>(value), &begin, &bytes)) return value;
    auto [at, fresh] = region_of_.emplace(begin, 0);
    if (fresh) {
      at->second = memory.add("allocation " + std::to_string(region_of_.size()), bytes, 0, true);
      ptx_sim::GlobalMemory::Region& r = memory[at->second];
      std::memcpy(r.bytes.data(), begin, bytes);
      std::fill(r.owned.begin(), r.owned.begin() + int64_t(bytes), uint8_t(1));
      bytes_[begin] = bytes;
    }
    return memory[at->second].base + (value - reinterpret_cast<uint64_t>(begin));
  }

  void write_back() const {
    for (const auto& [begin, region] : region_of_)
      std::memcpy(begin, memory[region].bytes.data(), bytes_.at(begin));
  }

  ptx_sim::GlobalMemory memory;

private:
  const fake_hip_launch& launch_;
  std::map<void*, size_t> region_of_, bytes_;
};

std::vector<std::vector<uint8_t>> arguments_of(const fake_hip_launch& launch, Allocations& allocations) {
  const auto* segment = static_cast<const uint8_t*>(launch.kernarg);
  std::vector<std::vector<uint8_t>> arguments;
  const fake_hip::CodeObject object =
      fake_hip::parse_code_object(static_cast<const char*>(launch.code), launch.code_bytes);
  for (const fake_hip::KernelArgument& a : object.find(launch.kernel)->arguments) {
    std::vector<uint8_t> bytes(segment + a.offset, segment + a.offset + a.size);
    if (a.kind == "global_buffer") {
      uint64_t value = 0;
      std::memcpy(&value, bytes.data(), sizeof value);
      value = allocations.translate(value);
      std::memcpy(bytes.data(), &value, sizeof value);
    }
    arguments.push_back(bytes);
  }
  return arguments;
}

} // namespace

void know(const std::string& code, const std::string& ir) { known()[code] = ir; }

int run_on_simulator(const fake_hip_launch* launch) {
  const std::string* ir = ir_of(std::string(static_cast<const char*>(launch->code), launch->code_bytes));
  if (!ir) {
    std::fprintf(stderr, "simulated device: nobody knows what %s was made from; see DEEPGEN_KEEP_IR\n",
                 launch->kernel);
    return kInvalidImage;
  }
  Allocations allocations(*launch);
  const auto arguments = arguments_of(*launch, allocations);
  const std::string device = launch->device;
  LaunchShape shape;
  shape.entry = launch->kernel, shape.shared = launch->dynamic_shared;
  for (size_t i = 0; i < 3; ++i) shape.grid[i] = launch->grid[i], shape.block[i] = launch->block[i];
  try {
    allocations.memory.start_launch();
    run_launch(*ir, device.substr(0, device.find(':')), shape, arguments, allocations.memory, 1);
  } catch (const ptx_sim::Fault& f) {
    std::fprintf(stderr, "fault in %s: %s\n", launch->kernel, f.what());
    return kLaunchFailure;
  }
  allocations.write_back();
  return 0;
}

} // namespace deepgen::amd_sim
