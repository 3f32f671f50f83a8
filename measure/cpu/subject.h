// What verifying and timing on the CPU know of an operator, chosen once for a problem.
#pragma once

#include "measure/race/race.h"
#include "measure/values/verify.h"

#include <memory>

namespace deepgen {

/// Dense operands that all arms of a race share.
class TimingOperands {
public:
  TimingOperands() = default;
  TimingOperands(const TimingOperands&) = delete;
  virtual ~TimingOperands() = default;

  virtual SlotValues values() const = 0;
  /// Touches what calls write, so that no sample pays for page faults. For the worker, after the fork.
  virtual void touch() const = 0;
};

/// What a user without DeepGen would run.
struct Baseline {
  std::string name;    ///< "openblas 0.3.21"; empty where there is none
  std::string why_not; ///< then; what to tell whoever asked for it
  /// The operands are those of the subject, and outlive the race.
  std::function<Arm(const TimingOperands&)> arm;
};

class Subject {
public:
  virtual ~Subject() = default;

  virtual std::unique_ptr<CaseSet> cases(uint64_t seed) const = 0;
  /// Bytes that cases() take, or more.
  virtual double case_bytes() const = 0;
  /// `workspace`: of the kernel that needs most.
  virtual std::unique_ptr<TimingOperands> operands(int64_t workspace, uint64_t seed) const = 0;
  virtual Baseline baseline() const = 0;
};

/// With ranges: its cases are of several sizes, its operands those of the largest. That of the problem at
/// given sizes times kernels of the problem with ranges, too.
std::unique_ptr<Subject> subject_of(const Problem&);
/// The operators' own; see gemm_subject.cpp, rows_subject.cpp and attention_subject.cpp.
std::unique_ptr<Subject> subject_of(const Gemm&);
std::unique_ptr<Subject> subject_of(const Rows&);
std::unique_ptr<Subject> subject_of(const Attention&);

} // namespace deepgen
