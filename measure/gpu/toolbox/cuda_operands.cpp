#include "measure/gpu/toolbox/cuda_operands.h"

#include "measure/gpu/toolbox/cuda_ptx.h"
#include "measure/gpu/toolbox/host_toolbox.h"

#include <algorithm>

namespace deepgen::cuda {
namespace {

constexpr int64_t kThreads = 256;

void enqueue(Function function, uint32_t grid_x, uint32_t grid_y, Stream stream, void** parameters) {
  LaunchConfig config;
  config.grid[0] = grid_x, config.grid[1] = grid_y, config.block[0] = kThreads;
  config.stream = stream;
  check(driver()->cuLaunchKernelEx(&config, function, parameters, nullptr),
        "launching a kernel of the measurement");
}

} // namespace

std::unique_ptr<const Toolbox> Toolbox::make(const Context& context) {
  if (platform() == Platform::hip) return host_toolbox(context);
  return std::make_unique<const Toolbox>(context);
}

Toolbox::Toolbox(const Context& context)
    : context_(context), module_(std::in_place, std::string(cuda_kernels_ptx)) {}

void Toolbox::launch(const char* entry, int64_t items, void** parameters) const {
  const int64_t most = int64_t(context_.multiprocessors()) * 16;
  const int64_t blocks = std::clamp((items + kThreads - 1) / kThreads, int64_t(1), most);
  enqueue(module_->function(entry), uint32_t(blocks), 1, context_.stream(), parameters);
}

void Toolbox::product(const ProductParameters& p, int64_t blocks) const {
  constexpr int64_t kMostRows = 65535; // of a grid
  const auto columns = uint32_t((p.n + block_rows - 1) / block_rows);
  for (int64_t done = 0; done < blocks; done += kMostRows) {
    ProductParameters part = p;
    const auto at = uint64_t(done) * uint64_t(block_rows * p.n);
    part.blocks += uint64_t(done) * sizeof(int64_t);
    part.product += at * sizeof(double), part.magnitude += at * sizeof(float);
    void* parameters[] = {&part};
    enqueue(module_->function("product"), columns, uint32_t(std::min(kMostRows, blocks - done)),
            context_.stream(), parameters);
  }
}

void Toolbox::epilogue(const Array& source, const Array& d, const EpilogueParameters& p) const {
  const bool halves = source.type == d.type && (Type(d.type) == Type::f16 || Type(d.type) == Type::bf16);
  const bool dense =
      d.columns % 8 == 0 && d.ld == d.columns && d.data % 16 == 0 && elements(d) < (int64_t(1) << 32);
  const auto gate = EpilogueOp(p.gate);
  const bool logistic =
      gate == EpilogueOp::silu || gate == EpilogueOp::gelu_tanh || gate == EpilogueOp::sigmoid;
  if (p.gate >= 0 && logistic && p.step_count == 0 && p.alpha == 1 && halves && dense)
    run("gate_rows", elements(d) / 8, source, d, p.gate);
  else
    run("epilogue", elements(d), source, d, p);
}

void Toolbox::spin(Address reading, double seconds) const {
  auto nanoseconds = uint64_t(seconds * 1e9);
  void* parameters[] = {&reading, &nanoseconds};
  enqueue(module_->function("spin"), uint32_t(context_.multiprocessors()), 1, context_.stream(), parameters);
}

void Toolbox::read_all(Address data, size_t bytes, Address sink) const {
  run("read_all", int64_t(bytes / 16), data, int64_t(bytes / 16), sink);
}

void Toolbox::set_words(Address data, uint32_t word, size_t bytes) const {
  check(driver()->cuMemsetD32Async(data, word, bytes / 4, context_.stream()), "filling memory");
}

Array shape_of(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t gap) {
  Array x;
  x.rows = rows, x.columns = columns, x.ld = ld, x.batch = batch;
  x.stride = batch > 1 ? rows * ld + gap : 0;
  return x;
}

GuardedArray::GuardedArray(Type type, const Array& shape, int64_t offset, int64_t zone) : array_(shape) {
  const int64_t elements = (shape.batch - 1) * shape.stride + (shape.rows - 1) * shape.ld + shape.columns;
  const int64_t extent = std::max<int64_t>(0, elements) * size_of(type); // without rows, where K is 0: none
  const int64_t bytes = (2 * zone + offset + std::max<int64_t>(extent, 1) + 3) / 4 * 4;
  memory_ = Memory(size_t(bytes));
  array_.type = int32_t(type);
  array_.data = memory_.address() + uint64_t(zone + offset);
  end_ = memory_.address() + uint64_t(bytes);
}

void GuardedArray::poison(const Toolbox& tools) const {
  tools.set_words(memory_.address(), canary_word, memory_.bytes());
}

void GuardedArray::check_gaps(const Toolbox& tools, Address finding) const {
  tools.check_gaps(array_, memory_.address(), end_, finding);
}

void GuardedArray::check_gaps(const Toolbox& tools, Address finding, int64_t first, int64_t last) const {
  Array rows = array_;
  rows.data += uint64_t(first * rows.ld * size_of(Type(rows.type))), rows.rows = last - first;
  tools.check_gaps(rows, memory_.address(), end_, finding);
}

std::string GuardedArray::place_of_damage(uint64_t place) const {
  const int64_t at = int64_t(memory_.address() + place - array_.data);
  if (at < 0) return std::to_string(-at) + " bytes before the first element";
  const int64_t element = at / size_of(Type(array_.type));
  const int64_t entry = array_.batch > 1 ? std::min(element / array_.stride, array_.batch - 1) : 0;
  const int64_t row =
      std::min((element - entry * array_.stride) / std::max<int64_t>(array_.ld, 1), array_.rows - 1);
  return std::to_string(element - entry * array_.stride - row * array_.ld - array_.columns) +
         " elements behind row " + std::to_string(row) +
         (array_.batch > 1 ? " of batch entry " + std::to_string(entry) : "");
}

} // namespace deepgen::cuda
