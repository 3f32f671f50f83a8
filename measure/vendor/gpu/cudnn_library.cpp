#include "measure/vendor/gpu/cudnn_library.h"

#include "base/files/library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <utility>

namespace deepgen::cuda {
namespace {

constexpr size_t kOldest = 90000,
                 kNext = 100000; ///< versions that have this interface, and the first without

template <typename T>
bool find(void* library, T& slot, const char* symbol) {
  slot = reinterpret_cast<T>(dlsym(library, symbol));
  return slot != nullptr;
}

bool find_calls(void* library, CudnnLibrary& c) {
  find(library, c.error_string, "cudnnGetErrorString");
  find(library, c.last_error_string, "cudnnGetLastErrorString");
  bool complete = find(library, c.create, "cudnnCreate");
  complete &= find(library, c.set_stream, "cudnnSetStream");
  complete &= find(library, c.create_descriptor, "cudnnBackendCreateDescriptor");
  complete &= find(library, c.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  complete &= find(library, c.finalize, "cudnnBackendFinalize");
  complete &= find(library, c.set_attribute, "cudnnBackendSetAttribute");
  complete &= find(library, c.get_attribute, "cudnnBackendGetAttribute");
  complete &= find(library, c.execute, "cudnnBackendExecute");
  return complete;
}

std::string file_of(size_t (*call)()) {
  Dl_info place = {};
  dladdr(reinterpret_cast<const void*>(call), &place);
  return place.dli_fname ? place.dli_fname : "";
}

/// 90602 -> 9.6.2; before 9: 8907 -> 8.9.7
std::string version_text(size_t number) {
  const size_t major = number < 10000 ? 1000 : 10000;
  return "cudnn " + std::to_string(number / major) + "." + std::to_string(number % major / 100) + "." +
         std::to_string(number % 100);
}

const char* name_of(CudnnKind kind) {
  switch (kind) {
  case CudnnKind::pointwise:
  case CudnnKind::pointwise_operation:
    return "an elementwise operation";
  case CudnnKind::engine:
    return "an engine";
  case CudnnKind::engine_config:
    return "an engine's config";
  case CudnnKind::heuristic:
    return "the heuristic";
  case CudnnKind::plan:
    return "a plan";
  case CudnnKind::knob_choice:
    return "a knob";
  case CudnnKind::graph:
    return "the graph";
  case CudnnKind::variant_pack:
    return "the operands";
  case CudnnKind::tensor:
    return "a tensor";
  case CudnnKind::matmul:
  case CudnnKind::matmul_operation:
    return "a product";
  case CudnnKind::reduction:
  case CudnnKind::reduction_operation:
    return "a reduction";
  case CudnnKind::pages_operation:
    return "a load of pages";
  }
  return "a descriptor";
}

std::string attribute_of(CudnnAttribute attribute, CudnnKind kind) {
  return "attribute " + std::to_string(int(attribute)) + " of " + name_of(kind);
}

/// The library's words, as one line of a log.
std::string one_line(const char* text) {
  constexpr size_t kMost = 200;
  std::string line;
  for (; *text && line.size() < kMost; ++text) {
    const bool blank = static_cast<unsigned char>(*text) <= ' ';
    if (!blank || (!line.empty() && line.back() != ' ')) line += blank ? ' ' : *text;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

} // namespace

CudnnType type_of(Type t) {
  return t == Type::f16    ? CudnnType::f16
         : t == Type::bf16 ? CudnnType::bf16
         : t == Type::e4m3 ? CudnnType::e4m3
                           : CudnnType::f32;
}

CudnnLibrary CudnnLibrary::open() {
  CudnnLibrary c = {};
  c.version = "cudnn";
  const char* path = std::getenv("DEEPGEN_CUDNN");
  const bool named = path && *path;
  const OpenedLibrary found =
      named ? open_library({path})
            : open_library({"libcudnn.so.9", "libcudnn_graph.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"});
  size_t (*version)() = nullptr;
  if (!found)
    c.why_not = found.absence(named ? "no cuDNN here: DEEPGEN_CUDNN names " + std::string(path)
                                    : "no cuDNN here (libcudnn.so.9; DEEPGEN_CUDNN can name the file)");
  else if (!find(found.handle, version, "cudnnGetVersion"))
    c.why_not = "the library that DEEPGEN_CUDNN names, or libcudnn.so.9, has no cudnnGetVersion";
  else if (c.number = version(), c.version = version_text(c.number), c.file = file_of(version);
           c.number < kOldest)
    c.why_not = c.version + " is too old: 9.0 or later";
  else if (c.number >= kNext)
    c.why_not = c.version + " may have another interface: 9 is known here";
  else if (!find_calls(found.handle, c))
    c.why_not = c.version + " lacks calls of the backend API";
  return c;
}

const CudnnLibrary& CudnnLibrary::of_process() {
  static const CudnnLibrary library = open();
  return library;
}

void CudnnLibrary::check(int status, const std::string& call) const {
  if (status == 0) return;
  std::string text = "cuDNN status " + std::to_string(status);
  if (error_string) text += " (" + one_line(error_string(status)) + ")";
  if (const std::string more = last_words(); !more.empty()) text += ": " + more;
  throw DriverError(status, text, call);
}

std::string CudnnLibrary::last_words() const {
  char words[1024] = {};
  if (last_error_string) last_error_string(words, sizeof words - 1);
  return one_line(words);
}

CudnnDescriptor::CudnnDescriptor(const CudnnLibrary& library, CudnnKind kind)
    : library_(library), kind_(kind) {
  library_.check(library_.create_descriptor(int(kind), &descriptor_),
                 std::string("creating ") + name_of(kind));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_) library_.destroy_descriptor(descriptor_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : library_(other.library_), kind_(other.kind_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}

void CudnnDescriptor::set(CudnnAttribute attribute, CudnnElement element, int64_t count,
                          const void* elements) {
  library_.check(library_.set_attribute(descriptor_, int(attribute), int(element), count, elements),
                 "setting " + attribute_of(attribute, kind_));
}

void CudnnDescriptor::finalize() {
  library_.check(library_.finalize(descriptor_), std::string("finalizing ") + name_of(kind_));
}

int64_t CudnnDescriptor::read(CudnnAttribute attribute, CudnnElement element, int64_t asked,
                              void* elements) const {
  int64_t count = 0;
  library_.check(library_.get_attribute(descriptor_, int(attribute), int(element), asked, &count, elements),
                 "reading " + attribute_of(attribute, kind_));
  return count;
}

} // namespace deepgen::cuda
