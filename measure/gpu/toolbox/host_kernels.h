// The kernels of cuda_kernels.cu on the host, for devices that take no PTX. Addresses in the parameters are
// the host's.
#pragma once

#include "measure/gpu/toolbox/cuda_parameters.h"

#include <functional>

namespace deepgen::cuda::host {

void fill(const Array& x, const Values& v);
void check_values(const Array& x, const Values& v, Finding& finding);
/// `begin` and `end`: of the memory in which the array lies.
void check_gaps(const Array& x, uint64_t begin, uint64_t end, Finding& finding);
void check_written(const Array& d, Finding& finding);
void compare(const CompareParameters& q);
/// The product and magnitude of `count` blocks.
void product(const ProductParameters& p, int64_t count);

/// The value of an element, and the bits of a value; `type` is a deepgen::Type.
double load(uint64_t data, int32_t type, int64_t i);
uint64_t encode(int32_t type, double x);

} // namespace deepgen::cuda::host
