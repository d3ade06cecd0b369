#ifndef FUCINA_DIAG_STATUS_MACROS_H_
#define FUCINA_DIAG_STATUS_MACROS_H_

// Return-if-error and assign-or-return, with Abseil's spelling after the
// prefix.

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define FUCINA_STATUS_CONCAT_INNER_(a, b) a##b
#define FUCINA_STATUS_CONCAT_(a, b) FUCINA_STATUS_CONCAT_INNER_(a, b)

#define FUCINA_RETURN_IF_ERROR(expression)                                  \
  do {                                                                      \
    if (absl::Status fucina_status_ = (expression); !fucina_status_.ok()) { \
      return fucina_status_;                                                \
    }                                                                       \
  } while (false)

#define FUCINA_ASSIGN_OR_RETURN(target, expression) \
  FUCINA_ASSIGN_OR_RETURN_IMPL_(                    \
      FUCINA_STATUS_CONCAT_(fucina_statusor_, __LINE__), target, expression)

#define FUCINA_ASSIGN_OR_RETURN_IMPL_(statusor, target, expression) \
  auto statusor = (expression);                                     \
  if (!statusor.ok()) return std::move(statusor).status();          \
  target = std::move(statusor).value()

#endif  // FUCINA_DIAG_STATUS_MACROS_H_
