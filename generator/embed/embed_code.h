// The code of a library's kernels as text of its source: machine code as assembly directives, PTX as string
// literals. Identical code is embedded once.
#pragma once

#include "base/kernel/kernel.h"

#include <map>
#include <tuple>

namespace deepgen {

class EmbeddedCode {
public:
  /// The entry symbol of a CPU kernel's image; `preferred` is its name if the image is new.
  std::string add_image(const Kernel&, const std::string& preferred);
  /// The name of the deepgen_gpu_code of a GPU kernel.
  std::string add_gpu_code(const Kernel&, const std::string& preferred);

  const std::string& sections() const { return sections_; } ///< for file scope
  const std::string& tables() const { return tables_; }     ///< for an unnamed namespace, behind the sections

private:
  std::string add_cubin(const std::string& code, const std::string& preferred);
  std::string add_ptx(const std::string& ptx, const std::string& preferred);

  std::map<std::tuple<std::string, int64_t, int64_t>, std::string> images_;
  std::map<std::tuple<std::string, std::string, std::string>, std::string> gpu_codes_;
  std::map<std::string, std::string> cubins_, ptx_;
  std::string sections_, tables_;
};

} // namespace deepgen
