#include "base/search/vendor_call.h"

#include "base/json/json_text.h"
#include "base/kernel/device.h"
#include "base/problem/lt_fusion.h"

#include <cstdio>
#include <limits>

namespace deepgen {
namespace {

constexpr const char* kOpenBlas = "openblas";
constexpr size_t kHexDigits = 16, kWords = 8;
constexpr int64_t kMostWorkspace = int64_t(1) << 30; ///< what a kernel may ask its caller for

/// "13.1.0", "0.3.21": the runtime compares it with what the library says.
bool is_version(const std::string& text) {
  return !text.empty() && text.size() < 20 && text.find_first_not_of("0123456789.") == std::string::npos;
}

bool is_hex(const std::string& text) {
  return text.size() == kHexDigits * kWords &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string why_not_on_cpu(const Gemm& p) {
  if (p.a != Type::f32 && p.a != Type::f64)
    return "what multiplies " + to_string(p.a) + " here is oneDNN, which functions do not call";
  const auto most = int64_t(std::numeric_limits<int>::max());
  return p.m > most || p.n > most || p.k > most ? "a BLAS counts in ints, and a size is larger" : "";
}

std::string why_not_on_gpu(const Gemm& p, bool amd) {
  const std::string name = amd ? "hipBLASLt" : "cuBLASLt";
  const bool converts = !amd && p.d == Type::i8 && p.epilogue.empty();
  if (is_integer(p.a) && p.d != Type::i32 && !converts)
    return name + "'s sums of integers need a conversion behind them";
  const LtFusion f = fuse_lt(p);
  return f.rest.empty() ? "" : name + " needs a kernel behind it for " + epilogue_text(f.rest);
}

} // namespace

std::string VendorCall::config(const Problem& p) const {
  std::string out = library + " " + version + (text.empty() ? "" : ", " + text);
  if (library == kOpenBlas && !p.gemm().epilogue.empty()) out += ", then " + epilogue_text(p.gemm().epilogue);
  return out;
}

Json to_json(const VendorCall& c) {
  Json json = {{"library", c.library}, {"version", c.version}};
  if (!c.algorithm.empty()) json["algorithm"] = c.algorithm;
  if (!c.text.empty()) json["text"] = c.text;
  if (c.workspace) json["workspace"] = c.workspace;
  return json;
}

VendorCall vendor_call_from(const Json& json, const std::string& where) {
  VendorCall c;
  c.library = get_word(json, "library", where);
  c.version = get_name(json, "version", where);
  if (json.contains("algorithm")) c.algorithm = get_name(json, "algorithm", where);
  if (json.contains("text")) c.text = get_name(json, "text", where);
  if (json.contains("workspace")) c.workspace = get_count(json, "workspace", where);
  return c;
}

std::optional<VendorCall> get_vendor_call(const Json& json, const std::string& key,
                                          const std::string& where) {
  if (!json.contains(key)) return std::nullopt;
  return vendor_call_from(get<Json>(json, key, where), where);
}

std::array<uint64_t, 8> algorithm_words(const std::string& hex) {
  if (!is_hex(hex))
    throw Error("an algorithm of a vendor's library is not " + std::to_string(kHexDigits * kWords) +
                    " lower-case hex digits",
                std::to_string(hex.size()) + " characters");
  std::array<uint64_t, kWords> words{};
  for (size_t i = 0; i < kWords; ++i)
    words[i] = std::stoull(hex.substr(i * kHexDigits, kHexDigits), nullptr, 16);
  return words;
}

std::string algorithm_hex(const std::array<uint64_t, 8>& words) {
  std::string hex;
  char text[kHexDigits + 1];
  for (const uint64_t word : words) {
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(word));
    hex += text;
  }
  return hex;
}

std::string why_no_call(const Problem& problem, const std::string& arch) {
  if (problem.op() != "gemm") return "functions call vendors' libraries for products of matrices alone";
  const Gemm& p = problem.gemm();
  if (p.ranged()) return "a size is a range, and the vendor was timed at some sizes alone";
  if (p.groups) return "a library multiplies one group of rows at a time";
  if (p.gate) return "a library has no gates";
  if (p.packed_b) return "no library takes what deepgen_pack_b() makes of B";
  if (p.threads > 1) return "no fallback is chosen for calls of several threads (THREADS)";
  if (arch == "cpu") return why_not_on_cpu(p);
  if (!is_gpu(arch)) return "functions do not call the libraries of " + arch;
  return why_not_on_gpu(p, is_amd(arch));
}

std::string vendor_library(const std::string& arch) {
  return arch == "cpu" ? kOpenBlas : is_amd(arch) ? "hipblaslt" : "cublaslt";
}

std::string why_unusable(const VendorCall& c, const Problem& p, const std::string& arch) {
  const std::string expected = vendor_library(arch);
  if (std::string why = why_no_call(p, arch); !why.empty()) return "its vendor call: " + why;
  if (c.library != expected) return "its vendor call is of '" + c.library + "', not of " + expected;
  if (!is_version(c.version)) return "its vendor call has no version: '" + c.version + "'";
  if (c.workspace > kMostWorkspace) return "its vendor call wants more workspace than any kernel may";
  if (arch == "cpu")
    return c.algorithm.empty() && !c.workspace ? ""
                                               : "its vendor call has an algorithm, which OpenBLAS has not";
  return is_hex(c.algorithm) ? "" : "the algorithm of its vendor call is not 128 lower-case hex digits";
}

bool is_loss(const std::string& verdict) { return verdict == "loss" || verdict == "power-limited loss"; }

} // namespace deepgen
