#include "base/kernel/kernel.h"
#include "base/kernel/seal.h"
#include "base/text/sha256.h"
#include "tests/fuzz/target.h"

namespace deepgen::fuzz {
namespace {

/// Each kernel's hash as it should be, where the sizes are within the bytes.
void correct_hashes(Json& kernels, const std::string& code) {
  size_t at = 0;
  for (Json& k : kernels) {
    std::string parts[2];
    for (size_t i : {0, 1}) {
      const auto size = k.is_object() ? k.find(i ? "ptx_bytes" : "code_bytes") : k.end();
      if (!k.is_object() || size == k.end() || !size->is_number_unsigned() ||
          size->get<size_t>() > code.size() - at)
        continue;
      parts[i] = code.substr(at, size->get<size_t>());
      at += parts[i].size();
    }
    if (k.is_object()) k["sha256"] = sha256_hex(parts[0].empty() ? parts[1] : parts[0]);
  }
}

} // namespace

std::string resealed(const std::string& input) {
  const size_t line = input.find('\n');
  if (line == std::string::npos) return input;
  Json head = Json::parse(input.substr(0, line), nullptr, false);
  if (!head.is_object()) return input;
  const std::string code = input.substr(line + 1);
  head.erase("digest");
  if (head.contains("kernels") && head["kernels"].is_array()) correct_hashes(head["kernels"], code);
  return seal(head.dump(-1, ' ', false, Json::error_handler_t::replace), code);
}

} // namespace deepgen::fuzz

namespace deepgen {
namespace {

void run_kernel(const std::string& input) {
  for (const std::string& bytes : {input, fuzz::resealed(input)})
    fuzz::round_trip(
        bytes, [](const std::string& text) { return KernelFile::parse(text, "kernel"); },
        [](const KernelFile& file) { return file.serialize(); });
}
const fuzz::Target kernel_target("kernel", run_kernel);

} // namespace
} // namespace deepgen
