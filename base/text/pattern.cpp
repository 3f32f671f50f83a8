#include "base/text/pattern.h"

#include "base/text/error.h"

#include <re2/re2.h>

namespace deepgen {

struct Pattern::Compiled {
  explicit Compiled(const std::string& text) : re(text, RE2::Quiet) {} // Quiet: the error is ours to print
  RE2 re;
};

Pattern::Pattern(const std::string& text, const std::string& where) : compiled_(new Compiled(text)) {
  if (!compiled_->re.ok())
    throw Error("not a regular expression: '" + text + "'", where, compiled_->re.error(),
                "write it as RE2 has them: without lookaheads and back references; in JSON a backslash is "
                "written twice");
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

bool Pattern::is_found_in(const std::string& text) const { return RE2::PartialMatch(text, compiled_->re); }

} // namespace deepgen
