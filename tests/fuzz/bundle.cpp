#include "remote/bundle.h"
#include "base/text/sha256.h"
#include "remote/message.h"
#include "remote/sites.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

/// Reading piece by piece tells the same length as reading all at once, and never a shorter one.
void check_size(const std::string& input) {
  std::optional<size_t> size;
  for (size_t n = 0; n <= input.size() && !size; ++n) size = bundle_size(input.substr(0, n), "bundle");
  fuzz::require(!size || bundle_size(input, "bundle") == size,
                "a bundle's length changes with what is behind its first line");
}

/// A bundle from a hostile host: read or refused, and no name in it leads out of a folder.
void run_bundle(const std::string& input) {
  try {
    check_size(input);
  } catch (const Error&) {
  }
  fuzz::round_trip(
      input, [](const std::string& text) { return Bundle::parse(text, "bundle"); },
      [](const Bundle& bundle) { return bundle.serialize(); });
  try {
    const Bundle bundle = Bundle::parse(input, "bundle");
    for (const BundleFile& file : bundle.files)
      fuzz::require(("/" + file.name + "/").find("/../") == std::string::npos && !file.name.starts_with("/"),
                    "a file's name leads out of a folder");
    if (bundle.head.contains("command"))
      Request::from_json(bundle.head, "bundle");
    else
      Response::from_json(bundle.head, "bundle");
  } catch (const Error&) {
  }
}
const fuzz::Target bundle_target("bundle", run_bundle);

/// The body of a bundle, with its length and checksum: a changed one would not be looked at at all.
void run_body(const std::string& input) {
  const std::string size = std::to_string(input.size());
  run_bundle("deepgen.bundle/1 " + size + "\n" + input + "deepgen.end " + size + " " + sha256_hex(input) +
             "\n");
  try {
    Started::parse("deepgen.worker/1 " + input.substr(0, input.find('\n')));
  } catch (const Error&) {
  }
}
const fuzz::Target message_target("message", run_body);

void run_sites(const std::string& input) {
  try {
    Sites::parse(input, "sites");
  } catch (const Error&) {
  }
}
const fuzz::Target sites_target("sites", run_sites);

} // namespace
} // namespace deepgen
