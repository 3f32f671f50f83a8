#include "tests/amd_sim/hip/hip_hook.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "base/text/sha256.h"
#include "tests/amd_sim/machine/launch.h"
#include "tests/amd_sim/machine/program.h"
#include "tests/fake_hip/code_object.h"
#include "tests/ptx_sim/program/fault.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

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

/// Read once: a tool launches the same kernel again and again.
const Program& program_of(const std::string& ir, const std::string& entry, const std::string& arch) {
  static std::map<std::array<std::string, 3>, std::unique_ptr<const Program>> read;
  std::unique_ptr<const Program>& program = read[{ir, entry, arch}];
  if (!program) program = std::make_unique<const Program>(ir, entry, Chip(arch));
  return *program;
}

/// Device memory as the simulator has it, with addresses of its own: a region for each allocation, which
/// stays for the launches that follow.
class DeviceMemory {
public:
  size_t region_of(void* begin, size_t bytes) {
    auto [at, fresh] = regions_.emplace(std::pair(begin, bytes), 0);
    if (!fresh) return at->second;
    const size_t region = at->second = memory.add("", bytes, 0, true);
    std::fill_n(memory[region].owned.begin(), bytes, uint8_t(1));
    bytes_ += bytes;
    return region;
  }
  /// So that what a program has freed does not fill this host's memory: a byte takes fourteen here.
  void forget_much() {
    if (bytes_ > kMost) memory = {}, regions_.clear(), bytes_ = 0;
  }

  ptx_sim::GlobalMemory memory;

private:
  static constexpr size_t kMost = size_t(64) << 20;
  std::map<std::pair<void*, size_t>, size_t> regions_;
  size_t bytes_ = 0;
};

/// The allocations that a launch's arguments point into, as they are now.
class Allocations {
public:
  Allocations(const fake_hip_launch& launch, DeviceMemory& device) : launch_(launch), device_(device) {}

  /// The simulated address of what is a pointer into an allocation; other values are themselves.
  uint64_t translate(uint64_t value) {
    void* begin = nullptr;
    size_t bytes = 0;
    if (!launch_.allocation_of(reinterpret_cast<const void*>(value), &begin, &bytes)) return value;
    const size_t region = device_.region_of(begin, bytes);
    ptx_sim::GlobalMemory::Region& r = device_.memory[region];
    if (region_of_.emplace(begin, region).second) {
      r.name = "allocation " + std::to_string(region_of_.size());
      std::memcpy(r.bytes.data(), begin, bytes);
    }
    return r.base + (value - reinterpret_cast<uint64_t>(begin));
  }

  void write_back() const {
    for (const auto& [begin, region] : region_of_) {
      const ptx_sim::GlobalMemory::Region& r = device_.memory[region];
      std::memcpy(static_cast<uint8_t*>(begin) + r.changed_from, r.bytes.data() + r.changed_from,
                  r.changed_to - r.changed_from);
    }
  }

private:
  const fake_hip_launch& launch_;
  DeviceMemory& device_;
  std::map<void*, size_t> region_of_;
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
  static DeviceMemory device_memory; // the library calls one at a time
  device_memory.forget_much();
  Allocations allocations(*launch, device_memory);
  const auto arguments = arguments_of(*launch, allocations);
  const std::string device = launch->device;
  LaunchShape shape;
  shape.entry = launch->kernel, shape.shared = launch->dynamic_shared;
  for (size_t i = 0; i < 3; ++i) shape.grid[i] = launch->grid[i], shape.block[i] = launch->block[i];
  try {
    const Program& program = program_of(*ir, shape.entry, device.substr(0, device.find(':')));
    run_launch(program, shape, arguments, device_memory.memory, 1);
  } catch (const ptx_sim::Fault& f) {
    std::fprintf(stderr, "fault in %s: %s\n", launch->kernel, f.what());
    return kLaunchFailure;
  }
  allocations.write_back();
  return 0;
}

} // namespace deepgen::amd_sim
