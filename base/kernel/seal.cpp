#include "base/kernel/seal.h"

#include "base/text/error.h"
#include "base/text/sha256.h"

#include <string_view>

namespace deepgen {
namespace {

constexpr std::string_view kDigest = ",\"digest\":\"";
constexpr size_t kBytes = kDigest.size() + 64 + 2; ///< at the end of the head: the digest, "}

} // namespace

std::string seal(const std::string& head, const std::string& rest) {
  const std::string behind = "\n" + rest;
  return head.substr(0, head.size() - 1) + std::string(kDigest) + sha256_hex(head + behind) + "\"}" + behind;
}

void check_seal(const std::string& bytes, size_t line, const std::string& where) {
  if (line < kBytes || bytes.compare(line - kBytes, kDigest.size(), kDigest) != 0)
    throw Error("a kernel file without a digest at the end of its first line", where, "",
                "delete the file and build again");
  const size_t end = line - kBytes;
  const std::string expected = bytes.substr(end + kDigest.size(), 64),
                    found = sha256_hex(bytes.substr(0, end) + "}" + bytes.substr(line));
  if (found != expected)
    throw Error("a kernel file was changed since it was written", where,
                "its bytes have the digest " + found + " instead of " + expected,
                "delete the file and build again");
}

} // namespace deepgen
