// For which attention cuDNN is asked.
#include "measure/vendor/gpu/cudnn_attention.h"

namespace deepgen::cuda {
namespace {

constexpr int64_t kDimensionUnit = 16; ///< bytes

std::string none(const std::string& why) { return "cuDNN: none: " + why; }

} // namespace

std::string why_no_cudnn(const Attention& p) {
  const bool narrow = p.q == Type::e4m3;
  if ((p.q != Type::f16 && p.q != Type::bf16 && !narrow) || p.kv != p.q || (p.out != p.q && !narrow))
    return none("its Q, K, V and out are of one type, f16 or bf16; or Q, K and V are e4m3");
  const int64_t unit = kDimensionUnit / size_of(p.q);
  if (p.head_dim % unit || p.value_dim % unit)
    return none("its dimensions are multiples of " + std::to_string(unit));
  if ((p.mask == AttentionMask::causal || p.mask == AttentionMask::window) && p.at_queries > p.at_keys)
    return none("a mask that ends with the last key takes no more queries than keys");
  return "";
}

} // namespace deepgen::cuda
