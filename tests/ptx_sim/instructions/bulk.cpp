// Bulk copies (TMA): their writes to shared memory are the mbarrier's that counts their bytes, and land at a
// random time; their readings of shared memory last until the thread that issued them has waited for their
// group.
#include "tests/ptx_sim/machine/block.h"
#include "tests/ptx_sim/machine/readings.h"
#include "tests/ptx_sim/machine/swizzle.h"
#include "tests/ptx_sim/machine/tensor_map.h"
#include "tests/ptx_sim/program/decode.h"
#include "tests/ptx_sim/program/fault.h"

namespace deepgen::ptx_sim {
namespace {

uint64_t address_of(const Warp& w, const Operand& o, int lane) { return w.in(o)[lane] + uint64_t(o.offset); }
uint32_t identity(const Warp& w) { return uint32_t(w.block.cluster.number << 10 | w.agent) + 1; }

SimulatedMap map_at(const Warp& w, uint64_t address) {
  const uint64_t offset = address - parameter_window;
  const std::vector<uint8_t>& all = w.block.cluster.parameters;
  SimulatedMap m;
  if (offset > all.size() || all.size() - offset < sizeof m)
    throw Fault("the tensor map is no parameter of the kernel");
  std::memcpy(&m, all.data() + offset, sizeof m);
  check_map(m);
  return m;
}

/// A box of a tensor in its order in shared memory, by rows of the innermost dimension.
class Box {
public:
  Box(const SimulatedMap& map, const Warp& w, const Instruction& in, size_t group, int lane) : map_(map) {
    if (in.count(group) != map.rank + 1) throw Fault("a copy of another rank than its tensor map's");
    for (uint32_t i = 0; i < map.rank; ++i) start_[i] = int32_t(w.in(in.at(group, i + 1))[lane]);
    for (uint32_t i = 1; i < map.rank; ++i) rows_ *= map.box[i];
    // The GPU reports an illegal instruction.
    if (start_[0] * int64_t(map.element_bytes) % 16)
      throw Fault("a tensor copy from an address that 16 does not divide");
  }
  uint64_t row_bytes() const { return uint64_t(map_.box[0]) * map_.element_bytes; }
  uint64_t rows() const { return rows_; }
  uint64_t bytes() const { return rows_ * row_bytes(); }
  /// Whether it lies beyond the tensor.
  bool is_empty() const {
    for (uint32_t i = 0; i < map_.rank; ++i)
      if (start_[i] >= int64_t(map_.sizes[i]) || start_[i] + int64_t(map_.box[i]) <= 0) return true;
    return false;
  }
  /// The part of row `r` that lies in the tensor: bytes [from, to) of the row; its first byte's global
  /// address.
  bool inside(uint64_t r, uint64_t& from, uint64_t& to, uint64_t& address) const {
    const int64_t size = int64_t(map_.sizes[0]), end = std::min<int64_t>(start_[0] + map_.box[0], size);
    const int64_t begin = std::max<int64_t>(start_[0], 0);
    if (begin >= end) return false;
    address = map_.base + uint64_t(begin) * map_.element_bytes;
    for (uint32_t i = 1; i < map_.rank; ++i) {
      const int64_t at = start_[i] + int64_t(r % map_.box[i]);
      r /= map_.box[i];
      if (at < 0 || at >= int64_t(map_.sizes[i])) return false;
      address += uint64_t(at) * map_.pitches[i - 1];
    }
    from = uint64_t(begin - start_[0]) * map_.element_bytes,
    to = uint64_t(end - start_[0]) * map_.element_bytes;
    return true;
  }

private:
  const SimulatedMap& map_;
  int64_t start_[5] = {};
  uint64_t rows_ = 1;
};

void check_destination(const SimulatedMap& map, uint64_t offset) {
  if (offset % 128)
    throw Fault("a tensor copy at shared address " + std::to_string(offset) + ", which 128 does not divide");
  if (map.swizzle && map.box[0] * map.element_bytes != map.swizzle)
    throw Fault("a box whose rows are shorter than its swizzle: the simulator does not know where they lie");
}

constexpr uint64_t kChunk = 16;

/// One block's share of a copy: the whole box.
void load_box(Warp& w, const SimulatedMap& map, const Box& box, Block& to, uint64_t offset,
              uint64_t barrier_offset) {
  to.check_alive();
  check_destination(map, offset);
  Mbarrier& barrier = to.mbarrier_at(barrier_offset, w.access());
  const Access access{barrier.agent, barrier.clock(), &w.known, true, w.line};
  const uint64_t width = box.row_bytes();
  for (uint64_t r = 0; r < box.rows(); ++r) {
    std::vector<uint8_t> row(width, 0);
    uint64_t from, end, address;
    if (box.inside(r, from, end, address))
      for (uint64_t at = from, step; at < end; at += step) {
        step = std::min<uint64_t>(end - at, 128);
        std::memcpy(&row[at], w.block.cluster.memory.read(address + at - from, step, identity(w), true),
                    step);
      }
    for (uint64_t at = 0; at < width; at += kChunk)
      std::memcpy(to.shared.write(swizzled(offset + r * width + at, map.swizzle), kChunk, access), &row[at],
                  kChunk);
  }
  Cluster& cluster = w.block.cluster;
  const int64_t bytes = int64_t(box.bytes());
  cluster.landings.push_back({nullptr, [&to, &cluster, barrier_offset, bytes] {
                                to.check_alive();
                                Mbarrier& b = to.mbarriers.at(barrier_offset);
                                b.copied(bytes);
                                cluster.settle(b);
                              }});
}

/// [to], [map, {...}], [barrier]{, blocks of the cluster}; in.flag: multicast.
void load_tensor(Warp& w, const Instruction& in) {
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    const SimulatedMap map = map_at(w, address_of(w, in.at(1), l));
    const Box box(map, w, in, 1, l);
    Cluster& cluster = w.block.cluster;
    ++cluster.memory.copies, cluster.memory.empty_copies += box.is_empty();
    uint64_t offset, barrier;
    Block& to = cluster.block_of(w.block, address_of(w, in.at(0), l), offset);
    Block& counts = cluster.block_of(w.block, address_of(w, in.at(2), l), barrier);
    if (&to != &counts) throw Fault("a copy to one block that another block's mbarrier counts");
    if (!in.flag) {
      load_box(w, map, box, to, offset, barrier);
      continue;
    }
    const uint64_t blocks = w.in(in.at(3))[l] & 0xffff;
    if (blocks >> cluster.blocks.size()) throw Fault("a multicast to blocks that the cluster does not have");
    for (size_t r = 0; r < cluster.blocks.size(); ++r)
      if (blocks >> r & 1) load_box(w, map, box, *cluster.blocks[r], offset, barrier);
  }
}

/// Readings of the asynchronous proxy go on until their group is waited for.
Warp::ReadingGroup& begin_reading(Warp& w, int lane) {
  w.bulk_readings.push_back({w.bulk_groups[lane] + 1, lane, w.line, w.known, {}});
  return w.bulk_readings.back();
}

/// [map, {...}], [from]
void store_tensor(Warp& w, const Instruction& in) {
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    const SimulatedMap map = map_at(w, address_of(w, in.at(0), l));
    const Box box(map, w, in, 0, l);
    const uint64_t offset = address_of(w, in.at(1), l), width = box.row_bytes();
    check_destination(map, offset);
    Warp::ReadingGroup& reading = begin_reading(w, l);
    for (uint64_t r = 0; r < box.rows(); ++r) {
      std::vector<uint8_t> row(width);
      for (uint64_t at = 0; at < width; at += kChunk) {
        const uint64_t from = swizzled(offset + r * width + at, map.swizzle);
        std::memcpy(&row[at], w.block.shared.read(from, kChunk, w.access(true)), kChunk);
        reading.readings.push_back({&w.block, from, kChunk});
      }
      uint64_t begin, end, address;
      if (box.inside(r, begin, end, address))
        std::memcpy(w.block.cluster.memory.write(address, end - begin, identity(w)), &row[begin],
                    end - begin);
    }
  }
}

/// prefetch.tensormap [map]: of something else it would cost time, and nobody would know.
void prefetch_map(Warp& w, const Instruction& in) {
  for (int l = 0; l < 32; ++l)
    if (w.is_active(l)) map_at(w, address_of(w, in.at(0), l));
}

void commit(Warp& w, const Instruction&) {
  for (int l = 0; l < 32; ++l)
    if (w.is_active(l)) ++w.bulk_groups[l];
}

void wait_for_groups(Warp& w, const Instruction& in) {
  const auto under_way = uint32_t(w.in(in.at(0))[0]);
  w.finish(w.bulk_readings, w.access(true), [&](const Warp::ReadingGroup& r) {
    return w.is_active(r.lane) && r.group + under_way <= w.bulk_groups[r.lane];
  });
}

} // namespace

bool decode_bulk(const Opcode& op, Instruction& in) {
  if (op.text == "prefetch.tensormap") {
    in.run = prefetch_map;
    return true;
  }
  if (!op.text.starts_with("cp.async.bulk")) return false;
  if (op.parts.size() < 4) return false;
  if (op.has("commit_group"))
    in.run = commit;
  else if (op.has("wait_group"))
    in.run = wait_for_groups;
  else if (op.has("tensor") && !op.has("im2col") && op.has("mbarrier::complete_tx::bytes")) {
    in.run = load_tensor, in.flag = op.has("multicast::cluster");
  } else if (op.has("tensor") && !op.has("im2col") && op.has("bulk_group") && op.parts[5] == "global") {
    in.run = store_tensor;
  }
  return in.run != nullptr;
}

} // namespace deepgen::ptx_sim
