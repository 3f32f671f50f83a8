#include "tests/amx_emu/amx_emu.h"

#include "tests/amx_emu/amx_products.h"

#include <cstring>
#include <sys/uio.h>
#include <unistd.h>

namespace deepgen::amx {
namespace {

constexpr int kConfigBytes = 64;
constexpr const char* kUnreadable = "memory that may not be read";
constexpr const char* kUnwritable = "memory that may not be written";

iovec span(uint64_t address, size_t bytes) { return {reinterpret_cast<void*>(address), bytes}; }

/// By way of the kernel, which answers where a plain access would end the process.
bool read_memory(uint64_t from, void* to, size_t bytes) {
  const iovec local = {to, bytes}, remote = span(from, bytes);
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == ssize_t(bytes);
}
bool write_memory(const void* from, uint64_t to, size_t bytes) {
  const iovec local = {const_cast<void*>(from), bytes}, remote = span(to, bytes);
  return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == ssize_t(bytes);
}

uint64_t address_of(const Instruction& x, const Registers& registers, bool with_index) {
  uint64_t address = uint64_t(x.displacement) + (x.from_here ? registers.next : 0);
  if (x.base >= 0) address += registers.general[size_t(x.base)];
  if (with_index && x.index >= 0) address += registers.general[size_t(x.index)] << x.shift;
  return address;
}

bool all_zero(const uint8_t* from, const uint8_t* to) {
  for (; from != to; ++from)
    if (*from) return false;
  return true;
}

} // namespace

int64_t Machine::products() const {
  int64_t sum = 0;
  for (int op = int(Op::bf16); op < op_count; ++op) sum += counts_[size_t(op)];
  return sum;
}

void Machine::reset() { palette_ = 0, shapes_ = {}, tiles_ = {}; }

const char* Machine::load_config(uint64_t address) {
  uint8_t config[kConfigBytes];
  if (!read_memory(address, config, sizeof config)) return kUnreadable;
  if (config[0] > 1) return "a palette that does not exist";
  std::array<Shape, tile_count> shapes{};
  // Byte 1 is the row at which an interrupted load goes on; then reserved bytes, widths and rows.
  if (!all_zero(config + 2, config + 16) || !all_zero(config + 32, config + 48) ||
      !all_zero(config + 56, config + 64))
    return "reserved bytes of the configuration are not zero";
  for (int i = 0; i < tile_count; ++i) {
    uint16_t bytes;
    std::memcpy(&bytes, config + 16 + 2 * i, 2);
    const int rows = config[48 + i];
    if (bytes > most_bytes || rows > most_rows) return "a tile of more than 16 rows of 64 bytes";
    if ((bytes == 0) != (rows == 0)) return "a tile of rows without bytes, or of bytes without rows";
    shapes[size_t(i)] = {rows, bytes};
  }
  reset();
  if (config[0] == 0) return nullptr;
  palette_ = 1, shapes_ = shapes;
  return nullptr;
}

const char* Machine::store_config(uint64_t address) const {
  uint8_t config[kConfigBytes] = {uint8_t(palette_)};
  for (size_t i = 0; i < tile_count; ++i)
    config[16 + 2 * i] = uint8_t(shapes_[i].bytes), config[48 + i] = uint8_t(shapes_[i].rows);
  return write_memory(config, address, sizeof config) ? nullptr : kUnwritable;
}

const char* Machine::move(const Instruction& x, uint64_t address, int64_t row_bytes) {
  const Shape& own = shape(x.destination);
  Tile& tile = tiles_[size_t(x.destination)];
  const bool stores = x.op == Op::tilestore;
  Tile loaded{};
  for (int r = 0; r < own.rows; ++r, address += uint64_t(row_bytes)) {
    const auto bytes = size_t(own.bytes);
    if (stores && !write_memory(tile[size_t(r)].data(), address, bytes)) return kUnwritable;
    if (!stores && !read_memory(address, loaded[size_t(r)].data(), bytes)) return kUnreadable;
  }
  if (!stores) tile = loaded;
  return nullptr;
}

const char* Machine::multiply(const Instruction& x) {
  if (x.destination == x.left || x.destination == x.right || x.left == x.right)
    return "a product of tiles that are not three different ones";
  const Shape &sums = shape(x.destination), &left = shape(x.left), &right = shape(x.right);
  if (!sums.configured() || !left.configured() || !right.configured())
    return "a product with a tile that is not configured";
  if (sums.bytes % 4 || left.bytes % 4 || right.bytes % 4)
    return "a product of rows that are not whole words";
  if (left.bytes / 4 != right.rows) return "the left tile's columns are not the right one's rows";
  if (sums.rows != left.rows || sums.bytes != right.bytes)
    return "the sums have not the shape of the product";
  const TileSizes sizes{sums.rows, sums.bytes / 4, right.rows};
  multiply_tiles(x.op, sizes, tiles_[size_t(x.destination)], tiles_[size_t(x.left)], tiles_[size_t(x.right)]);
  return nullptr;
}

const char* Machine::step(const Instruction& x, const Registers& registers) {
  const char* wrong = nullptr;
  if (x.op == Op::ldtilecfg) {
    wrong = load_config(address_of(x, registers, true));
  } else if (x.op == Op::sttilecfg) {
    wrong = store_config(address_of(x, registers, true));
  } else if (x.op == Op::tilerelease) {
    reset();
  } else if (!configured()) {
    wrong = "a tile is used and none is configured";
  } else if (x.is_product()) {
    wrong = multiply(x);
  } else if (!shape(x.destination).configured()) {
    wrong = "a tile is used that is not configured";
  } else if (x.op == Op::tilezero) {
    tiles_[size_t(x.destination)] = {};
  } else {
    const int64_t row = x.index < 0 ? 0 : int64_t(registers.general[size_t(x.index)] << x.shift);
    wrong = move(x, address_of(x, registers, false), row);
  }
  if (!wrong) ++counts_[size_t(x.op)];
  return wrong;
}

} // namespace deepgen::amx
