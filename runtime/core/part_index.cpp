#include "runtime/core/part_index.h"

#include "runtime/core/arguments.h"

#include <atomic>
#include <cstdlib>
#include <initializer_list>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

constexpr uint32_t most_cells = 4096;
constexpr uint32_t step = 4;                               ///< borders that are compared together
constexpr uint32_t most_borders = 2 * most_indexed + step; ///< of a size

/// Borders of parts cut each size into stretches; a cell has one of each, in which all calls take one part.
struct PartIndex {
  const deepgen_kernel* first;  ///< that a call tries
  int64_t least[DEEPGEN_SIZES]; ///< at least 1
  uint64_t span[DEEPGEN_SIZES];
  uint32_t borders[DEEPGEN_SIZES], stretches[DEEPGEN_SIZES]; ///< the former rounded up to steps
  int32_t before[DEEPGEN_SIZES][most_borders]; ///< a border, the first size of a stretch, less 2; ascending
  uint8_t parts[most_cells];                   ///< the last size's stretches lie side by side
};

namespace {

/// Keeps the borders of a size ascending, each once.
void add_border(PartIndex& x, int size, int64_t border) {
  if (border <= x.least[size] || uint64_t(border - x.least[size]) > x.span[size]) return; // no call meets it
  const auto before = int32_t(border - 2);
  int32_t* list = x.before[size];
  uint32_t at = x.borders[size];
  while (at && list[at - 1] > before) --at;
  if (at && list[at - 1] == before) return;
  for (uint32_t i = x.borders[size]++; i > at; --i) list[i] = list[i - 1];
  list[at] = before;
}

/// The first part that takes the least call of a cell.
uint8_t part_of(const PartIndex& x, const deepgen_kernel* const* parts, uint32_t cell) {
  int64_t sizes[DEEPGEN_SIZES];
  for (int i = DEEPGEN_SIZES - 1; i >= 0; --i) {
    const uint32_t stretch = cell % x.stretches[i];
    cell /= x.stretches[i];
    sizes[i] = stretch ? int64_t(x.before[i][stretch - 1]) + 2 : x.least[i];
  }
  uint8_t part = 0;
  while (!takes(*parts[part], sizes)) ++part; // the last one takes all
  return part;
}

/// False where it would be too large. The last part takes any sizes.
bool fill(PartIndex& x, const deepgen_function& f, const deepgen_kernel* const* parts, uint32_t count) {
  x.first = parts[0];
  for (int i = 0; i < DEEPGEN_SIZES; ++i) {
    x.least[i] = f.sizes[i].least > 1 ? f.sizes[i].least : 1;
    if (f.sizes[i].most < x.least[i] || f.sizes[i].most > int64_t(INT32_MAX) + 1) return false;
    x.span[i] = uint64_t(f.sizes[i].most - x.least[i]);
  }
  for (uint32_t part = 0; part + 1 < count; ++part)
    for (int i = 0; i < DEEPGEN_SIZES; ++i) {
      const deepgen_range& taken = parts[part]->taken[i];
      add_border(x, i, taken.least), add_border(x, i, taken.most < f.sizes[i].most ? taken.most + 1 : 0);
    }
  uint32_t cells = 1;
  for (int i = 0; i < DEEPGEN_SIZES; ++i) {
    x.stretches[i] = x.borders[i] + 1, cells *= x.stretches[i];
    if (cells > most_cells) return false;
    while (x.borders[i] % step) x.before[i][x.borders[i]++] = INT32_MAX; // behind all sizes
  }
  for (uint32_t cell = 0; cell < cells; ++cell) x.parts[cell] = part_of(x, parts, cell);
  return true;
}

/// By address, in a few places from where its hash says: so a look-up ends soon whether it finds or not. A
/// function that finds no place has no table.
struct Place {
  std::atomic<const void*> function;
  std::atomic<PartIndex*> index;
};
constexpr uint32_t place_bits = 10, probes = 8;
Place places[(1u << place_bits) + probes];
const char left = 0, claimed = 0; ///< in the stead of a function: of one that was forgotten; of one to come

Place* places_of(const deepgen_function& f) {
  return places + (uint64_t(uintptr_t(&f)) * 0x9e3779b97f4a7c15u >> (64 - place_bits));
}

const PartIndex* find(const deepgen_function& f) {
  const Place* place = places_of(f);
  for (uint32_t i = 0; i < probes; ++i) {
    const void* key = place[i].function.load(std::memory_order_acquire);
    if (key == &f) return place[i].index.load(std::memory_order_relaxed);
    if (!key) return nullptr;
  }
  return nullptr;
}

/// Two threads may both do it, with the same table.
bool keep(const deepgen_function& f, PartIndex* index) {
  Place* place = places_of(f);
  for (uint32_t i = 0; i < probes; ++i)
    for (const void* key : {static_cast<const void*>(nullptr), static_cast<const void*>(&left)})
      if (const void* expected = key;
          place[i].function.compare_exchange_strong(expected, &claimed, std::memory_order_acquire)) {
        place[i].index.store(index, std::memory_order_relaxed);
        place[i].function.store(&f, std::memory_order_release);
        return true;
      }
  return false;
}

} // namespace

PartIndex* make_part_index(const deepgen_function& f, const deepgen_kernel* const* kernels, uint32_t count) {
  uint32_t parts = 0; // up to the first that takes any sizes
  while (parts < count && kernels[parts]->taken) ++parts;
  if (count < fewest_indexed || !parts || parts == count || parts >= most_indexed) return nullptr;
  auto* index = static_cast<PartIndex*>(std::calloc(1, sizeof(PartIndex)));
  if (index && fill(*index, f, kernels, parts + 1)) return index;
  std::free(index);
  return nullptr;
}

uint32_t indexed_place(const PartIndex& x, const int64_t* sizes) {
  uint32_t cell = 0;
  for (int i = 0; i < DEEPGEN_SIZES; ++i) {
    if (uint64_t(sizes[i] - x.least[i]) > x.span[i]) return no_part;
    const uint32_t count = x.borders[i];
    if (!count) continue;
    const auto size = int32_t(sizes[i] - 1);
    const int32_t* before = x.before[i];
    uint32_t stretch = 0;
    for (uint32_t j = 0; j < count; j += step)
      stretch += uint32_t(before[j] < size) + uint32_t(before[j + 1] < size) +
                 uint32_t(before[j + 2] < size) + uint32_t(before[j + 3] < size);
    cell = cell * x.stretches[i] + stretch;
  }
  return x.parts[cell];
}

void index_parts(const deepgen_function& f, const deepgen_kernel* first) {
  if (f.kernel_count < fewest_indexed || !first->taken) return;
  if (const PartIndex* known = find(f); known && known->first == first) return;
  forget_parts(f);
  const deepgen_kernel* parts[most_indexed];
  uint32_t count = 0;
  while (count < most_indexed && first + count < f.kernels + f.kernel_count) {
    parts[count] = first + count;
    if (!parts[count++]->taken) break;
  }
  PartIndex* index = make_part_index(f, parts, count);
  if (index && !keep(f, index)) std::free(index);
}

const deepgen_kernel* indexed_part(const deepgen_function& f, const deepgen_kernel* first,
                                   const int64_t* sizes) {
  const PartIndex* x = find(f);
  if (!x || x->first != first) return nullptr;
  const uint32_t place = indexed_place(*x, sizes);
  return place == no_part ? nullptr : first + place;
}

void forget_parts(const deepgen_function& f) {
  Place* place = places_of(f);
  for (uint32_t i = 0; i < probes; ++i)
    if (place[i].function.load(std::memory_order_acquire) == &f) {
      PartIndex* index = place[i].index.load(std::memory_order_relaxed);
      place[i].function.store(&left, std::memory_order_release);
      std::free(index);
    }
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
