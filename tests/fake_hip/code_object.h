// What an AMD code object says of itself: its target, and how each kernel wants its arguments. Read from the
// ELF header and the metadata note (LLVM's AMDGPU usage guide, "Code Object Metadata", versions 4 to 6).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fake_hip {

struct KernelArgument {
  uint32_t offset = 0, size = 0;
  std::string kind; ///< "global_buffer", "by_value", "hidden_..."
  bool operator==(const KernelArgument&) const = default;
};

struct KernelInfo {
  std::string name;
  std::vector<KernelArgument> arguments; ///< hidden ones too
  uint32_t kernarg_bytes = 0, group_bytes = 0, private_bytes = 0, most_threads = 1024, wavefront = 64;
  std::vector<uint32_t> required_block; ///< three, or none
};

struct CodeObject {
  std::string target; ///< "gfx942:sramecc+"
  int version = 4;
  std::vector<KernelInfo> kernels;
  const KernelInfo* find(const std::string& name) const;
};

/// Throws std::runtime_error saying what is wrong with the bytes, which may be any. `bytes` may be more than
/// the object has.
CodeObject parse_code_object(const char* data, size_t bytes);

/// How many bytes the ELF file at `data` has, by its own headers; 0 when it is none.
size_t code_object_bytes(const char* data);

/// An ELF file of headers and metadata alone: what loads it sees kernels, of which none can run.
std::string make_code_object(const CodeObject&);

/// The layout that a compiler gives arguments of these sizes: each at a multiple of its own.
std::vector<KernelArgument> lay_out(const std::vector<uint32_t>& sizes);

} // namespace fake_hip
