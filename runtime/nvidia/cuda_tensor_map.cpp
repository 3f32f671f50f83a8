#include "runtime/nvidia/cuda_tensor_map.h"

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

/// By map_number(). Of attention: the strides from a token, a head and an entry to the next follow `ld`.
struct Operand {
  deepgen_arg base, ld, stride;
};
constexpr Operand operands[map_slots] = {
    {DEEPGEN_ARG_A, DEEPGEN_ARG_LDA, DEEPGEN_ARG_STRIDE_A},
    {DEEPGEN_ARG_B, DEEPGEN_ARG_LDB, DEEPGEN_ARG_STRIDE_B},
    {DEEPGEN_ARG_C, DEEPGEN_ARG_LDC, DEEPGEN_ARG_STRIDE_C},
    {DEEPGEN_ARG_D, DEEPGEN_ARG_LDD, DEEPGEN_ARG_STRIDE_D},
    {DEEPGEN_ARG_RESIDUAL, DEEPGEN_ARG_LD_RESIDUAL, DEEPGEN_ARG_STRIDE_RESIDUAL},
    {DEEPGEN_ARG_MULTIPLIER, DEEPGEN_ARG_LD_MULTIPLIER, DEEPGEN_ARG_STRIDE_MULTIPLIER},
    {DEEPGEN_ARG_Q, DEEPGEN_ARG_Q_TOKEN, DEEPGEN_ARG_COUNT},
    {DEEPGEN_ARG_KEY, DEEPGEN_ARG_KEY_TOKEN, DEEPGEN_ARG_COUNT},
    {DEEPGEN_ARG_VALUE, DEEPGEN_ARG_VALUE_TOKEN, DEEPGEN_ARG_COUNT},
};

TensorType tensor_type(uint8_t type) {
  switch (type) {
  case DEEPGEN_F32:
    return TensorType::f32;
  case DEEPGEN_F64:
    return TensorType::f64;
  case DEEPGEN_F16:
    return TensorType::f16;
  case DEEPGEN_BF16:
    return TensorType::bf16;
  case DEEPGEN_TF32:
    return TensorType::tf32;
  case DEEPGEN_I32:
    return TensorType::i32;
  default:
    return TensorType::u8; // both 8-bit floats, i8
  }
}

int swizzle_code(uint16_t bytes) { return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0; }
int promotion_code(uint16_t bytes) { return bytes == 256 ? 3 : bytes == 128 ? 2 : bytes == 64 ? 1 : 0; }

/// A number of an operand, or of its copy, in a call.
uint64_t scaled(int64_t number, uint8_t by, const ArgumentValues& values) {
  return uint64_t(by ? number * values.size[by - 1] : number);
}

/// Of one copy: map.box_rows, or those of the last one along a size of the call.
uint32_t rows_of_box(const deepgen_tensor_map& map, const ArgumentValues& values) {
  const auto rest = map.rest_of && map.box_rows ? uint32_t(values.size[map.rest_of - 1] % map.box_rows) : 0;
  return rest ? (rest + 7) / 8 * 8 : map.box_rows;
}

/// Whether the operand has a matrix for each entry of a batch of the largest call, for which code is made.
bool has_entries(const deepgen_operand& x, const deepgen_function& f) {
  return x.entries_by ? x.entries * f.sizes[x.entries_by - 1].most > 1 : x.entries > 1;
}

/// The extent of what the host does not know: kernels ask for no token, and no page, that is not there.
constexpr uint64_t any_number = INT32_MAX;

/// Of tokens, heads and entries. Where offsets tell where entries begin, only the device knows how many
/// tokens there are. Pages take the place of entries, and nobody tells how many a cache has.
Result encode_tokens(const Driver& d, const deepgen_operand& x, const deepgen_tensor_map& map,
                     const Operand& place, const ArgumentValues& values, TensorMap& out) {
  const deepgen_arg offsets =
      place.base == DEEPGEN_ARG_Q ? DEEPGEN_ARG_QUERY_OFFSETS : DEEPGEN_ARG_KEY_OFFSETS;
  const uint64_t size = size_of(x.type), tokens = scaled(x.rows, x.rows_by, values);
  const bool paged = place.base != DEEPGEN_ARG_Q && values.slot[DEEPGEN_ARG_PAGE_TABLE];
  const uint64_t sizes[4] = {uint64_t(x.columns), paged || values.slot[offsets] ? any_number : tokens,
                             uint64_t(x.entries), paged ? any_number : uint64_t(values.size[3])};
  if (!tokens || !values.size[3]) { // nothing is read by the map, and the driver makes none of null
    out = {};
    return success;
  }
  const uint64_t* stride = &values.slot[place.ld];
  const uint64_t strides[3] = {stride[0] * size, stride[1] * size, stride[2] * size};
  const uint32_t box[4] = {map.box_columns, map.box_rows, 1, 1}, every_element[4] = {1, 1, 1, 1};
  return d.encode_tiled(&out, int(tensor_type(x.type)), 4, reinterpret_cast<void*>(values.slot[place.base]),
                        sizes, strides, box, every_element, /*interleave=*/0, swizzle_code(map.swizzle),
                        promotion_code(map.promotion), /*fill=*/0);
}

Result encode(const Driver& d, const deepgen_function& f, const deepgen_tensor_map& map, const Operand& place,
              const ArgumentValues& values, TensorMap& out) {
  const deepgen_operand* operand = find_operand(f, map.operand);
  if (operand && place.stride == DEEPGEN_ARG_COUNT)
    return encode_tokens(d, *operand, map, place, values, out);
  if (!operand || !(operand->flags & DEEPGEN_OPERAND_MATRIX)) return invalid_value;
  const uint64_t size = size_of(operand->type);
  uint64_t base = values.slot[place.base], ld = values.slot[place.ld], stride = values.slot[place.stride];
  uint64_t sizes[3] = {scaled(operand->columns, operand->columns_by, values),
                       scaled(operand->rows, operand->rows_by, values),
                       scaled(operand->entries, operand->entries_by, values)};
  if (map.packed_ld) {
    base = values.slot[DEEPGEN_ARG_WORKSPACE] + map.packed_offset, ld = uint64_t(map.packed_ld);
    sizes[0] = scaled(map.packed_columns, map.packed_columns_by, values);
    sizes[1] = scaled(map.packed_rows, map.packed_rows_by, values), stride = sizes[1] * ld;
  }
  if (!sizes[0] || !sizes[1]) { // K is 0: nothing is read by the map, and the driver makes none of null
    out = {};
    return success;
  }
  const uint64_t strides[2] = {ld * size, stride * size};
  const uint32_t box[3] = {map.box_columns, rows_of_box(map, values), 1}, every_element[3] = {1, 1, 1};
  return d.encode_tiled(&out, int(tensor_type(operand->type)), has_entries(*operand, f) ? 3 : 2,
                        reinterpret_cast<void*>(base), sizes, strides, box, every_element,
                        /*interleave=*/0, swizzle_code(map.swizzle), promotion_code(map.promotion),
                        /*fill=*/0);
}

} // namespace

deepgen_arg mapped_operand(uint8_t map_slot) { return operands[map_number(map_slot)].base; }

Result encode_maps(const Driver& d, const deepgen_function& f, const deepgen_kernel& k,
                   const ArgumentValues& values, bool reads_c, EncodedMaps& out) {
  TensorMap* next = out.maps;
  for (uint32_t i = 0; i < k.map_count; ++i)
    for (uint32_t slot = 0; slot < map_slots; ++slot) {
      if (k.maps[i].operand != operands[slot].base) continue;
      // C may be null when it is not read, which no map can say.
      const bool stands_in = k.maps[i].operand == DEEPGEN_ARG_C && !reads_c;
      const Operand& place = operands[stands_in ? DEEPGEN_ARG_MAP_D - DEEPGEN_ARG_MAP_A : slot];
      if (!i || k.maps[i - 1].operand != k.maps[i].operand) out.of_slot[slot] = next;
      if (Result r = encode(d, f, k.maps[i], place, values, *next++)) return r;
    }
  return success;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
