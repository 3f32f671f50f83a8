// Says what a faulting address belongs to, so that a stray access is a finding and not just a SIGSEGV.
#pragma once

#include <cstddef>

namespace deepgen::fault {

/// [begin, end) are the pages, guards included, of the operand whose elements lie in [first, last). Returns a
/// handle.
int add_region(const char* name, const char* begin, const char* end, const char* first, const char* last);
void remove_region(int handle);

/// Writes e.g. "access 16 bytes behind the end of B" and returns true when the address is in a region.
/// Async-signal-safe.
bool describe(const void* address, char* text, size_t size);

/// From now on, a SIGSEGV or SIGBUS in a region calls `report` with the description before the process dies
/// of it.
void install(void (*report)(const char* description));

} // namespace deepgen::fault
