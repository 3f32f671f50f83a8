// Where the elements of D lie in shared memory on their way to it, and those that the epilogue reads on
// theirs.
#include "templates/core/sizes.h"
#include "templates/ir/epilogue.h"
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "templates/nvidia/hopper_ws/hopper_ws_groups.h"

namespace deepgen {
namespace {

/// Bytes of shared memory that a block of sm_90 may have; each one takes so many more of a multiprocessor.
constexpr int64_t kSharedBlock = 232448, kSharedReserved = 1024;

/// So many hide the arrival of what later passes read behind those before them.
constexpr int64_t kMostBuffers = 8;

int64_t resident(int64_t shared) { return (kSharedBlock + kSharedReserved) / (shared + kSharedReserved); }

/// Boxes of D's rows whose parts fall into different banks: swizzled, or an odd number of 16 bytes. Whole
/// groups of 8 columns.
HopperStaging box_of(int64_t row_bytes, int64_t size, int64_t rows, bool whole_rows) {
  HopperStaging s;
  s.rows = rows;
  const int64_t units = row_bytes / 16, odd = units / (units & -units) * 16;
  const bool odd_fits = odd / size % 8 == 0;
  s.row_bytes = row_bytes % 128 == 0        ? 128
                : odd >= 5 * 16 && odd_fits ? odd
                : row_bytes % 64 == 0       ? 64
                : odd == 3 * 16 && odd_fits ? odd
                : row_bytes % 32 == 0       ? 32
                                            : 16;
  if (s.row_bytes == 128 || s.row_bytes == 64 || s.row_bytes == 32) s.swizzle = s.row_bytes;
  s.columns = s.row_bytes / size;
  s.boxes = whole_rows ? row_bytes / s.row_bytes : 1;
  s.box_bytes = round_up(rows * s.row_bytes, s.swizzle ? 8 * s.swizzle : 128);
  return s;
}

/// The epilogue's first matrix, where it has D's type: boxes of one form are of both.
std::string matrix_like_d(const Gemm& p) {
  if (p.epilogue_type() != p.d) return "";
  for (EpilogueOp op : p.epilogue)
    for (const EpilogueOperand& operand : operands_of(op))
      if (operand.shape == OperandShape::matrix) return operand.name;
  return "";
}

} // namespace

/// A warp stores 16 rows at once; with swap a warpgroup stores 64 columns.
HopperStaging HopperTiling::staging_of(const Gemm& p) const {
  const int64_t size = size_of(p.d);
  HopperStaging s = swap ? box_of(64 * size, size, bn, true) : box_of(bn / weights * size, size, 16, false);
  s.passes = swap ? m_tiles() / weights : m_tiles() * bn / weights / s.columns;
  s.by_threads = one_tile(p) && stores_few(p, s);
  if (stores_tiles()) s.reads = matrix_like_d(p);
  return s;
}

/// Of one tile a block. With up to 8 KiB of 16-bit elements of D, threads took 0.97 to 1.00 of TMA's time;
/// with f32, or where TMA brings a matrix as well, up to 1.09 (benchmarks/gpu/results/h200_one_tile).
bool HopperTiling::stores_few(const Gemm& p, const HopperStaging& s) const {
  constexpr int64_t kFew = 8192, kChunk = 16; // bytes
  const int64_t chunks = s.copied_bytes() / kChunk, threads = swap ? 128 : 32;
  return !p.gate && size_of(p.d) == 2 && align_d >= kChunk && matrix_like_d(p).empty() && bm <= m &&
         bn <= n && bm * bn * size_of(p.d) <= kFew && chunks % threads == 0;
}

/// Two buffers hide stores. What is read may have one for each pass, as it arrives while the main loop runs:
/// where that leaves as many blocks on a multiprocessor.
void HopperTiling::set_buffers(const Gemm& p) {
  auto lay_out = [&](int64_t buffers) {
    staging.buffers = buffers;
    const int64_t bytes = parts() > 1 ? 0 : buffers * stagers() * staging.buffer_bytes();
    barriers_offset = std::max(staging_offset + bytes, partials.bytes);
    groups_offset = barriers_offset + round_up(16 * stages + 8 * read_barriers(), 16);
    shared = groups_offset + HopperGroups::bytes(p);
  };
  const auto fits = [&](int64_t buffers) {
    return buffers <= staging.passes && (lay_out(buffers), shared <= kSharedBlock);
  };
  int64_t buffers = fits(2) ? 2 : 1;
  lay_out(buffers);
  const int64_t blocks = resident(shared);
  while (!staging.reads.empty() && buffers < kMostBuffers && fits(buffers + 1) && resident(shared) == blocks)
    ++buffers;
  lay_out(buffers);
}

} // namespace deepgen
