// Calls of vendors' libraries beside the kernels of a function, as text of the library's source.
#pragma once

#include "generator/embed/embed.h"

namespace deepgen {

/// The call that runs in place of the kernel where it can; nullptr: none.
const VendorCall* call_beside(const LinkedKernel&, const LibraryFunction&);

/// The table of a kernel's call and what it points to; "" without one.
std::string vendor_table(const LinkedKernel&, const LibraryFunction&, const std::string& id);
/// deepgen_kernel::vendor, as the last field of a row: "" without one.
std::string vendor_field(const LinkedKernel&, const LibraryFunction&, const std::string& id);

} // namespace deepgen
