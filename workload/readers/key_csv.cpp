// A table of problem keys, written by hand or by a program: problem,calls,seconds.
#include "base/text/error.h"
#include "workload/log/documents.h"
#include "workload/log/fields.h"

#include <algorithm>

namespace deepgen {
namespace {

std::string_view cell(const std::vector<std::string_view>& row, size_t column) {
  if (column >= row.size()) return {};
  std::string_view text = trimmed(row[column]);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

size_t column_of(const std::vector<std::string_view>& header, std::string_view name) {
  for (size_t i = 0; i < header.size(); ++i)
    if (cell(header, i) == name) return i;
  return header.size();
}

std::string message(const Error& e) {
  const std::string text = e.what();
  const size_t why = text.find("\n  where:  ");
  return first_line(text) + (why == text.npos ? "" : ": " + first_line(text.substr(why + 11)));
}

} // namespace

bool is_key_csv(std::string_view beginning) {
  const std::vector<std::string_view> header = split(cut_first(beginning, '\n'), ',');
  return column_of(header, "problem") < header.size();
}

int64_t read_key_csv(LogLines& lines, int64_t log, Tally& tally) {
  std::string_view line;
  lines.next(line);
  const std::string first(line);
  const std::vector<std::string_view> header = split(first, ',');
  const size_t problem = column_of(header, "problem"), calls = column_of(header, "calls"),
               seconds = column_of(header, "seconds");
  int64_t rows = 0;
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    ++rows;
    const std::vector<std::string_view> row = split(line, ',');
    Call call;
    const LogPlace place{log, lines.number()};
    try {
      if (lines.was_cut()) throw Untranslatable{"the line is longer than 1 MiB"};
      if (const std::string_view text = cell(row, calls); !text.empty())
        call.calls = size_of_text("calls", text);
      if (const std::string_view text = cell(row, seconds); !text.empty()) {
        const std::optional<double> value = number(text);
        if (!value || *value < 0) throw Untranslatable{"its seconds are no time: " + shown(text)};
        call.seconds = *value;
      }
      call.problem = Problem::parse(cell(row, problem));
      validate(call.problem);
      call.flops = call.problem.flops();
      if (call.calls > 0) tally.add(call, place);
    } catch (const Untranslatable& reason) {
      tally.lose(reason.why, call, line, place);
    } catch (const Error& e) {
      tally.lose(message(e), call, line, place);
    }
  }
  return rows;
}

} // namespace deepgen
