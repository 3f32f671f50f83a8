#include "workload/mlir/analysis.h"

#include "base/text/error.h"
#include "base/text/identifier.h"
#include "base/text/sha256.h"
#include "base/text/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

namespace deepgen::tensors {
namespace {

struct Refusal {
  int operation;
  Refused refused;
};

/// Chains and refusals of a graph. An operation belongs to one chain at most.
void find_chains(const Graph& graph, std::vector<Chain>& chains, std::vector<Refusal>& refusals) {
  std::set<int> taken;
  for (int i = 0; i < int(graph.operations.size()); ++i) {
    const Match match = match_product(graph, i);
    if (const Refused* r = std::get_if<Refused>(&match)) refusals.push_back({i, *r});
    const Product* p = std::get_if<Product>(&match);
    if (!p) continue;
    std::variant<Chain, Refused> chain = chain_of(graph, *p, taken);
    if (const Refused* r = std::get_if<Refused>(&chain)) {
      refusals.push_back({i, *r});
      continue;
    }
    Chain& good = std::get<Chain>(chain);
    const bool finite = std::all_of(good.numbers.begin(), good.numbers.end(),
                                    [](const auto& n) { return std::isfinite(n.second); });
    if (!finite) {
      refusals.push_back({i, {"a constant of its epilogue is not finite", "finite bounds and factors"}});
      continue;
    }
    taken.insert(good.operations.begin(), good.operations.end());
    chains.push_back(std::move(good));
  }
}

void refuse(const Graph& graph, const std::string& file, const std::vector<Refusal>& refusals) {
  const Operation& o = graph.operation(refusals[0].operation);
  std::string why = refusals[0].refused.why;
  if (refusals.size() > 1) why += "; so are " + std::to_string(refusals.size() - 1) + " others not:";
  for (size_t i = 1; i < std::min<size_t>(refusals.size(), 8); ++i)
    why += (i > 1 ? ", " : " ") + graph.operation(refusals[i].operation).name + " on line " +
           std::to_string(graph.operation(refusals[i].operation).line);
  throw Error(o.name + " is no product that DeepGen computes", place(file, o), why,
              refusals[0].refused.remedy + "; or pass --leave, and such operations stay in the module");
}

/// As a manifest may have it.
std::string one_line(const std::string& text) {
  std::string line = visible(text);
  for (char& c : line)
    if (c == '\n' || c == '\t') c = ' ';
  return line.size() > 400 ? visible(line.substr(0, 300)) + "..." : line;
}

/// A C identifier of any name: "my.func-1" becomes my_func_1.
std::string identifier(const std::string& name) {
  std::string text;
  for (unsigned char c : name) {
    const char next = std::isalnum(c) && c < 128 ? char(c) : '_';
    if (next != '_' || (!text.empty() && text.back() != '_')) text += next;
  }
  while (!text.empty() && text.back() == '_') text.pop_back();
  if (text.size() > 150) text.resize(150);
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])))
    text = "f" + (text.empty() ? "" : "_" + text);
  return why_no_identifier(text).empty() ? text : "f_" + text;
}

/// Of every operation of linalg in the function: it is in the chain, or makes nothing but what the chain
/// takes in.
bool covers(const Graph& graph, const Chain& chain, int function) {
  std::set<int> covered(chain.operations.begin(), chain.operations.end());
  for (int i = int(graph.operations.size()); i-- > 0;) {
    const Operation& o = graph.operation(i);
    if (o.function != function || covered.count(i)) continue;
    if (o.result < 0) return false;
    const Value& v = graph.value(o.result);
    if (v.other_uses || std::any_of(v.users.begin(), v.users.end(), [&](int u) { return !covered.count(u); }))
      return false;
    covered.insert(i);
  }
  return true;
}

/// Whether the function takes the chain's inputs, each once, and returns its result.
bool is_whole(const Graph& graph, const Chain& chain, int function) {
  const Function& f = graph.functions[size_t(function)];
  const int d = chain.operands.back().value;
  if (f.other_operations || f.returned != std::vector<int>{d} ||
      f.arguments.size() + 1 != chain.operands.size())
    return false;
  std::set<int> inputs;
  for (const ChainOperand& o : chain.operands)
    if (o.value != d && graph.value(o.value).argument >= 0) inputs.insert(o.value);
  return inputs.size() == f.arguments.size() && covers(graph, chain, function);
}

class Names {
public:
  std::string take(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 2; !used_.insert(lower(name)).second; ++i) name = wanted + "_" + std::to_string(i);
    return name;
  }

private:
  static std::string lower(std::string text) { // the header's macros are in capitals
    for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }
  std::set<std::string> used_;
};

Entry entry_of(const Graph& graph, Chain& chain, bool whole) {
  const Operation& product = graph.operation(chain.product);
  if (whole) // as the function takes them
    std::sort(chain.operands.begin(), chain.operands.end() - 1,
              [&](const ChainOperand& x, const ChainOperand& y) {
                return graph.value(x.value).argument < graph.value(y.value).argument;
              });
  Entry e;
  e.problem = chain.gemm, e.function = one_line(graph.functions[size_t(product.function)].name);
  e.line = std::max<int64_t>(product.line, 1), e.whole = whole;
  for (const ChainOperand& o : chain.operands)
    e.operands.emplace_back(o.field, int64_t(graph.value(o.value).shape.size()));
  e.arguments = chain.numbers;
  return e;
}

void add_notes(const Graph& graph, const std::string& file, Analysis& analysis) {
  std::set<int> taken;
  for (const Chain& chain : analysis.chains) {
    taken.insert(chain.operations.begin(), chain.operations.end());
    if (!chain.ends.empty())
      analysis.notes.push_back(place(file, graph.operation(chain.product)) + ": the chain ends before " +
                               chain.ends);
  }
  for (const Chain& chain : analysis.chains)
    if (graph.value(chain.operands.back().value).elementwise_use)
      analysis.notes.push_back(
          place(file, graph.operation(chain.product)) +
          ": operations of arith or math on whole tensors follow, which are no part of the chain before "
          "mlir-opt --convert-elementwise-to-linalg");
  std::map<std::string, int> others;
  for (int i = 0; i < int(graph.operations.size()); ++i) {
    const Operation& o = graph.operation(i);
    const bool sums = std::find(o.reduction.begin(), o.reduction.end(), true) != o.reduction.end();
    if (sums && !taken.count(i)) ++others[o.name];
  }
  for (const auto& [name, count] : others)
    analysis.notes.push_back(std::to_string(count) + " " + name + (count == 1 ? " stays" : " stay") +
                             " in the module");
}

} // namespace

Analysis analyse(const Graph& graph, const std::string& file, const std::string& text, bool leave) {
  Analysis analysis;
  std::vector<Refusal> refusals;
  find_chains(graph, analysis.chains, refusals);
  if (!refusals.empty() && !leave) refuse(graph, file, refusals);
  analysis.manifest.source = file, analysis.manifest.sha256 = sha256_hex(text);
  for (const Refusal& r : refusals)
    analysis.manifest.left.push_back({one_line(graph.operation(r.operation).name), one_line(r.refused.why),
                                      std::max<int64_t>(graph.operation(r.operation).line, 1)});
  std::map<int, int> chains_of; // by function
  for (const Chain& chain : analysis.chains) ++chains_of[graph.operation(chain.product).function];
  std::vector<bool> whole;
  Names names;
  for (const Chain& chain : analysis.chains) { // whole functions have their names before others
    const int function = graph.operation(chain.product).function;
    whole.push_back(chains_of[function] == 1 && is_whole(graph, chain, function));
  }
  std::map<int, std::string> whole_names;
  for (size_t i = 0; i < whole.size(); ++i)
    if (whole[i])
      whole_names[int(i)] = names.take(
          identifier(graph.functions[size_t(graph.operation(analysis.chains[i].product).function)].name));
  std::map<int, int> next;
  for (size_t i = 0; i < whole.size(); ++i) {
    Entry e = entry_of(graph, analysis.chains[i], whole[i]);
    std::vector<Entry>& functions = analysis.manifest.functions;
    const auto same = std::find_if(functions.begin(), functions.end(), [&](const Entry& other) {
      return !e.whole && !other.whole && other.problem == e.problem && other.operands == e.operands &&
             other.arguments == e.arguments;
    });
    analysis.entry_of.push_back(size_t(same - functions.begin()));
    if (same != functions.end()) {
      ++same->calls;
      continue;
    }
    const int function = graph.operation(analysis.chains[i].product).function;
    e.name = whole[i] ? whole_names[int(i)]
                      : names.take(identifier(graph.functions[size_t(function)].name) + "_" +
                                   std::to_string(next[function]++));
    functions.push_back(std::move(e));
  }
  if (analysis.manifest.functions.size() > Manifest::most_entries)
    throw Error("the module has too many different products", file, "", "at most 10000: split it");
  add_notes(graph, file, analysis);
  return analysis;
}

} // namespace deepgen::tensors
