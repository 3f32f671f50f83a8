#include "base/files/kept_file.h"

#include "base/files/files.h"
#include "base/text/sha256.h"

#include <filesystem>
#include <system_error>

namespace deepgen {
namespace {

constexpr size_t kDigitsOfHash = 64;

} // namespace

std::optional<std::string> kept_file(const std::string& path) {
  if (!file_exists(path)) return std::nullopt;
  const std::string text = read_file(path);
  if (text.size() < kDigitsOfHash) return std::nullopt;
  std::string bytes = text.substr(kDigitsOfHash);
  if (text.compare(0, kDigitsOfHash, sha256_hex(bytes)) != 0) return std::nullopt;
  std::error_code ignored;
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), ignored);
  return bytes;
}

void keep_file(const std::string& path, const std::string& bytes) {
  write_if_changed(path, sha256_hex(bytes) + bytes);
}

} // namespace deepgen
