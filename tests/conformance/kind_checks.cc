#include "tests/conformance/kind_checks.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/text/tokenizer.h"
#include "tests/conformance/constraint_suite.h"
#include "tests/conformance/family_suite.h"

namespace fucina::conformance {
namespace {

class KindChecks {
 public:
  KindChecks(const Request& request, const Registry& registry, Report& report,
             std::vector<std::string>& notes)
      : request_(request),
        registry_(registry),
        report_(report),
        notes_(notes) {}

  bool Run();

 private:
  // Whether the kind is to be checked. Adds a note, or a failure when it was
  // asked for, where there is nothing to check it with.
  template <typename Descriptor>
  bool Wanted(absl::string_view kind, absl::string_view plural,
              const Registry::Table<Descriptor>& table);
  template <typename Descriptor>
  std::vector<const Descriptor*> Named(
      const Registry::Table<Descriptor>& table) const;
  bool asked() const { return !request_.kind.empty(); }

  bool CheckFamilies();
  bool CheckConstraints();
  // A line that ends the checks.
  void Unusable(absl::string_view property, const absl::Status& status) {
    report_.Subject("model");
    report_.Property(property, absl::InternalError(status.message()));
  }

  const Request& request_;
  const Registry& registry_;
  Report& report_;
  std::vector<std::string>& notes_;
  std::unique_ptr<GgufFile> file_;
  bool usable_ = true;
};

template <typename Descriptor>
std::vector<const Descriptor*> KindChecks::Named(
    const Registry::Table<Descriptor>& table) const {
  std::vector<const Descriptor*> found;
  for (const auto& [name, entry] : table) {
    if (request_.name.empty() || request_.name == name) {
      found.push_back(&entry.descriptor);
    }
  }
  return found;
}

template <typename Descriptor>
bool KindChecks::Wanted(absl::string_view kind, absl::string_view plural,
                        const Registry::Table<Descriptor>& table) {
  if (asked() && request_.kind != kind) return false;
  if (Named(table).empty()) {
    if (asked()) {
      report_.Subject("plugin");
      report_.Property(
          absl::StrCat("offers a ", kind,
                       request_.name.empty() ? "" : " of that name"),
          absl::NotFoundError(request_.name.empty() ? "none" : request_.name));
      usable_ = false;
    }
    return false;
  }
  if (request_.model.empty()) {
    notes_.push_back(absl::StrCat(plural, " were not checked: give --model"));
  }
  return !request_.model.empty();
}

bool KindChecks::CheckFamilies() {
  const auto architecture = file_->GetString("general.architecture");
  if (!architecture.ok() || !architecture->has_value()) {
    Unusable("has an architecture",
             absl::InvalidArgumentError("no general.architecture"));
    return false;
  }
  const auto family = registry_.FindFamily(**architecture);
  if (!family.ok()) {
    Unusable("is of a family of the plugin", family.status());
    return false;
  }
  CheckFamily((*family)->descriptor, request_.model, request_.options, report_);
  return true;
}

bool KindChecks::CheckConstraints() {
  const auto tokenizer = Tokenizer::FromGguf(*file_);
  if (!tokenizer.ok()) {
    if (asked()) {
      Unusable("has a vocabulary", tokenizer.status());
    } else {
      notes_.push_back(absl::StrCat("constraints were not checked: ",
                                    tokenizer.status().message()));
    }
    return !asked();
  }
  for (const ConstraintKind* kind : Named(registry_.constraints())) {
    const absl::Status made =
        CheckConstraint(*kind, **tokenizer, request_.options, report_);
    if (made.ok()) continue;
    if (asked() || absl::IsInternal(made)) {
      report_.Subject(absl::StrCat("constraint '", kind->name, "'"));
      report_.Property("is made with the options given",
                       absl::InternalError(made.message()));
    } else {
      notes_.push_back(absl::StrCat(
          "constraint '", kind->name, "' was not checked: ", made.message(),
          "; give --kind constraint and its options"));
    }
  }
  return true;
}

bool KindChecks::Run() {
  if (!request_.model.empty()) {
    auto file = GgufFile::Open(request_.model);
    if (!file.ok()) {
      Unusable("can be read", file.status());
      return false;
    }
    file_ = *std::move(file);
  }
  if (Wanted("family", "families", registry_.families()) && !CheckFamilies()) {
    return false;
  }
  if (Wanted("constraint", "constraints", registry_.constraints()) &&
      !CheckConstraints()) {
    return false;
  }
  for (const auto& [name, unused] : registry_.adapters()) {
    if (!asked()) {
      notes_.push_back(absl::StrCat("adapter '", name, "': has no suite here"));
    }
  }
  return usable_;
}

}  // namespace

bool CheckKinds(const Request& request, const Registry& registry,
                Report& report, std::vector<std::string>& notes) {
  return KindChecks(request, registry, report, notes).Run();
}

}  // namespace fucina::conformance
