#include "runtime/nvidia/cuda_select.h"

#include <cstring>

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {

uint32_t standing(const deepgen_kernel& k, const Device& device) {
  if (!capability(k.arch)) return cannot_run;
  const bool runs = runs_on(k.gpu->target, device);
  if (!runs && !(k.gpu->ptx && compiles_on(k.gpu->target, device))) return cannot_run;
  const uint32_t kind = !runs ? 2 : k.device && std::strcmp(k.device, device.name) == 0 ? 0 : 1;
  constexpr uint32_t archs = 1 << 16;
  return kind * archs + (archs - 1 - uint32_t(capability(k.arch)));
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
