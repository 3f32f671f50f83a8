// oneDNN: ONEDNN_VERBOSE=1, a line for each call with its milliseconds. Row-major. Three grammars:
//
//   onednn_verbose,v1,primitive,exec,cpu,matmul,<implementation>,undef,src:bf16::blocked:ab::f0
//   wei:...,<attributes>,,128x64:64x32,1.18
//   onednn_verbose,primitive,exec,cpu,matmul,<implementation>,undef,src_bf16::blocked:ab::f0
//   wei_...,<attributes>,,... onednn_verbose,exec,cpu,matmul,<implementation>,undef,src_f32::blocked:ab:f0
//   wei_...,,,...
#include "workload/readers/onednn.h"

#include "workload/log/fields.h"
#include "workload/readers/blas.h"

namespace deepgen {
namespace {

struct Memory {
  std::string_view type, tag; ///< the tag of a packed matrix has capitals and digits: BA16a64b
};

/// The memory of "src", "wei", "bia" or "dst" in a list such as "src_f32::blocked:ab:f0
/// wei_f32::blocked:BA16a64b:f0".
std::optional<Memory> memory_of(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    std::string_view rest = cut_first(list, ' ');
    if (!rest.starts_with(name) || rest.size() <= name.size()) continue;
    if (const char mark = rest[name.size()]; mark != '_' && mark != ':') continue;
    rest.remove_prefix(name.size() + 1);
    Memory memory{cut_first(rest, ':'), {}};
    while (!rest.empty())
      if (cut_first(rest, ':') == "blocked") {
        memory.tag = cut_first(rest, ':');
        return memory;
      }
    throw Untranslatable{"the format of its " + std::string(name) + " is not served"};
  }
  return {};
}

/// The last two dimensions of a tag in their order: "acb" is transposed; packed matrices have one that is
/// theirs.
std::optional<bool> transposed(std::string_view tag, size_t dimensions) {
  std::string plain = std::string("abcdefghijkl").substr(0, dimensions);
  if (tag == plain) return false;
  std::swap(plain[dimensions - 1], plain[dimensions - 2]);
  if (tag == plain) return true;
  return {};
}

std::vector<int64_t> sizes_of(std::string_view text) {
  std::vector<int64_t> sizes;
  for (std::string_view word : split(text, 'x')) sizes.push_back(size_of_text("size", word));
  if (sizes.size() < 2 || sizes.size() > 12) throw Untranslatable{"its sizes are not understood"};
  return sizes;
}

int64_t batch_of(const std::vector<int64_t>& source, const std::vector<int64_t>& weights) {
  double batch = 1;
  for (size_t i = 0; i + 2 < source.size(); ++i) {
    if (source[i] != weights[i] && source[i] != 1 && weights[i] != 1)
      throw Untranslatable{"its batches do not go together"};
    if (source.size() > 3 && source[i] != weights[i])
      throw Untranslatable{"a batch of more dimensions than one, of which some are repeated, is not served"};
    batch *= double(std::max(source[i], weights[i]));
  }
  if (batch > double(int64_t(1) << 31)) throw Untranslatable{"its batch is too large"};
  return int64_t(batch);
}

/// "128x64:64x32", or with the output behind.
void read_matmul_sizes(std::string_view text, OnednnCall& one, Call& call) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 2) throw Untranslatable{"its sizes are not understood"};
  const std::vector<int64_t> source = sizes_of(parts[0]), weights = sizes_of(parts[1]);
  if (source.size() != weights.size() || source.back() != weights[weights.size() - 2])
    throw Untranslatable{"the sizes of its matrices do not go together"};
  one.dimensions = source.size();
  one.gemm.batch = batch_of(source, weights);
  one.gemm.m = source[source.size() - 2], one.gemm.k = source.back(), one.gemm.n = weights.back();
  call.flops = one.gemm.flops();
}

/// "mb128ic1024oc4096", without a place: a convolution's image has ih and iw behind.
void read_inner_sizes(std::string_view text, OnednnCall& one, Call& call) {
  const size_t ic = text.find("ic"), oc = text.find("oc");
  if (!text.starts_with("mb") || ic == text.npos || oc == text.npos || oc < ic)
    throw Untranslatable{"its sizes are not understood"};
  one.gemm.m = size_of_text("mb", text.substr(2, ic - 2));
  one.gemm.k = size_of_text("ic", text.substr(ic + 2, oc - ic - 2));
  one.gemm.n = size_of_text("oc", text.substr(oc + 2));
  call.flops = one.gemm.flops();
}

void read_memory(std::string_view list, bool inner, OnednnCall& one) {
  const std::optional<Memory> source = memory_of(list, "src"), weights = memory_of(list, "wei"),
                              target = memory_of(list, "dst"), bias = memory_of(list, "bia");
  if (!source || !weights || !target)
    throw Untranslatable{"the line does not describe all of src, wei and dst"};
  const std::optional<bool> ta = transposed(source->tag, one.dimensions),
                            tb = transposed(weights->tag, one.dimensions);
  if (!ta) throw Untranslatable{"the format " + shown(source->tag) + " of its src is not served"};
  if (transposed(target->tag, one.dimensions) != false)
    throw Untranslatable{"the format " + shown(target->tag) + " of its dst is not served"};
  // Inner products have weights [N,K]. Packed ones may be stored as one likes: nt is what DeepGen prefers.
  const bool b_transposed = !tb || *tb != inner;
  one.gemm.layout = *ta ? (b_transposed ? Layout::tt : Layout::tn) : (b_transposed ? Layout::nt : Layout::nn);
  one.gemm.a = type_of_log(source->type), one.gemm.b = type_of_log(weights->type),
  one.gemm.d = type_of_log(target->type);
  if (bias && bias->type != "undef") {
    one.bias = true;
    if (type_of_log(bias->type) != one.gemm.epilogue_type())
      throw Untranslatable{"its bias is " + shown(bias->type) + ", and DeepGen's would be " +
                           to_string(one.gemm.epilogue_type())};
  }
}

constexpr std::string_view kPrefixes[] = {"onednn_verbose,", "dnnl_verbose,"};

bool is_onednn(std::string_view line) {
  for (std::string_view prefix : kPrefixes)
    if (line.starts_with(prefix)) return true;
  return false;
}

/// From behind "exec": cpu, matmul, implementation, propagation, memory, attributes, auxiliary, sizes, time.
bool read_call(const std::vector<std::string_view>& words, Call& call) {
  enum { engine, primitive, implementation, propagation, memory, attributes, auxiliary, sizes, time, count };
  const bool inner = words[primitive] == "inner_product";
  if (!inner && words[primitive] != "matmul") return false;
  if (words.size() < count) throw Untranslatable{"the line is cut off"};
  call.seconds = time_of_text(words[time]) * 1e-3;
  OnednnCall one;
  inner ? read_inner_sizes(words[sizes], one, call) : read_matmul_sizes(words[sizes], one, call);
  if (inner && !words[propagation].starts_with("forward"))
    throw Untranslatable{"its propagation " + shown(words[propagation]) + " is not served"};
  read_memory(words[memory], inner, one);
  read_attributes(words[attributes], one);
  finish(std::move(one.gemm), call);
  return true;
}

bool read_onednn(std::string_view line, Call& call) {
  std::vector<std::string_view> words = split(line, ',');
  for (size_t i = 1; i < words.size() && i < 5; ++i) // a version, a time and "primitive" may stand before it
    if (words[i] == "exec") {
      words.erase(words.begin(), words.begin() + int64_t(i) + 1);
      return words.size() > 1 && read_call(words, call);
    }
  return false;
}

} // namespace

const LogKind kOnednnVerbose = {"oneDNN verbose", is_onednn, read_onednn};

} // namespace deepgen
