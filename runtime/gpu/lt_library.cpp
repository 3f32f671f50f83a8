#include "runtime/gpu/lt_library.h"

#include <cstdlib>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

struct Handle {
  const LtLibrary* library;
  int ordinal;
  void* handle;
  Handle* next;
};
Handle* handles = nullptr;

} // namespace

Fallback lt_handle(const LtLibrary& l, int ordinal, void*& handle) {
  for (const Handle* h = handles; h; h = h->next)
    if (h->library == &l && h->ordinal == ordinal) {
      handle = h->handle;
      return Fallback::runs;
    }
  auto* made = static_cast<Handle*>(std::malloc(sizeof(Handle)));
  if (!made || l.create(&handle) != 0) {
    std::free(made);
    return Fallback::refused;
  }
  *made = {&l, ordinal, handle, handles};
  handles = made;
  return Fallback::runs;
}

bool parse_lt_version(const char* text, size_t (&numbers)[3]) {
  for (int i = 0; i < 3; ++i) {
    if (*text < '0' || *text > '9') return false;
    for (numbers[i] = 0; *text >= '0' && *text <= '9' && numbers[i] < 10000; ++text)
      numbers[i] = numbers[i] * 10 + size_t(*text - '0');
    if (*text != (i < 2 ? '.' : '\0')) return false;
    ++text;
  }
  return true;
}

int lt_data_type(uint8_t type) {
  switch (type) {
  case DEEPGEN_F64:
    return 1;
  case DEEPGEN_F16:
    return 2;
  case DEEPGEN_BF16:
    return 14;
  case DEEPGEN_E4M3:
    return 28;
  case DEEPGEN_E5M2:
    return 29;
  case DEEPGEN_I8:
    return 3;
  case DEEPGEN_I32:
    return 10;
  default:
    return 0; // f32, and tf32, which is f32 in memory
  }
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
