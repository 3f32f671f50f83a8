#include "tests/ptx_sim/machine/tensor_map.h"

#include "tests/ptx_sim/program/fault.h"

namespace deepgen::ptx_sim {

void check_map(const SimulatedMap& m) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Fault(std::string("a tensor map that the driver refuses: ") + what);
  };
  require(m.magic == SimulatedMap::known, "it is none");
  require(m.rank >= 1 && m.rank <= 5, "its rank");
  require(m.base % 16 == 0, "its base is not aligned to 16 bytes");
  require(m.swizzle == 0 || m.swizzle == 32 || m.swizzle == 64 || m.swizzle == 128, "its swizzle");
  for (uint32_t i = 0; i < m.rank; ++i)
    require(m.box[i] >= 1 && m.box[i] <= 256, "a side of the box is not 1 to 256");
  for (uint32_t i = 0; i + 1 < m.rank; ++i)
    require(m.pitches[i] % 16 == 0 && m.pitches[i] < uint64_t(1) << 40, "a pitch is no multiple of 16");
  const uint64_t row = uint64_t(m.box[0]) * m.element_bytes;
  require(row % 16 == 0, "a row of the box is no multiple of 16 bytes");
  require(m.swizzle == 0 || row <= m.swizzle, "a row of the box is longer than the swizzle");
}

SimulatedMap make_tensor_map(uint64_t base, uint32_t element_bytes, uint32_t rank, const uint64_t* sizes,
                             const uint64_t* pitches, const TensorMap& described) {
  SimulatedMap m;
  m.base = base, m.element_bytes = element_bytes, m.rank = rank, m.swizzle = uint32_t(described.swizzle);
  for (uint32_t i = 0; i < rank; ++i) m.sizes[i] = sizes[i];
  for (uint32_t i = 0; i + 1 < rank; ++i) m.pitches[i] = pitches[i];
  m.box[0] = uint32_t(described.box_columns), m.box[1] = uint32_t(described.box_rows);
  check_map(m);
  return m;
}

SimulatedMap make_tensor_map(uint64_t base, uint32_t element_bytes, uint32_t rank, const int64_t* sizes,
                             const int64_t* steps, const TensorMap& described) {
  uint64_t extents[5], pitches[4];
  for (uint32_t i = 0; i < rank; ++i) extents[i] = uint64_t(sizes[i]);
  for (uint32_t i = 0; i + 1 < rank; ++i) pitches[i] = uint64_t(steps[i]) * element_bytes;
  return make_tensor_map(base, element_bytes, rank, extents, pitches, described);
}

} // namespace deepgen::ptx_sim
