#ifndef FUCINA_REGISTRY_PLUGIN_CALLS_H_
#define FUCINA_REGISTRY_PLUGIN_CALLS_H_

// Calls into a plugin's factories, and errors that say whose they are.

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fucina/diag/printable.h"
#include "registry/registry.h"

namespace fucina {

// Puts `prefix` before the message of an error and keeps its payloads.
absl::Status Prefixed(absl::string_view prefix, const absl::Status& status);

// Internal: `plugin` returned OK and something impossible.
absl::Status BrokeContract(const PluginRecord& plugin, absl::string_view what);

// The one place where exceptions of a plugin's factories end.
template <typename Call>
auto Guarded(const PluginRecord& plugin, absl::string_view what, Call call)
    -> decltype(call()) {
  std::string thrown;
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(plugin.file, ": out of memory while making ", what));
  } catch (const std::exception& error) {
    thrown = Printable(error.what());
  } catch (...) {
    thrown = "an exception of unknown type";
  }
  return absl::InternalError(absl::StrCat(
      Printable(plugin.file), " threw while making ", what, ": ", thrown));
}

}  // namespace fucina

#endif  // FUCINA_REGISTRY_PLUGIN_CALLS_H_
