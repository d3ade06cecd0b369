#include "tests/conformance/kind_checks.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/text/tokenizer.h"
#include "registry/plugin_path.h"
#include "tests/conformance/constraint_suite.h"
#include "tests/conformance/drafter_suite.h"
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
  bool CheckDrafters();
  // The model with the plugin's own family, or with one that fucina finds.
  absl::StatusOr<std::unique_ptr<Decoder>> LoadModel();
  // What a whole kind lacks: a note, or the end when the kind was asked for.
  bool Lacks(absl::string_view plural, absl::string_view property,
             const absl::Status& status);
  // A descriptor's factory said no.
  void NotMade(absl::string_view kind, absl::string_view name,
               const absl::Status& status);
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
  ThreadPool pool_{2};
  Registry found_;
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

bool KindChecks::Lacks(absl::string_view plural, absl::string_view property,
                       const absl::Status& status) {
  if (asked()) {
    Unusable(property, status);
  } else {
    notes_.push_back(
        absl::StrCat(plural, " were not checked: ", status.message()));
  }
  return !asked();
}

void KindChecks::NotMade(absl::string_view kind, absl::string_view name,
                         const absl::Status& status) {
  const std::string subject = absl::StrCat(kind, " '", name, "'");
  if (asked() || absl::IsInternal(status)) {
    report_.Subject(subject);
    report_.Property("is made with the options given",
                     absl::InternalError(status.message()));
  } else {
    notes_.push_back(absl::StrCat(subject,
                                  " was not checked: ", status.message(),
                                  "; give --kind ", kind, " and its options"));
  }
}

bool KindChecks::CheckConstraints() {
  const auto tokenizer = Tokenizer::FromGguf(*file_);
  if (!tokenizer.ok()) {
    return Lacks("constraints", "has a vocabulary", tokenizer.status());
  }
  for (const ConstraintKind* kind : Named(registry_.constraints())) {
    const absl::Status made =
        CheckConstraint(*kind, **tokenizer, request_.options, report_);
    if (!made.ok()) NotMade("constraint", kind->name, made);
  }
  return true;
}

absl::StatusOr<std::unique_ptr<Decoder>> KindChecks::LoadModel() {
  FUCINA_ASSIGN_OR_RETURN(const auto architecture,
                          file_->GetString("general.architecture"));
  const std::string name(architecture.value_or(""));
  auto family = registry_.FindFamily(name);
  if (!family.ok()) {
    FUCINA_ASSIGN_OR_RETURN(const auto directories, DefaultPluginDirectories());
    FUCINA_RETURN_IF_ERROR(found_.LoadFound(directories));
    family = found_.FindFamily(name);
  }
  FUCINA_RETURN_IF_ERROR(family.status());
  const Family& descriptor = (*family)->descriptor;
  FUCINA_ASSIGN_OR_RETURN(const Options options,
                          Options::Make(descriptor.options, {}));
  return descriptor.load(*file_, pool_, options);
}

bool KindChecks::CheckDrafters() {
  const auto decoder = LoadModel();
  if (!decoder.ok() || *decoder == nullptr) {
    return Lacks("drafters", "can be loaded",
                 decoder.ok() ? absl::InternalError("OK, and no decoder")
                              : decoder.status());
  }
  for (const DrafterKind* kind : Named(registry_.drafters())) {
    const absl::Status made =
        CheckDrafter(*kind, **decoder, request_.options, report_);
    if (!made.ok()) NotMade("drafter", kind->name, made);
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
  if (Wanted("drafter", "drafters", registry_.drafters()) && !CheckDrafters()) {
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
