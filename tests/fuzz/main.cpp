// The fuzzer's entry points: chooses a target, and mutates JSON as JSON, which changing bytes rarely keeps
// well-formed.
#include "base/json/json.h"
#include "base/kernel/config.h"
#include "tests/fuzz/target.h"

#include <cstring>
#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace deepgen::fuzz {
namespace {

Target* first = nullptr;
const Target* chosen = nullptr;

const Target* find(const std::string& name) {
  for (const Target* t = first; t; t = t->next)
    if (name == t->name) return t;
  std::cerr << "fuzz: no target '" << name << "'; there are:";
  for (const Target* t = first; t; t = t->next) std::cerr << " " << t->name;
  std::cerr << "\n";
  std::exit(2);
}

using Random = std::minstd_rand;

Json* pick(Json& root, Random& random) {
  Json* at = &root;
  while (at->is_structured() && !at->empty() && random() % 4) {
    const size_t index = random() % at->size();
    at = &std::next(at->begin(), int64_t(index)).value();
  }
  return at;
}

Json odd_value(Random& random) {
  static const Json values[] = {0,
                                -1,
                                1,
                                0.5,
                                -0.0,
                                1e300,
                                INT64_MIN,
                                INT64_MAX,
                                UINT64_MAX,
                                true,
                                nullptr,
                                "",
                                "cpu",
                                "sm_90a",
                                "\xc3\xa9\n\"",
                                "*/ #error",
                                "/* // ?"
                                "?/",
                                "\\",
                                "\x1b[2J",
                                "\xe2\x80\xae",
                                Json::array(),
                                Json::object(),
                                Json::array({1, 2, 3})};
  return values[random() % std::size(values)];
}

void mutate(Json& root, Random& random) {
  Json& at = *pick(root, random);
  const Json other = *pick(root, random);
  switch (random() % 4) {
  case 0:
    at = odd_value(random);
    break;
  case 1:
    at = other;
    break;
  case 2:
    if (at.is_structured() && !at.empty()) at.erase(std::next(at.begin(), int64_t(random() % at.size())));
    break;
  default:
    if (at.is_array()) at.push_back(other);
    if (at.is_object()) at[std::to_string(random() % 10)] = other;
    if (at.is_number_integer()) at = at.get<int64_t>() ^ int64_t(uint64_t(1) << random() % 64);
  }
}

/// The document, or one line of it: logs have one on each, a kernel file on its first.
std::string mutated(const std::string& text, Random& random) {
  size_t begin = 0, end = text.size();
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    begin = random() % 2 ? 0 : text.rfind('\n', random() % (text.size() + 1)) + 1;
    end = std::min(text.find('\n', begin), text.size());
    json = Json::parse(text.substr(begin, end - begin), nullptr, false);
  }
  if (json.is_discarded()) return "";
  mutate(json, random);
  return text.substr(0, begin) + json.dump(-1, ' ', false, Json::error_handler_t::replace) + text.substr(end);
}

} // namespace

Target::Target(const char* n, void (*r)(const std::string&)) : name(n), run(r), next(first) { first = this; }

} // namespace deepgen::fuzz

using namespace deepgen::fuzz;

/// Parsing JSON is allocating: short stacks and a small quarantine make a third more inputs a second.
/// ASAN_OPTIONS wins.
extern "C" const char* __asan_default_options() {
  return "malloc_context_size=2:quarantine_size_mb=4:thread_local_quarantine_size_kb=64";
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string option = "--target=";
  for (int i = 1; i < *argc; ++i)
    if (std::string((*argv)[i]).rfind(option, 0) == 0) chosen = find((*argv)[i] + option.size());
  if (!chosen) chosen = find("");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed);
  if (random() % 2) {
    const std::string text = mutated({reinterpret_cast<const char*>(data), size}, random);
    if (!text.empty() && text.size() <= max_size) {
      std::memcpy(data, text.data(), text.size());
      return text.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
