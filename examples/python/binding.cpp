// What main.py calls: plain numbers and pointers.
#include <layer_kernels.h>

#include <deepgen/runtime.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

/// Rows of x and y, columns of y, columns of x.
EXPORTED void layer_sizes(int64_t* sizes) {
  sizes[0] = layer_kernels::layer_sizes::m, sizes[1] = layer_kernels::layer_sizes::n,
  sizes[2] = layer_kernels::layer_sizes::k;
}

/// y = relu(x w^T + bias); rows of y are `stride` elements apart. 0 when it went well.
EXPORTED int layer_run(const float* x, const float* w, const float* bias, float* y, int64_t stride) {
  deepgen_gemm_args args;
  args.a = x, args.b = w, args.bias = bias, args.d = y, args.ldd = stride;
  return layer_kernels::layer(args);
}

EXPORTED const char* layer_status_text(int status) { return deepgen_status_string(deepgen_status(status)); }
EXPORTED const char* layer_config() { return deepgen_selected_config(layer_kernels_layer_function()); }
EXPORTED int layer_set_threads(int threads) { return deepgen_set_num_threads(threads); }
