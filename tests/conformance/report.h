#ifndef FUCINA_TESTS_CONFORMANCE_REPORT_H_
#define FUCINA_TESTS_CONFORMANCE_REPORT_H_

// One line per property, and whether all of them hold.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fucina::conformance {

// What a property found where it does not hold.
absl::Status Broken(absl::string_view what);

class Report {
 public:
  // "family 'acme'": put before the property of each line until changed.
  void Subject(std::string subject) { subject_ = std::move(subject); }

  // OK holds. Unimplemented means that the plugin does not offer it, which is
  // allowed and said. Everything else is a failure with its message.
  void Property(absl::string_view property, const absl::Status& result);

  bool all_hold() const { return num_failed_ == 0; }
  int num_checked() const { return num_checked_; }
  int num_failed() const { return num_failed_; }
  // All lines so far.
  const std::string& text() const { return text_; }

 private:
  std::string subject_;
  std::string text_;
  int num_checked_ = 0;
  int num_failed_ = 0;
};

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_REPORT_H_
