#include "measure/gpu/cuda_launch.h"

#include "base/kernel/device.h"
#include "base/kernel/kernel_call.h"
#include "base/problem/signature.h"
#include "base/text/error.h"
#include "measure/gpu/attention_map.h"
#include "runtime/amd/hip_load.h"
#include "runtime/include/deepgen/kernel_abi.h"

#include <algorithm>
#include <cstring>

namespace deepgen::cuda {
namespace {

constexpr const char* kArgNames[] = {DEEPGEN_ARG_NAMES};
constexpr int kMaxDynamicShared = 8, kNonPortableCluster = 14;            // CUfunction_attribute
constexpr uint32_t kClusterDimension = 4, kProgrammaticSerialization = 6; // CUlaunchAttributeID

int slot_of(const std::string& name, const Kernel& kernel) {
  for (int i = 0; i < DEEPGEN_ARG_COUNT; ++i)
    if (name == kArgNames[i]) return i;
  throw Error("unknown kernel argument '" + name + "'", kernel.choice.text(),
              "this deepgen-measure is older than the deepgen that compiled the kernel",
              "use the two of one version");
}

/// A cubin runs on devices of its major version and at least its minor one, PTX on all later ones too; with
/// "a", both run on exactly their own.
bool runs_on(const std::string& target, int64_t capability, bool ptx) {
  const int64_t made_for = compute_capability(target);
  if (!target.empty() && target.back() == 'a') return made_for == capability;
  return (ptx || made_for / 10 == capability / 10) && made_for <= capability;
}

const std::string& choose_image(const Kernel& k, const Context& context) {
  if (platform() == Platform::hip) {
    if (!k.code.empty() && amd::runs_on(k.target.c_str(), context.target().c_str())) return k.code;
    throw Error("a kernel for " + k.target + " does not run on this device", k.choice.text(),
                "it is a " + context.target(), "compile for the arch of the device");
  }
  const int64_t capability =
      context.attribute(Attribute::capability_major) * 10 + context.attribute(Attribute::capability_minor);
  if (!k.code.empty() && runs_on(k.target, capability, false)) return k.code;
  if (!k.ptx.empty() && runs_on(k.target, capability, true)) return k.ptx;
  throw Error("a kernel for " + k.target + " does not run on this device", k.choice.text(),
              "it has compute capability " + std::to_string(capability / 10) + "." +
                  std::to_string(capability % 10),
              "compile for the arch of the device");
}

Kernel without_code(const Kernel& k) {
  Kernel out = k;
  out.code.clear(), out.ptx.clear();
  return out;
}

/// CUtensorMapDataType
int map_type(Type t) {
  switch (t) {
  case Type::f64:
    return 8;
  case Type::f16:
    return 6;
  case Type::bf16:
    return 9;
  case Type::f32:
    return 7;
  case Type::tf32:
    return 11;
  case Type::i32:
    return 3;
  default:
    return 0;
  }
}

/// Encodes a map of so many dimensions, whose box has one of all but the first two.
TensorMapBits encode_box(const TensorMap& map, Type type, uint32_t rank, uint64_t base, const uint64_t* sizes,
                         const uint64_t* pitches) {
  TensorMapBits bits = {};
  const uint32_t box[] = {uint32_t(map.box_columns), uint32_t(map.box_rows), 1, 1}, steps[] = {1, 1, 1, 1};
  const int swizzle = map.swizzle == 128 ? 3 : int(map.swizzle / 32);
  const int promotion = map.promotion == 256 ? 3 : int(map.promotion / 64);
  const Driver& d = *driver();
  if (!d.cuTensorMapEncodeTiled)
    throw Error("this driver has no tensor maps", map.operand, "", "install driver 535 or later");
  check(d.cuTensorMapEncodeTiled(&bits, map_type(type), rank, reinterpret_cast<void*>(base), sizes, pitches,
                                 box, steps, 0, swizzle, promotion, 0),
        ("encoding the tensor map of " + map.operand).c_str());
  return bits;
}

/// A broadcast operand has as many entries as the others, with a stride of 0.
TensorMapBits encode_map(const TensorMap& map, Array x, uint64_t workspace, const Kernel& k) {
  const Gemm& p = k.problem.gemm();
  const bool grouped = map.operand == "b" && p.groups;
  const int64_t batch = grouped ? p.groups : p.batch;
  if (const PackedOperand& copy = map.packed; copy.ld)
    x.data = workspace + uint64_t(copy.offset), x.rows = copy.rows, x.columns = copy.columns, x.ld = copy.ld,
    x.stride = copy.rows * copy.ld;
  if (!x.rows || !x.columns) return {}; // K is 0: nothing is read by the map, and the driver makes none
  const auto type = Type(x.type);
  const uint64_t bytes = uint64_t(size_of(type));
  const uint64_t sizes[] = {uint64_t(x.columns), uint64_t(x.rows), uint64_t(batch)};
  const uint64_t pitches[] = {uint64_t(x.ld) * bytes, uint64_t(x.stride) * bytes};
  return encode_box(map, type, has_entries(k) || grouped ? 3 : 2, x.data, sizes, pitches);
}

TensorMapBits encode_map(const TensorMap& map, const TokenMap& x) {
  if (x.empty()) return {};
  return encode_box(map, x.type, 4, x.base, x.sizes.data(), x.pitches.data());
}

void fill_slots(const CallOperands& x, Type scalar, uint64_t* slots) {
  const std::pair<int, uint64_t> values[] = {{DEEPGEN_ARG_A, x.a.data},
                                             {DEEPGEN_ARG_B, x.b.data},
                                             {DEEPGEN_ARG_C, x.c.data},
                                             {DEEPGEN_ARG_D, x.d.data},
                                             {DEEPGEN_ARG_LDA, uint64_t(x.a.ld)},
                                             {DEEPGEN_ARG_LDB, uint64_t(x.b.ld)},
                                             {DEEPGEN_ARG_LDC, uint64_t(x.c.ld)},
                                             {DEEPGEN_ARG_LDD, uint64_t(x.d.ld)},
                                             {DEEPGEN_ARG_STRIDE_A, uint64_t(x.a.stride)},
                                             {DEEPGEN_ARG_STRIDE_B, uint64_t(x.b.stride)},
                                             {DEEPGEN_ARG_STRIDE_C, uint64_t(x.c.stride)},
                                             {DEEPGEN_ARG_STRIDE_D, uint64_t(x.d.stride)},
                                             {DEEPGEN_ARG_ALPHA, scalar_bits(x.alpha, scalar)},
                                             {DEEPGEN_ARG_BETA, scalar_bits(x.beta, scalar)},
                                             {DEEPGEN_ARG_WORKSPACE, x.workspace},
                                             {DEEPGEN_ARG_CLAMP_LOW, scalar_bits(x.clamp_low, scalar)},
                                             {DEEPGEN_ARG_CLAMP_HIGH, scalar_bits(x.clamp_high, scalar)},
                                             {DEEPGEN_ARG_OFFSETS, x.offsets}};
  for (const auto& [slot, value] : values) slots[slot] = value;
}

void fill_slots(const RowsOperands& x, uint64_t* slots) {
  const std::pair<int, uint64_t> values[] = {{DEEPGEN_ARG_X, x.x.data},
                                             {DEEPGEN_ARG_LDX, uint64_t(x.x.ld)},
                                             {DEEPGEN_ARG_RESIDUAL, x.residual.data},
                                             {DEEPGEN_ARG_LD_RESIDUAL, uint64_t(x.residual.ld)},
                                             {DEEPGEN_ARG_SCALE, x.scale},
                                             {DEEPGEN_ARG_BIAS, x.bias},
                                             {DEEPGEN_ARG_D, x.d.data},
                                             {DEEPGEN_ARG_LDD, uint64_t(x.d.ld)},
                                             {DEEPGEN_ARG_RESIDUAL_OUT, x.residual_out.data},
                                             {DEEPGEN_ARG_LD_RESIDUAL_OUT, uint64_t(x.residual_out.ld)},
                                             {DEEPGEN_ARG_ROW_SCALES, x.row_scales},
                                             {DEEPGEN_ARG_EPSILON, scalar_bits(x.epsilon, Type::f32)}};
  for (const auto& [slot, value] : values) slots[slot] = value;
}

} // namespace

void set_operand(RowsOperands& call, const std::string& name, const Array& x) {
  if (name == "x") call.x = x;
  if (name == "residual") call.residual = x;
  if (name == "d") call.d = x;
  if (name == "residual_out") call.residual_out = x;
  if (name == "scale") call.scale = x.data;
  if (name == "bias") call.bias = x.data;
  if (name == "row_scales") call.row_scales = x.data;
}

uint64_t scalar_bits(double value, Type type) {
  uint64_t out = 0;
  if (type == Type::f64) {
    std::memcpy(&out, &value, sizeof value);
  } else if (type == Type::i32) {
    const auto integer = int32_t(value);
    std::memcpy(&out, &integer, sizeof integer);
  } else {
    const auto narrow = float(value);
    std::memcpy(&out, &narrow, sizeof narrow);
  }
  return out;
}

LoadedKernel::LoadedKernel(const Kernel& kernel, const Context& context)
    : kernel_(without_code(kernel)), module_(choose_image(kernel, context)) {
  if (kernel.launches.empty())
    throw Error("malformed kernel description", kernel.choice.text(), "a GPU kernel without launches",
                "delete the kernel file and build again");
  for (const std::string& name : kernel.args) slots_.push_back(slot_of(name, kernel));
  if (kernel.problem.op() == "gemm") find_step_slots();
  for (const Launch& launch : kernel.launches) entries_.push_back(prepare(launch, context));
}

void LoadedKernel::find_step_slots() {
  const Gemm& p = kernel_.problem.gemm();
  for (EpilogueOp op : p.epilogue)
    for (const Operand& x : operands_of(op, p)) {
      if (!x.in_memory()) continue;
      StepSlots& s = step_slots_.emplace_back(StepSlots{op, x.name, slot_of(x.name, kernel_), -1, -1});
      if (x.is_matrix())
        s.ld = slot_of(x.leading_dimension(), kernel_), s.stride = slot_of(x.stride(), kernel_);
    }
}

const Array& LoadedKernel::mapped(const std::string& name, const CallOperands& x) const {
  if (name == "a") return x.a;
  if (name == "b") return x.b;
  if (name == "c") return x.c;
  for (const StepSlots& s : step_slots_)
    if (s.name == name) return x.step(s.op);
  return x.d;
}

LoadedKernel::Entry LoadedKernel::prepare(const Launch& launch, const Context& context) const {
  const Driver& d = *driver();
  Entry e;
  e.function = module_.function(launch.entry);
  for (int i = 0; i < 3; ++i) {
    e.config.grid[i] = uint32_t(launch.grid[size_t(i)]);
    e.config.block[i] = uint32_t(launch.block[size_t(i)]);
  }
  e.config.shared = uint32_t(launch.shared);
  e.grid_rules = launch.grid_rules;
  if (launch.shared > 0)
    check(d.cuFuncSetAttribute(e.function, kMaxDynamicShared, int(launch.shared)),
          "asking for dynamic shared memory");
  const int64_t cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  if (cluster > 8)
    check(d.cuFuncSetAttribute(e.function, kNonPortableCluster, 1), "asking for a large cluster");
  if (cluster > 1) {
    LaunchAttribute a{kClusterDimension, 0, {}};
    for (size_t i = 0; i < 3; ++i) a.value[i] = uint32_t(launch.cluster[i]);
    e.attributes.push_back(a);
  }
  if (launch.persistent) {
    int fit = 0;
    if (cluster > 1 && d.cuOccupancyMaxActiveClusters) {
      e.config.attributes = e.attributes.data(), e.config.attribute_count = uint32_t(e.attributes.size());
      check(d.cuOccupancyMaxActiveClusters(&fit, e.function, &e.config), "asking for the occupancy");
      fit *= int(cluster);
    } else {
      const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
      check(d.cuOccupancyMaxActiveBlocksPerMultiprocessor(&fit, e.function, int(threads),
                                                          size_t(launch.shared)),
            "asking for the occupancy");
      fit *= context.multiprocessors();
    }
    e.config.grid[0] = std::min(e.config.grid[0], uint32_t(std::max(fit, int(cluster))));
  }
  if (launch.dependent) e.attributes.push_back({kProgrammaticSerialization, 0, {1}});
  return e;
}

void LoadedKernel::enqueue(const CallOperands& operands, Stream stream) const {
  uint64_t slots[DEEPGEN_ARG_COUNT] = {};
  const Gemm& p = kernel_.problem.gemm();
  fill_slots(operands, p.scale_type(), slots);
  for (size_t i = 0; i < size_count; ++i) slots[DEEPGEN_ARG_M + int(i)] = uint64_t(p.sizes()[Size(i)]);
  for (const StepSlots& s : step_slots_) {
    const Array& x = operands.step(s.op);
    slots[s.data] = x.data;
    if (s.ld >= 0) slots[s.ld] = uint64_t(x.ld), slots[s.stride] = uint64_t(x.stride);
  }
  std::vector<TensorMapBits> maps;
  for (const TensorMap& map : kernel_.maps)
    maps.push_back(encode_map(map, mapped(map.operand, operands), operands.workspace, kernel_));
  launch(slots, maps, stream);
}

void LoadedKernel::enqueue(const RowsOperands& operands, Stream stream) const {
  uint64_t slots[DEEPGEN_ARG_COUNT] = {};
  fill_slots(operands, slots);
  std::vector<TensorMapBits> none;
  launch(slots, none, stream);
}

void LoadedKernel::enqueue(const SlotValues& values, Stream stream) const {
  SlotValues slots = values;
  const Sizes sizes{int64_t(values[DEEPGEN_ARG_M]), int64_t(values[DEEPGEN_ARG_N]),
                    int64_t(values[DEEPGEN_ARG_K]), int64_t(values[DEEPGEN_ARG_BATCH])};
  std::vector<TensorMapBits> maps;
  for (const TensorMap& map : kernel_.maps)
    maps.push_back(encode_map(map, token_map(kernel_.problem.attention(), map.operand, values)));
  launch(slots.data(), maps, stream, &sizes);
}

void LoadedKernel::launch(uint64_t* slots, std::vector<TensorMapBits>& maps, Stream stream,
                          const Sizes* sizes) const {
  std::vector<void*> parameters;
  for (size_t i = 0; i < slots_.size(); ++i) {
    void* value = &slots[slots_[i]];
    for (size_t j = maps.size(); j-- > 0;) // the first one: they are an array
      if (kernel_.args[i] == "map_" + kernel_.maps[j].operand) value = &maps[j];
    parameters.push_back(value);
  }
  for (const Entry& e : entries_) {
    LaunchConfig config = e.config;
    config.stream = stream;
    for (size_t i = 0; sizes && i < 3; ++i)
      if (e.grid_rules[i].exists())
        config.grid[i] = uint32_t(std::min(int64_t(config.grid[i]), e.grid_rules[i].at(*sizes)));
    config.attributes = const_cast<LaunchAttribute*>(e.attributes.data());
    config.attribute_count = uint32_t(e.attributes.size());
    check(driver()->cuLaunchKernelEx(&config, e.function, parameters.data(), nullptr),
          "launching the kernel");
  }
}

} // namespace deepgen::cuda
