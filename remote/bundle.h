// Bundle: some files under one head, as bytes that may come over any launcher: they may end anywhere, and be
// anybody's.
#pragma once

#include "base/json/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace deepgen {

struct BundleFile {
  std::string name; ///< relative, '/' between folders, none of them ".."
  std::string bytes;
  bool operator==(const BundleFile&) const = default;
};

/// As bytes: a line with the length of the body; the body, which is the head as a line of JSON and then each
/// file behind a line with its length and name; a line with the length again and the body's SHA-256.
struct Bundle {
  Json head = Json::object();
  std::vector<BundleFile> files;

  const std::string* find(const std::string& name) const; ///< bytes of a file; nullptr when it is not there
  std::string serialize() const;
  /// Throws Error, naming `where`, for all but what serialize() writes.
  static Bundle parse(const std::string& text, const std::string& where);
};

/// How long the bundle is that begins with `text`, trailer included; nothing while that cannot be told yet.
/// Throws Error when it is none.
std::optional<size_t> bundle_size(const std::string& text, const std::string& where);
/// Why a file must not have the name; empty when it may.
std::string why_no_bundle_name(const std::string& name);

} // namespace deepgen
