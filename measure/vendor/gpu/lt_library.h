// cuBLASLt and hipBLASLt, loaded with dlopen. Their calls are alike; what differs, numbers above all, is in
// this table.
#pragma once

#include "base/problem/gemm.h"
#include "measure/devices/cuda_driver.h"
#include "runtime/nvidia/cublas_lt.h"

#include <array>
#include <string>

namespace deepgen::cuda {

using AlgorithmBits = std::array<uint64_t, 8>; ///< cublasLtMatmulAlgo_t; hipblasLtMatmulAlgo_t is smaller

struct LtLibrary {
  int (*create)(void**);
  int (*desc_create)(void**, int compute, int scale);
  int (*desc_set)(void*, int, const void*, size_t);
  int (*layout_create)(void**, int type, uint64_t rows, uint64_t columns, int64_t ld);
  int (*layout_set)(void*, int, const void*, size_t);
  int (*preference_create)(void**);
  int (*preference_set)(void*, int, const void*, size_t);
  int (*heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference, int asked,
                   void* results, int* count);
  int (*matmul)(void* handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b,
                void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                const void* algorithm, void* workspace, size_t workspace_bytes, Stream);

  struct Numbers : LtNumbers {
    int align_a, align_c, align_d; ///< of a preference's attributes; -1: it has none
    size_t algorithm_bytes;
    /// It loads what it has for a kind of problem when the heuristic is first asked for one, in each process.
    bool loads_when_asked;
  } number;

  std::string name;    ///< "cuBLASLt"
  std::string prefix;  ///< of what its calls are called: "cublasLt"
  std::string version; ///< "cublaslt 13.1.0"
  std::string why_not; ///< not empty: it is not here, or too old

  int compute_type(Type input, bool tf32_as_f32) const;
  /// What the library calls an algorithm; of what it does not tell, nothing.
  std::string text_of(const AlgorithmBits&) const;
  int (*config_get)(const void*, int, void*, size_t, size_t*) = nullptr; ///< of cuBLASLt alone

  /// Of the platform in use. Only for workers: it starts the driver.
  static const LtLibrary& of_platform();
};

/// cudaDataType, hipDataType: types have the numbers of deepgen_type.
inline int lt_data_type(Type t) { return deepgen::lt_data_type(uint8_t(t)); }
inline constexpr int lt_max_workspace = 1; ///< attribute of a preference

} // namespace deepgen::cuda
