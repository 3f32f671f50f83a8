// A packed B: its header, and the functions that write and check it.
#include "runtime/core/arguments.h"
#include "runtime/core/pack_panels.h"

#include <cstdio>
#include <cstring>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

/// Before the panels. Its numbers are of the machine's byte order, as the panels' are.
struct PackedHeader {
  char magic[8];
  uint64_t layout;
  uint64_t bytes; ///< of all, with the header
  uint64_t data;  ///< checksum of the panels
  uint64_t seal;  ///< of the four above
  int64_t version;
  char unused[16];
};
static_assert(sizeof(PackedHeader) == packed_header_bytes);
constexpr char magic[9] = "DeepGenB";

uint64_t mixed(uint64_t state, uint64_t word) {
  state = (state ^ word) * 0x9e3779b97f4a7c15u;
  return state ^ state >> 32;
}

uint64_t seal_of(const PackedHeader& x) {
  uint64_t name;
  std::memcpy(&name, x.magic, sizeof name);
  return mixed(mixed(mixed(name, x.layout), x.bytes), x.data);
}

/// Four sums that do not wait for each other; panels are whole lines of 64 bytes.
uint64_t checksum(const char* data, uint64_t bytes) {
  constexpr uint64_t ways = 4;
  uint64_t sums[ways] = {1, 2, 3, 4}, word = 0;
  for (uint64_t at = 0; at < bytes; at += ways * sizeof word)
    for (uint64_t i = 0; i < ways; ++i) {
      std::memcpy(&word, data + at + i * sizeof word, sizeof word);
      sums[i] = mixed(sums[i], word);
    }
  return mixed(mixed(mixed(sums[0], sums[1]), sums[2]), sums[3]);
}

PackedLayout layout_of(const deepgen_packed_b& b) {
  return packed_layout(b.type, b.n, b.k, b.entries, b.gated);
}

/// Whether this runtime can pack for the function; its kernels need not run here.
deepgen_status accept_packing(const deepgen_function* f) {
  if (!f) return DEEPGEN_ERROR_NULL;
  if (!is_current(*f)) return DEEPGEN_ERROR_VERSION;
  return f->packed_b && has_good_operands(*f) ? DEEPGEN_OK : DEEPGEN_ERROR_ARGUMENT;
}

bool is_aligned(const void* x, uintptr_t to) { return uintptr_t(x) % to == 0; }

/// Strides with the defaults for 0 filled in.
deepgen_status complete(const deepgen_packed_b& b, panels::Source& source) {
  const int64_t columns = (b.gated ? 2 : 1) * b.n;
  const int64_t row = b.transposed ? b.k : columns, rows = b.transposed ? columns : b.k;
  if (source.ld == 0) source.ld = row;
  int64_t elements = 0, all = 0;
  if (source.ld < row || __builtin_mul_overflow(rows, source.ld, &elements) ||
      __builtin_mul_overflow(elements, int64_t(8), &all))
    return DEEPGEN_ERROR_LEADING_DIMENSION;
  if (source.stride < DEEPGEN_BROADCAST) return DEEPGEN_ERROR_STRIDE;
  source.stride = source.stride == 0 ? elements : source.stride == DEEPGEN_BROADCAST ? 0 : source.stride;
  if (__builtin_mul_overflow(b.entries - 1, source.stride, &all) ||
      __builtin_add_overflow(all, elements, &all) || __builtin_mul_overflow(all, int64_t(8), &all))
    return DEEPGEN_ERROR_STRIDE;
  return DEEPGEN_OK;
}

/// Why calls must not take the memory, or null. `header` is a copy of its beginning.
const char* why_refused(const PackedHeader& header, const deepgen_packed_b& b, const char* data,
                        size_t bytes) {
  const PackedLayout layout = layout_of(b);
  if (std::memcmp(header.magic, magic, sizeof header.magic) != 0)
    return "it does not begin with the header of a packed B";
  if (header.seal != seal_of(header)) return "its header is damaged";
  if (header.version != packed_layout_version)
    return "another version of DeepGen packed it, in a layout that this one does not have";
  if (header.layout != b.layout || header.bytes != uint64_t(layout.bytes))
    return "it was packed for a function with B of another type, N, K, batch or gate";
  if (bytes < uint64_t(layout.bytes)) return "it is shorter than its header says";
  if (header.data != checksum(data + packed_header_bytes, header.bytes - packed_header_bytes))
    return "its panels are damaged";
  return nullptr;
}

} // namespace

deepgen_status check_packed(const deepgen_function& f, uint64_t& slot) {
  // has_good_operands(): there is a layout, of this version.
  if (slot % packed_header_bytes) return DEEPGEN_ERROR_ALIGNMENT;
  PackedHeader header;
  std::memcpy(&header, reinterpret_cast<const void*>(slot), sizeof header);
  if (header.layout != f.packed_b->layout || header.seal != seal_of(header) ||
      std::memcmp(header.magic, magic, sizeof header.magic) != 0)
    return DEEPGEN_ERROR_PACKED;
  slot += packed_header_bytes;
  return DEEPGEN_OK;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen

using namespace deepgen;

size_t deepgen_packed_b_size(const deepgen_function* f) {
  return accept_packing(f) ? 0 : size_t(layout_of(*f->packed_b).bytes);
}

deepgen_status deepgen_pack_b(const deepgen_function* f, const void* b, int64_t ldb, int64_t stride_b,
                              void* packed, size_t packed_bytes) {
  if (const deepgen_status status = accept_packing(f)) return status;
  if (!b || !packed) return DEEPGEN_ERROR_NULL;
  const deepgen_packed_b& how = *f->packed_b;
  const PackedLayout layout = layout_of(how);
  if (!is_aligned(packed, packed_header_bytes) || !is_aligned(b, uintptr_t(layout.element)))
    return DEEPGEN_ERROR_ALIGNMENT;
  panels::Source source = {b, ldb, stride_b, how.n, how.k, how.entries, bool(how.transposed)};
  if (const deepgen_status status = complete(how, source)) return status;
  if (packed_bytes < size_t(layout.bytes)) return DEEPGEN_ERROR_PACKED;
  char* data = static_cast<char*>(packed) + packed_header_bytes;
  panels::pack(layout, source, data);
  PackedHeader header = {};
  std::memcpy(header.magic, magic, sizeof header.magic);
  header.layout = how.layout, header.bytes = uint64_t(layout.bytes), header.version = packed_layout_version;
  header.data = checksum(data, header.bytes - packed_header_bytes);
  header.seal = seal_of(header);
  std::memcpy(packed, &header, sizeof header);
  return DEEPGEN_OK;
}

deepgen_status deepgen_check_packed_b(const deepgen_function* f, const void* packed, size_t packed_bytes,
                                      char* text, size_t size) {
  const auto say = [&](deepgen_status status, const char* why) {
    const bool known = status == DEEPGEN_ERROR_PACKED;
    if (text && size)
      std::snprintf(text, size, known ? "%.90s cannot take this packed B: %s" : "%.0s%s",
                    known ? f->name : "", why);
    return status;
  };
  if (const deepgen_status status = accept_packing(f)) return say(status, deepgen_status_string(status));
  if (!packed) return say(DEEPGEN_ERROR_NULL, deepgen_status_string(DEEPGEN_ERROR_NULL));
  if (!is_aligned(packed, packed_header_bytes))
    return say(DEEPGEN_ERROR_ALIGNMENT,
               "packed memory is not aligned to 64 bytes: read it into memory that is");
  if (packed_bytes < size_t(packed_header_bytes))
    return say(DEEPGEN_ERROR_PACKED, "it is shorter than a header");
  PackedHeader header;
  std::memcpy(&header, packed, sizeof header);
  const char* why = why_refused(header, *f->packed_b, static_cast<const char*>(packed), packed_bytes);
  return why ? say(DEEPGEN_ERROR_PACKED, why) : say(DEEPGEN_OK, "");
}
