// What a tensor copy takes whose box lies partly beyond the matrix, when all multiprocessors make such
// copies.
//
//   nvcc -arch=sm_90a -O2 -o tma_bounds benchmarks/gpu/tma_bounds.cu && ./tma_bounds
//
// A block on each multiprocessor fills four stages in turn, by one thread: a tile of up to 128 rows of 128
// bytes, swizzled, from a matrix of bf16 that all read. A line: rows of a box, boxes, rows of the matrix, and
// the least, median and most nanoseconds a tile takes over 31 launches in turn with the other cases. Boxes
// beyond the matrix are left out, but for the cases with two boxes of 64.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

constexpr int kStages = 4, kRows = 128, kColumns = 64, kDepth = 4096, kSteps = kDepth / kColumns, kTimes = 40;
constexpr int kShared = kStages * kRows * 128 + 1024;

__device__ uint32_t address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

__device__ void wait(uint64_t* barrier, int parity) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra done; "
               "bra again; done: }" ::"r"(address(barrier)),
               "r"(parity));
}

__global__ void copies(const __grid_constant__ CUtensorMap map, int rows, int boxes,
                       unsigned long long* nanoseconds) {
  extern __shared__ unsigned char raw[];
  __shared__ uint64_t full[kStages];
  if (threadIdx.x != 0) return;
  unsigned char* tiles = raw + (1024 - address(raw) % 1024) % 1024;
  for (auto& barrier : full) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(&barrier)));
  asm volatile("fence.mbarrier_init.release.cluster;");
  unsigned long long begin, end;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  for (int i = 0; i < kSteps * kTimes + kStages; ++i) {
    const int stage = i % kStages;
    if (i >= kStages) wait(full + stage, (i / kStages - 1) & 1);
    if (i >= kSteps * kTimes) continue;
    const uint32_t barrier = address(full + stage);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(rows * boxes * 128));
    for (int box = 0; box < boxes; ++box)
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                   "{%2, %3}], [%4];" ::"r"(address(tiles + (stage * kRows + box * rows) * 128)),
                   "l"(&map), "r"(i % kSteps * kColumns), "r"(box * rows), "r"(barrier)
                   : "memory");
  }
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(end));
  nanoseconds[blockIdx.x] = end - begin;
}

struct Case {
  int box, boxes, rows;
  std::vector<double> times;
};

int main() {
  int blocks = 0;
  void *matrix = nullptr, *encoder = nullptr;
  unsigned long long* found = nullptr;
  cudaDriverEntryPointQueryResult status;
  cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0);
  cudaMalloc(&matrix, size_t(kRows) * kDepth * 2);
  cudaMallocManaged(&found, sizeof(*found) * size_t(blocks));
  cudaFuncSetAttribute(copies, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encoder, 12000, cudaEnableDefault,
                                       &status) != cudaSuccess ||
      !encoder)
    return 77;
  std::vector<Case> cases;
  for (int rows : {128, 112, 96, 80, 64, 48, 32, 16, 8, 1}) {
    cases.push_back({128, 1, rows, {}});
    for (int box : {64, 32, 16}) cases.push_back({box, (rows + box - 1) / box, rows, {}});
    if (rows <= 80) cases.push_back({80, 1, rows, {}});
    cases.push_back({64, 2, rows, {}});
  }
  for (int launch = 0; launch < 31; ++launch)
    for (Case& c : cases) {
      CUtensorMap map;
      cuuint64_t sizes[] = {kDepth, cuuint64_t(c.rows)}, strides[] = {kDepth * 2};
      cuuint32_t box[] = {kColumns, cuuint32_t(c.box)}, steps[] = {1, 1};
      if (reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encoder)(
              &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, sizes, strides, box, steps,
              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        return 1;
      copies<<<blocks, 32, kShared>>>(map, c.box, c.boxes, found);
      if (cudaDeviceSynchronize() != cudaSuccess) return 1;
      c.times.push_back(double(*std::max_element(found, found + blocks)) / (kSteps * kTimes));
    }
  for (Case& c : cases) {
    std::sort(c.times.begin(), c.times.end());
    std::printf("%d %d %d  %.0f %.0f %.0f\n", c.box, c.boxes, c.rows, c.times.front(), c.times[15],
                c.times.back());
  }
}
