// Errors that a person can act on: what failed, where, why, and the remedy.
#pragma once

#include <stdexcept>
#include <string>

namespace deepgen {

/// Thrown by everything in base/, generator/ and measure/ on bad input; main() prints it and exits with 1.
/// `where` names the file, key or argument at fault; `remedy` is what the reader can do about it.
class Error : public std::runtime_error {
public:
  Error(const std::string& what, const std::string& where = "", const std::string& why = "",
        const std::string& remedy = "")
      : std::runtime_error(format(what, where, why, remedy)) {}

private:
  static std::string format(const std::string& what, const std::string& where, const std::string& why,
                            const std::string& remedy) {
    std::string text = what;
    if (!where.empty()) text += "\n  where:  " + where;
    if (!why.empty()) text += "\n  why:    " + why;
    if (!remedy.empty()) text += "\n  remedy: " + remedy;
    return text;
  }
};

/// What the host could not do this time: memory, a process, a permission. It says nothing about a candidate,
/// so it never becomes a record: the command fails, and goes on when it is run again.
class HostFault : public Error {
public:
  using Error::Error;
};

/// Of what may be an Error's whole report.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

} // namespace deepgen
