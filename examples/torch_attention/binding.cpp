// The library's function as an operator of torch: deepgen_attention::causal(q, key, value), tensors of
// [batch, head, token, dimension] as scaled_dot_product_attention takes them, with any strides but those of
// the last dimension. The last query sees the last key. Stream, device and memory are torch's.
#include <attention_kernels.h>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

// Torch's C interface, which needs no headers of CUDA; in libtorch_cuda.so.
extern "C" int32_t aoti_torch_get_current_cuda_stream(int32_t device, void** stream);

namespace {

using sizes = attention_kernels::causal_sizes;

void check(deepgen_status status) {
  const char* text = "";
  if (status == DEEPGEN_ERROR_DRIVER) deepgen_last_driver_error(&text);
  TORCH_CHECK(status == DEEPGEN_OK, "DeepGen: ", deepgen_status_string(status), " ", text);
}

void check_tensor(const at::Tensor& t, const char* name, const at::Tensor& q, int64_t heads,
                  int64_t dimension) {
  TORCH_CHECK(t.is_cuda() && t.device() == q.device() && t.scalar_type() == at::kBFloat16, name,
              " is not bfloat16 on the GPU of q");
  TORCH_CHECK(t.dim() == 4 && t.size(0) == q.size(0) && t.size(1) == heads && t.size(3) == dimension, name,
              " is not [batch, ", heads, ", tokens, ", dimension, "], but ", t.sizes());
  TORCH_CHECK(t.stride(3) == 1, name, " has rows that are not contiguous");
}

at::Tensor causal(const at::Tensor& q, const at::Tensor& key, const at::Tensor& value) {
  check_tensor(q, "q", q, sizes::heads, sizes::head_dim);
  check_tensor(key, "key", q, sizes::kv_heads, sizes::head_dim);
  check_tensor(value, "value", q, sizes::kv_heads, sizes::value_dim);
  const int64_t batch = q.size(0), queries = q.size(2), keys = key.size(2);
  TORCH_CHECK(value.size(2) == keys, "key has ", keys, " tokens, and value ", value.size(2));
  TORCH_CHECK(queries <= sizes::most_queries && keys <= sizes::most_keys, queries, " queries of ", keys,
              " keys are more than the library's ", sizes::most_queries, " and ", sizes::most_keys);
  const c10::DeviceGuard guard(q.device()); // and so the context that is current
  // In memory [batch, token, head, dimension], as the projection behind it reads it.
  const at::Tensor out =
      at::empty({batch, queries, sizes::heads, sizes::value_dim}, q.options()).transpose(1, 2);
  deepgen_attention_args args;
  args.q = q.data_ptr(), args.key = key.data_ptr(), args.value = value.data_ptr(), args.out = out.data_ptr();
  args.batch = batch, args.max_queries = queries, args.max_keys = keys;
  args.q_batch = q.stride(0), args.q_head = q.stride(1), args.q_token = q.stride(2);
  args.key_batch = key.stride(0), args.key_head = key.stride(1), args.key_token = key.stride(2);
  args.value_batch = value.stride(0), args.value_head = value.stride(1), args.value_token = value.stride(2);
  args.out_batch = out.stride(0), args.out_head = out.stride(1), args.out_token = out.stride(2);
  // Torch gives memory back to calls of the same stream, behind this one. It aligns to 512 bytes.
  const deepgen_function* function = attention_kernels_causal_function();
  deepgen_call_sizes call;
  call.m = queries, call.n = keys, call.batch = batch;
  const size_t bytes = deepgen_launch_workspace_size_at(function, &call);
  at::Tensor workspace;
  if (bytes) {
    workspace = at::empty({int64_t(bytes)}, q.options().dtype(at::kByte));
    args.workspace = workspace.data_ptr(), args.workspace_bytes = bytes;
  }
  void* stream = nullptr;
  TORCH_CHECK(aoti_torch_get_current_cuda_stream(q.device().index(), &stream) == 0,
              "torch has no current stream");
  check(deepgen_launch_attention(function, &args, stream));
  return out;
}

} // namespace

// main.py registers the fake kernel, which tells shapes to torch.compile.
TORCH_LIBRARY(deepgen_attention, library) {
  library.def("causal(Tensor q, Tensor key, Tensor value) -> Tensor");
}

TORCH_LIBRARY_IMPL(deepgen_attention, CUDA, library) { library.impl("causal", &causal); }
