// Inputs that several commands share.
#pragma once

#include "base/kernel/device.h"
#include "base/kernel/kernel.h"
#include "base/problem/problem.h"
#include "base/search/record.h"

#include <set>

namespace deepgen {

/// The device of `path`. Without a path: for the CPU this host's, as the sibling deepgen-measure finds it;
/// for a GPU the arch's generic part, whatever is attached. The same for a GPU that the file says is not
/// present.
Device device_of(const std::string& path, const std::string& arch);
/// Among several files that of the arch, if there is one.
Device device_of(const std::vector<std::string>& paths, const std::string& arch);
/// The output of the sibling `deepgen-measure devices`; throws Error when it is missing or fails.
Device probe_device(const std::string& arch);
/// Runs a program without a shell and returns its wait status; -1 when it cannot be started.
int run_program(std::vector<std::string> words);
void show_devices(); ///< prints what it finds attached, a line each
void show_sandbox(); ///< prints what confines CPU candidates here
void show_rocm();    ///< prints which of ROCm's libraries are found
void show_cudnn();   ///< prints where cuDNN is found
/// What `deepgen-measure verify -o` wrote: SHA-256 of kernels.
std::set<std::string> read_verified(const std::string& path);
/// Those of the kernels that a search vouches for, or that the sibling deepgen-measure finds right now: on
/// this CPU, or on a GPU whose device.json among `devices` says that it is present. Throws Error when one is
/// not right.
std::set<std::string> verified_of(const KernelFile&, const std::vector<std::string>& devices);
/// A problem key, or the path of a problem.json.
Problem problem_of(const std::string& key_or_path);
/// "cpu_tile isa=4 ..." or, where one template alone serves the problem, "isa=4 ...".
Choice choice_of(const std::string& text, const Problem&, const std::string& arch);
/// Throws Error when there is no such file.
void require_file(const std::string& path, const std::string& what, const std::string& remedy);
void require_logs(const std::vector<std::string>& paths);
std::vector<RecordLog> logs_of(const std::vector<std::string>& paths);

} // namespace deepgen
