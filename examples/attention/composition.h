// The prompt's attention as two products and a softmax of each head, with all scores in memory.
#pragma once

#include <attention_kernels.h>

/// Q, K, V and out as prefill() has them, of one entry of as many tokens as it was built for. False where
/// OpenBLAS is not installed. `status`: of the softmax.
bool compose(const float* q, const float* key, const float* value, float* out, deepgen_status& status);
