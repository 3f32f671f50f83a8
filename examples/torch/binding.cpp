// The library's functions as operators of torch: deepgen_ffn::up and deepgen_ffn::down. Sizes are those of
// the library; stream, device and memory are torch's.
#include <ffn_kernels.h>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

// Torch's C interface, which needs no headers of CUDA; in libtorch_cuda.so.
extern "C" int32_t aoti_torch_get_current_cuda_stream(int32_t device, void** stream);

namespace {

void check(deepgen_status status) {
  const char* text = "";
  if (status == DEEPGEN_ERROR_DRIVER) deepgen_last_driver_error(&text);
  TORCH_CHECK(status == DEEPGEN_OK, "DeepGen: ", deepgen_status_string(status), " ", text);
}

/// A matrix of bf16 whose rows are contiguous; they may have gaps between them.
void check_matrix(const at::Tensor& t, const char* name, const at::Tensor& like, int64_t rows,
                  int64_t columns) {
  TORCH_CHECK(t.is_cuda() && t.device() == like.device() && t.scalar_type() == at::kBFloat16, name,
              " is not bfloat16 on the GPU of the first operand");
  TORCH_CHECK(t.dim() == 2 && t.size(0) == rows && t.size(1) == columns, name, " is not ", rows, " x ",
              columns, ", but ", t.sizes());
  TORCH_CHECK(t.stride(1) == 1 && t.stride(0) >= columns, name, " has rows that are not contiguous");
}

void check_vector(const at::Tensor& t, const char* name, const at::Tensor& like, int64_t count) {
  TORCH_CHECK(t.device() == like.device() && t.scalar_type() == at::kBFloat16 && t.dim() == 1 &&
                  t.size(0) == count && t.is_contiguous(),
              name, " is no contiguous vector of ", count, " bfloat16");
}

/// What both functions have: memory for D and for the call, and torch's stream.
at::Tensor launch(deepgen_gemm_args& args, const at::Tensor& x, int64_t rows, int64_t columns,
                  const deepgen_function* function) {
  const c10::DeviceGuard guard(x.device()); // and so the context that is current
  at::Tensor d = at::empty({rows, columns}, x.options());
  args.d = d.data_ptr();
  // Torch gives memory back to calls of the same stream, behind this one. It aligns to 512 bytes.
  const size_t bytes = deepgen_launch_workspace_size(function);
  at::Tensor workspace;
  if (bytes) {
    workspace = at::empty({int64_t(bytes)}, x.options().dtype(at::kByte));
    args.workspace = workspace.data_ptr(), args.workspace_bytes = bytes;
  }
  void* stream = nullptr;
  TORCH_CHECK(aoti_torch_get_current_cuda_stream(x.device().index(), &stream) == 0,
              "torch has no current stream");
  check(deepgen_launch_gemm(function, &args, stream));
  return d;
}

at::Tensor up(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias) {
  using size = ffn_kernels::up_sizes;
  check_matrix(x, "x", x, size::m, size::k);
  check_matrix(w, "w", x, size::n, size::k);
  check_vector(bias, "bias", x, size::n);
  deepgen_gemm_args args;
  args.a = x.data_ptr(), args.lda = x.stride(0), args.b = w.data_ptr(), args.ldb = w.stride(0),
  args.bias = bias.data_ptr();
  return launch(args, x, size::m, size::n, ffn_kernels_up_function());
}

at::Tensor down(const at::Tensor& h, const at::Tensor& w, const at::Tensor& bias,
                const at::Tensor& residual) {
  using size = ffn_kernels::down_sizes;
  check_matrix(h, "h", h, size::m, size::k);
  check_matrix(w, "w", h, size::n, size::k);
  check_vector(bias, "bias", h, size::n);
  check_matrix(residual, "residual", h, size::m, size::n);
  deepgen_gemm_args args;
  args.a = h.data_ptr(), args.lda = h.stride(0), args.b = w.data_ptr(), args.ldb = w.stride(0),
  args.bias = bias.data_ptr();
  args.residual = residual.data_ptr(), args.ld_residual = residual.stride(0);
  return launch(args, h, size::m, size::n, ffn_kernels_down_function());
}

} // namespace

// main.py registers the fake kernels, which tell shapes to torch.compile.
TORCH_LIBRARY(deepgen_ffn, library) {
  library.def("up(Tensor x, Tensor w, Tensor bias) -> Tensor");
  library.def("down(Tensor h, Tensor w, Tensor bias, Tensor residual) -> Tensor");
}

TORCH_LIBRARY_IMPL(deepgen_ffn, CUDA, library) {
  library.impl("up", &up);
  library.impl("down", &down);
}
