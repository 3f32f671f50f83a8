#include "runtime/gpu/lt_call.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr uint32_t kPointers = DEEPGEN_VENDOR_BIAS | DEEPGEN_VENDOR_SCALE_A | DEEPGEN_VENDOR_SCALE_B;
constexpr uint64_t kMatrixAlign = 256, kVectorAlign = 16; ///< of what was timed, and at least that

int compute_type(const LtNumbers& n, uint8_t input) {
  return input == DEEPGEN_F64 ? n.f64 : input == DEEPGEN_TF32 ? n.tf32 : input == DEEPGEN_I8 ? n.i32 : n.f32;
}

/// Of alpha and beta, as their slots have them.
uint8_t scale_type(uint8_t output) {
  return output == DEEPGEN_F64 || output == DEEPGEN_I32 ? output : uint8_t(DEEPGEN_F32);
}

bool is_fp8(uint8_t type) { return type == DEEPGEN_E4M3 || type == DEEPGEN_E5M2; }

template <typename T>
bool set(const LtLibrary& l, void* description, int attribute, T value) {
  return l.desc_set(description, attribute, &value, sizeof value) == 0;
}

/// A row-major matrix is the library's column-major one transposed.
bool make_layout(const LtLibrary& l, const deepgen_operand& x, void*& layout) {
  if (l.layout_create(&layout, lt_data_type(x.type), uint64_t(x.columns), uint64_t(x.rows), x.columns) != 0)
    return false;
  const auto batch = int32_t(x.entries);
  const int64_t stride = x.rows * x.columns;
  return x.entries <= 1 || (l.layout_set(layout, l.number.batch_count, &batch, sizeof batch) == 0 &&
                            l.layout_set(layout, l.number.batch_stride, &stride, sizeof stride) == 0);
}

/// D^T = B^T A^T: the operands are swapped.
bool make_description(const LtLibrary& l, const deepgen_function& f, const deepgen_vendor_call& call,
                      void*& description) {
  const uint8_t a = find_operand(f, DEEPGEN_ARG_A)->type, d = find_operand(f, DEEPGEN_ARG_D)->type;
  const LtNumbers& n = l.number;
  if (l.desc_create(&description, compute_type(n, a), lt_data_type(scale_type(d))) != 0) return false;
  const auto operation = [&](uint32_t flag) { return int32_t(call.flags & flag ? n.transposed : n.plain); };
  bool good = set(l, description, n.trans_a, operation(DEEPGEN_VENDOR_B_TRANSPOSED));
  good &= set(l, description, n.trans_b, operation(DEEPGEN_VENDOR_A_TRANSPOSED));
  if (is_fp8(a) && n.fast_accumulation >= 0) good &= set(l, description, n.fast_accumulation, int8_t(1));
  int32_t epilogue = 0;
  if (call.flags & DEEPGEN_VENDOR_RELU) epilogue |= lt_relu;
  if (call.flags & DEEPGEN_VENDOR_GELU_TANH) epilogue |= lt_gelu;
  if (call.flags & DEEPGEN_VENDOR_BIAS) {
    epilogue |= lt_bias;
    good &= set(l, description, n.bias_type, int32_t(lt_data_type(find_operand(f, DEEPGEN_ARG_BIAS)->type)));
  }
  return good && set(l, description, n.epilogue, epilogue ? epilogue : int32_t(lt_default));
}

bool point(const LtLibrary& l, void* description, const uint64_t* slot, uint32_t flags) {
  bool good = true;
  if (flags & DEEPGEN_VENDOR_BIAS) good &= set(l, description, l.number.bias_pointer, slot[DEEPGEN_ARG_BIAS]);
  if (flags & DEEPGEN_VENDOR_SCALE_B)
    good &= set(l, description, l.number.scale_a, slot[DEEPGEN_ARG_SCALE_B]);
  if (flags & DEEPGEN_VENDOR_SCALE_A)
    good &= set(l, description, l.number.scale_b, slot[DEEPGEN_ARG_SCALE_A]);
  return good;
}

/// The library looks at whether there is a bias and scales, not at what lies there.
bool is_admitted(const LtCall& c, const deepgen_vendor_call& call) {
  constexpr uint64_t somewhere = 4096;
  const LtLibrary& l = *c.library;
  if (!l.admits) return true;
  uint64_t slot[DEEPGEN_ARG_COUNT] = {};
  for (const uint8_t x : {DEEPGEN_ARG_BIAS, DEEPGEN_ARG_SCALE_A, DEEPGEN_ARG_SCALE_B}) slot[x] = somewhere;
  return point(l, c.descriptions[0], slot, call.flags) &&
         l.admits(c.handle, c.descriptions[0], c.b, c.a, c.d, call);
}

bool make(LtCall& c, const deepgen_function& f, const deepgen_vendor_call& call) {
  const LtLibrary& l = *c.library;
  if (!make_layout(l, *find_operand(f, DEEPGEN_ARG_A), c.a) ||
      !make_layout(l, *find_operand(f, DEEPGEN_ARG_B), c.b) ||
      !make_layout(l, *find_operand(f, DEEPGEN_ARG_D), c.d))
    return false;
  const uint32_t count = call.flags & kPointers ? LtCall::most_descriptions : 1;
  for (c.count = 0; c.count < count;)
    if (!make_description(l, f, call, c.descriptions[c.count++])) return false;
  return is_admitted(c, call);
}

/// One description while in scope. Spins when all are taken, which ends: whoever has one enqueues and takes
/// no other.
class Description {
public:
  explicit Description(LtCall& c) : call_(c) {
    if (c.count == 1) return;
    for (index_ = 0; c.taken[index_].exchange(true, std::memory_order_acquire);)
      index_ = (index_ + 1) % c.count;
  }
  ~Description() {
    if (call_.count > 1) call_.taken[index_].store(false, std::memory_order_release);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  void* get() const { return call_.descriptions[index_]; }

private:
  LtCall& call_;
  uint32_t index_ = 0;
};

} // namespace

bool well_formed(const deepgen_vendor_call& call, const deepgen_function& f, deepgen_library library) {
  if (call.library != uint32_t(library) || !call.text || !call.version || !call.device) return false;
  for (const uint8_t slot : {DEEPGEN_ARG_A, DEEPGEN_ARG_B, DEEPGEN_ARG_D})
    if (const deepgen_operand* x = find_operand(f, slot);
        !x || !(x->flags & DEEPGEN_OPERAND_MATRIX) || x->rows_by || x->columns_by || x->entries_by)
      return false;
  const auto has = [&](uint32_t flag, uint8_t slot) { return !(call.flags & flag) || find_operand(f, slot); };
  return has(DEEPGEN_VENDOR_BIAS, DEEPGEN_ARG_BIAS) && has(DEEPGEN_VENDOR_RESIDUAL, DEEPGEN_ARG_RESIDUAL) &&
         has(DEEPGEN_VENDOR_SCALE_A, DEEPGEN_ARG_SCALE_A) && has(DEEPGEN_VENDOR_SCALE_B, DEEPGEN_ARG_SCALE_B);
}

LtCall* prepare_call(const deepgen_function& f, const deepgen_vendor_call& call, const LtDevice& device,
                     FindLt find, Fallback& why) {
  if (is_forced_off()) return why = Fallback::off, nullptr;
  if (std::strcmp(call.device, device.name) != 0) return why = Fallback::other_device, nullptr;
  const LtLibrary* library = nullptr;
  void* handle = nullptr;
  why = find(call.version, device.ordinal, library, handle);
  if (why != Fallback::runs) return nullptr;
  auto* c = static_cast<LtCall*>(std::calloc(1, sizeof(LtCall)));
  if (!c) return why = Fallback::refused, nullptr;
  c->library = library, c->handle = handle;
  if (!make(*c, f, call)) {
    discard(c);
    return why = Fallback::refused, nullptr;
  }
  c->state.store(uint32_t(Fallback::runs), std::memory_order_relaxed);
  return c;
}

void discard(LtCall* c) {
  if (!c) return;
  for (void* layout : {c->a, c->b, c->d})
    if (layout) c->library->layout_destroy(layout);
  for (uint32_t i = 0; i < c->count; ++i)
    if (c->descriptions[i]) c->library->desc_destroy(c->descriptions[i]);
  std::free(c);
}

bool is_as_timed(const GpuCall& call, const deepgen_vendor_call& vendor) {
  // The library has one matrix to add, and does not scale it.
  constexpr uint32_t alone = DEEPGEN_VENDOR_RESIDUAL | DEEPGEN_VENDOR_SCALE_A | DEEPGEN_VENDOR_SCALE_B;
  if (call.args.reads_optional && vendor.flags & alone) return false;
  const uint64_t* slot = call.values.slot;
  for (uint32_t i = 0; i < call.function.operand_count; ++i) {
    const deepgen_operand& x = call.function.operands[i];
    if (!is_used(x, call.args)) continue;
    if (!(x.flags & DEEPGEN_OPERAND_MATRIX)) {
      if (x.columns > 1 && slot[x.slot] % kVectorAlign) return false;
      continue;
    }
    const bool dense = int64_t(slot[x.ld]) == x.columns && (x.entries <= 1 || x.stride == DEEPGEN_ARG_COUNT ||
                                                            int64_t(slot[x.stride]) == x.rows * x.columns);
    if (!dense || slot[x.slot] % kMatrixAlign) return false;
  }
  return true;
}

LtOutcome enqueue(const GpuCall& call, const deepgen_vendor_call& vendor, LtCall& c) {
  const uint64_t* slot = call.values.slot;
  const uint64_t output = slot[DEEPGEN_ARG_D];
  const bool residual = vendor.flags & DEEPGEN_VENDOR_RESIDUAL;
  const uint64_t added = residual                   ? slot[DEEPGEN_ARG_RESIDUAL]
                         : call.args.reads_optional ? slot[DEEPGEN_ARG_C]
                                                    : output;
  // 1 in the type of beta; the problems with integers have no residual.
  const double one = 1;
  const float one_single = 1;
  uint64_t beta = slot[DEEPGEN_ARG_BETA];
  if (residual && scale_type(find_operand(call.function, DEEPGEN_ARG_D)->type) == DEEPGEN_F64)
    std::memcpy(&beta, &one, sizeof one);
  else if (residual)
    std::memcpy(&beta, &one_single, sizeof one_single);
  int result = 0;
  {
    const Description description(c);
    if (c.count > 1 && !point(*c.library, description.get(), slot, vendor.flags)) return LtOutcome::not_run;
    result = c.library->matmul(c.handle, description.get(), &slot[DEEPGEN_ARG_ALPHA],
                               reinterpret_cast<const void*>(slot[DEEPGEN_ARG_B]), c.b,
                               reinterpret_cast<const void*>(slot[DEEPGEN_ARG_A]), c.a, &beta,
                               reinterpret_cast<const void*>(added), c.d, reinterpret_cast<void*>(output),
                               c.d, vendor.algorithm, call.args.workspace, vendor.workspace, call.stream);
  }
  if (result == 0) return LtOutcome::enqueued;
  c.state.store(uint32_t(Fallback::failed), std::memory_order_release);
  const bool reads_output = (residual || call.args.reads_optional) && added == output;
  if (c.library->enqueued_nothing(result) || !reads_output) return LtOutcome::not_run;
  keep_driver_error(result, c.library->lost_text);
  return LtOutcome::lost;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
