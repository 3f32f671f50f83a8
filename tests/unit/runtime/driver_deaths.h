// Processes in which a vendor's driver cannot be had: they end with what they found. In processes of their
// own, as a driver is looked up once.
#pragma once

#include "deepgen/runtime.h"
#include "tests/unit/short_host.h"

#include <cstdlib>
#include <string_view>

namespace deepgen::tests {

/// Its exit code is that of the launch, or 99 where what is asked without a launch says something else than
/// that there is no driver.
template <typename Function>
[[noreturn]] void launch_and_exit(Function& f) {
  const bool quiet = f.config() == nullptr && f.workspace() == 0 && f.prepare() == DEEPGEN_ERROR_NO_DRIVER;
  const deepgen_status status = f.launch();
  std::_Exit(status == DEEPGEN_OK || quiet ? int(status) : 99);
}

/// The exit code of such a process tells the first step that went wrong.
class Steps {
public:
  void expect(bool right) { ++step_, wrong_ = wrong_ || right ? wrong_ : step_; }
  int wrong() const { return wrong_; }

private:
  int wrong_ = 0, step_ = 0;
};

/// Calls of a function whose driver the host cannot load for lack of something.
template <typename Function>
void call_on_a_short_host(Function& f, __rlimit_resource what, Steps& steps) {
  const ShortOf host(what);
  steps.expect(f.launch() == DEEPGEN_ERROR_DRIVER);
  const char* text = "";
  steps.expect(deepgen_last_driver_error(&text) == 2);
  steps.expect(std::string_view(text).find("the next call tries again") != std::string_view::npos);
  steps.expect(f.prepare() == DEEPGEN_ERROR_DRIVER && f.config() == nullptr);
}

} // namespace deepgen::tests
