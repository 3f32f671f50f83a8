// B as calls take it of a problem with packed_b: what the runtime's deepgen_pack_b() writes, without the
// header.
#pragma once

#include "measure/values/operands.h"

namespace deepgen {

/// Bytes of the panels; 0 where B is taken as it is stored.
int64_t packed_bytes(const Gemm&);
/// Packs the B of these buffers to where `to` points, which is aligned to 64 bytes; its batch stride may be
/// 0.
void pack_b(const Gemm&, const CallBuffers&, void* to);

} // namespace deepgen
