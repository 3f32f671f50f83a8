// The reader of modules, in a program of its own, as MLIR is part of it.
#include "base/text/error.h"
#include "generator/mlir_in/module.h"
#include "generator/mlir_in/source.h"
#include "tests/fuzz/target.h"

#include <csetjmp>
#include <csignal>

namespace deepgen {
namespace {

sigjmp_buf behind_reader;
volatile sig_atomic_t in_reader = 0;
struct sigaction before_segv, before_abort;

void leave_reader(int signal, siginfo_t* info, void* context) {
  if (in_reader) siglongjmp(behind_reader, 1);
  const struct sigaction& before = signal == SIGSEGV ? before_segv : before_abort;
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// MLIR's own reader ends in a null pointer on some texts, such as a linalg.transpose with a damaged
/// permutation. The command runs it in a process of its own; here, such a text is passed over. False: it was
/// one.
bool survives(const std::string& input, tensors::Source& source) {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = leave_reader, action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    return sigaction(SIGSEGV, &action, &before_segv) == 0 && sigaction(SIGABRT, &action, &before_abort) == 0;
  }();
  fuzz::require(installed, "no handlers of signals");
  if (sigsetjmp(behind_reader, 1)) {
    in_reader = 0;
    return false;
  }
  in_reader = 1;
  try {
    source = tensors::read_source(input, "x.mlir");
  } catch (...) {
    in_reader = 0;
    throw;
  }
  in_reader = 0;
  return true;
}

/// What is read of a text can be written, read again and put back as calls; nothing of ours crashes.
void run_mlir(const std::string& input) {
  tensors::Analysis analysis;
  try {
    tensors::Source source;
    if (!survives(input, source)) return;
    analysis = tensors::analyse(source.graph, "x.mlir", input, true);
  } catch (const Error& e) {
    fuzz::require(e.what()[0] != 0, "an error without a message");
    return;
  }
  const std::string text = analysis.manifest.serialize();
  const tensors::Manifest again = tensors::Manifest::parse(text, "manifest");
  fuzz::require(again == analysis.manifest, "a manifest changes when it is read again");
  if (analysis.chains.empty()) return;
  const std::string calls = tensors::module_with_calls(input, "x.mlir", again, "kernels");
  fuzz::require(calls.find("call @kernels_") != std::string::npos, "a module without calls");
}
const fuzz::Target mlir_target("mlir", run_mlir);

} // namespace
} // namespace deepgen
