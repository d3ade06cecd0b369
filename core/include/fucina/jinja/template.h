#ifndef FUCINA_JINJA_TEMPLATE_H_
#define FUCINA_JINJA_TEMPLATE_H_

// The template language that model files carry: the subset of Jinja 2 that
// chat templates use, with the meaning that Python's Jinja 2 gives it. A
// construct outside the subset is an error with line and column, never a
// guess. docs/chat-templates.md lists what is supported.
//
// A template is untrusted input. It sees the values it is given and nothing
// else: no files, no network, no attributes of the host. Steps, processor
// time, output, intermediate data and nesting are bounded.
//
// A parsed Template is immutable and may be rendered from several threads.
// Source: the Jinja template designer documentation, version 3.1; Hugging
// Face's chat-template conventions for the environment.

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"
#include "fucina/jinja/value.h"

namespace fucina::jinja {

// A piece of output written by one origin. Neighbours differ in origin and no
// piece is empty, so equal output has equal pieces.
struct Segment {
  Origin origin = Origin::kTemplate;
  std::string text;
};

// The pieces joined.
FUCINA_API std::string JoinSegments(std::span<const Segment> segments);

struct ParseOptions {
  // The Hugging Face environment. A newline after a block tag is dropped, and
  // so are blanks before a block tag that stands first on its line.
  bool trim_blocks = true;
  bool lstrip_blocks = true;
};

struct RenderLimits {
  std::int64_t max_steps = 10'000'000;  // evaluated nodes and touched elements
  std::int64_t max_cpu_ms = 1000;       // processor time of the calling thread
  std::size_t max_output_bytes = std::size_t{16} << 20;
  // All strings and containers that the evaluation makes, added up.
  std::size_t max_work_bytes = std::size_t{512} << 20;
  int max_call_depth = 100;  // macros and recursive loops
};

struct RenderOptions {
  RenderLimits limits = {};
  // What strftime_now() formats, in local time; nullopt for the clock.
  std::optional<std::time_t> now = std::nullopt;
};

class FUCINA_API Template {
 public:
  // Parses `source` once. `name` stands first in every message. Windows line
  // ends and a byte order mark are accepted and mean nothing.
  //
  // InvalidArgument "NAME, line L, column C: …" for a syntax error, an
  // unsupported construct (named), a template over 1 MiB, or nesting past the
  // parser's bound. Columns count characters from 1.
  static absl::StatusOr<std::unique_ptr<Template>> Parse(
      absl::string_view name, absl::string_view source,
      const ParseOptions& options = {});

  ~Template();
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  // Renders with the entries of `context` as variables. Deterministic, except
  // for strftime_now without RenderOptions::now.
  //
  // InvalidArgument with line and column when the template raises an exception
  // (its own text is quoted) or evaluates something that Python would refuse;
  // ResourceExhausted when a limit is reached (the message names it).
  // REQUIRES: context.kind() == Value::Kind::kMap.
  absl::StatusOr<std::vector<Segment>> Render(
      const Value& context, const RenderOptions& options = {}) const;

  // The variables that the template may read from its context, sorted: names
  // that are looked up somewhere outside every scope that binds them.
  std::span<const std::string> variables() const;
  bool Reads(absl::string_view variable) const;

 private:
  struct Impl;
  explicit Template(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_TEMPLATE_H_
