// Searches as IREE's dispatch profiler prints them, for those who come from there.
#include "generator/report/report.h"
#include "generator/report/report_study.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace deepgen {
namespace {

std::string format(const char* pattern, double x) {
  char buffer[60];
  std::snprintf(buffer, sizeof buffer, pattern, x);
  return buffer;
}

/// "simt_bm_64_bn_32": in one word.
std::string configuration(const Choice& choice) {
  std::string text = choice.text();
  std::replace(text.begin(), text.end(), ' ', '_');
  std::replace(text.begin(), text.end(), '=', '_');
  return text;
}

/// Row-major is t, column-major n.
std::string operand(Type type, bool transposed) { return to_string(type) + (transposed ? "n" : "t"); }

struct Dispatch {
  std::string operation, lhs, rhs, result;
  int64_t splits = 1; ///< of the sum over K

  Dispatch(const Gemm& g, const Choice& choice)
      : lhs(operand(g.a, g.a_transposed())), rhs(operand(g.b, g.b_transposed())),
        result(operand(g.d, false)) {
    operation = (g.batch > 1 ? "batch_matmul_" + std::to_string(g.batch) + "x" : "matmul_") +
                std::to_string(g.m) + "x" + std::to_string(g.n) + "x" + std::to_string(g.k) + "_" + lhs +
                "_" + rhs + "_" + result;
    for (const auto& [name, value] : choice.config.values)
      if (name == "splits") splits = value;
  }
};

std::string verification(const Record& r) {
  if (r.ok() || r.status == "dropped") return "SUCCESS";
  return r.status == "wrong" || r.status == "out_of_bounds" || r.status == "varies" ? "FAILED" : r.status;
}

/// Every candidate of a GEMM, in the order of the search: not the vendor, nor the same one again.
std::vector<const Record*> candidates_of(const Study& study) {
  std::vector<const Record*> list;
  if (study.problem.op() != "gemm") return list;
  for (const StudyTrial& trial : study.trials)
    if (!trial.record.is_vendor() && trial.record.status != "duplicate") list.push_back(&trial.record);
  return list;
}

std::string block_of(const Gemm& g, const Record& r) {
  const Dispatch d(g, r.choice);
  const bool split = d.splits > 1;
  std::string text =
      "----------------------------------------------------------------\nDispatch      : " + d.operation +
      "_" + configuration(r.choice) + "\nProvider      : DeepGen\nOpKind        : OperationKind." +
      (g.batch > 1 ? "BatchMatmul" : "Matmul") + "\nOperation     : " + d.operation +
      "\nConfiguration : " + configuration(r.choice) +
      "\nArguments     : --batch_count=" + std::to_string(g.batch) + " --m=" + std::to_string(g.m) +
      " --n=" + std::to_string(g.n) + " --k=" + std::to_string(g.k) + " --lhs=" + d.lhs + " --rhs=" + d.rhs +
      " --result=" + d.result + "\n                --split_k_mode=" + (split ? "parallel" : "N/A") +
      " --split_k_slices=" + (split ? std::to_string(d.splits) : "N/A") +
      "\nVerification  : " + verification(r) + "\n";
  if (r.timing)
    text += "Runtime(ms)   : " + format("%.4g", 1e3 * r.timing->seconds) +
            "\nGFLOPs        : " + format("%.2f", g.flops() / r.timing->seconds * 1e-9) + "\n";
  return text;
}

std::optional<double> seconds_of(const std::string& utc) {
  std::tm time = {};
  if (std::sscanf(utc.c_str(), "%d-%d-%dT%d:%d:%d", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour,
                  &time.tm_min, &time.tm_sec) != 6)
    return {};
  time.tm_year -= 1900, --time.tm_mon;
  return double(timegm(&time));
}

/// From the end of the first round to that of the finals; nothing where a log does not tell.
std::optional<double> elapsed(const Study& study) {
  if (study.trials.empty() || !study.final || !study.final->environment.is_object()) return {};
  const auto end = study.final->environment.find("ended");
  if (end == study.final->environment.end() || !end->is_string()) return {};
  const std::optional<double> from = seconds_of(study.trials.front().ended),
                              to = seconds_of(end->get<std::string>());
  return from && to && *to >= *from ? std::optional(*to - *from) : std::nullopt;
}

std::string closing_of(const Study& study) {
  const std::string stars(56, '*');
  std::string text = stars + "\n";
  if (study.decided() && study.decision.winner.timing) {
    const Record& best = study.decision.winner;
    text += "[Performance]: The best is " + best.choice.text() + "\nwith gflops " +
            format("%.2f", study.problem.flops() / best.timing->seconds * 1e-9) + "\n";
  } else {
    text += "[Performance]: the search has no winner: " + study.outcome() + "\n";
  }
  if (const std::optional<double> time = elapsed(study)) {
    const int64_t s = int64_t(*time);
    text += "\n" + std::to_string(s / 3600) + " hours " + std::to_string(s / 60 % 60) + " minutes " +
            std::to_string(s % 60) + " seconds from the end of the first round to that of the finals\n";
  }
  return text + stars + "\n";
}

} // namespace

std::string dispatch_text(const std::vector<Study>& studies) {
  std::string text;
  for (const Study& study : studies) {
    const std::vector<const Record*> candidates = candidates_of(study);
    if (candidates.empty()) continue;
    for (const Record* r : candidates) text += block_of(study.problem.gemm(), *r);
    text += closing_of(study);
  }
  return text;
}

std::string dispatch_csv(const std::vector<Study>& studies) {
  std::string text =
      "provider,op_kind,operation,batch_count,m,n,k,lhs,rhs,result,split_k_mode,split_k_slices,"
      "configuration,verification,runtime_ms,gflops\n";
  for (const Study& study : studies)
    for (const Record* r : candidates_of(study)) { // no cell has a comma or a quote
      const Gemm& g = study.problem.gemm();
      const Dispatch d(g, r->choice);
      text += std::string("DeepGen,") + (g.batch > 1 ? "BatchMatmul," : "Matmul,") + d.operation + "," +
              std::to_string(g.batch) + "," + std::to_string(g.m) + "," + std::to_string(g.n) + "," +
              std::to_string(g.k) + "," + d.lhs + "," + d.rhs + "," + d.result + "," +
              (d.splits > 1 ? "parallel," + std::to_string(d.splits) : "N/A,N/A") + "," +
              configuration(r->choice) + "," + verification(*r) + ",";
      text += r->timing ? format("%.6g", 1e3 * r->timing->seconds) + "," +
                              format("%.2f", g.flops() / r->timing->seconds * 1e-9)
                        : ",";
      text += "\n";
    }
  return text;
}

} // namespace deepgen
