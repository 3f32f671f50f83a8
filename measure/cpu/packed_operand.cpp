#include "measure/cpu/packed_operand.h"

#include "base/problem/packed_b.h"
#include "runtime/core/pack_panels.h"

namespace deepgen {

int64_t packed_bytes(const Gemm& p) { return p.packed_b ? packed_layout(p).bytes - packed_header_bytes : 0; }

void pack_b(const Gemm& p, const CallBuffers& x, void* to) {
  const panels::Source source = {x.b, x.ldb, x.stride_b, p.n, p.k, p.batch, p.b_transposed()};
  panels::pack(packed_layout(p), source, static_cast<char*>(to));
}

} // namespace deepgen
