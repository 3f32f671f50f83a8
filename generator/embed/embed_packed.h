// Of functions whose B is packed ahead of calls: what the tables say of the layout.
#pragma once

#include "generator/embed/embed.h"

namespace deepgen {

bool takes_packed_b(const LibraryFunction&);
/// deepgen_packed_b of the function; empty where B is taken as it is stored.
std::string packed_table(const LibraryFunction&);
/// The last fields of a kernel's row; empty likewise.
std::string packed_field(const LinkedKernel&, const LibraryFunction&);
/// The field of a kernel that is tuned for a cut among threads, with those between.
std::string cut_field(const LinkedKernel&, const LibraryFunction&);
/// Throws Error when a kernel reads B in another layout than the function packs.
void check_packed_layout(const LibraryFunction&, const KernelFile&);

} // namespace deepgen
