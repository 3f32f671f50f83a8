#include "base/search/decide.h"
#include "base/search/record.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

void run_records(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return RecordLog::parse(text, "records"); },
      [](const RecordLog& log) {
        decide(log); // which reads what it is told without another look
        return log.serialize();
      });
}
const fuzz::Target records_target("records", run_records);

} // namespace
} // namespace deepgen
