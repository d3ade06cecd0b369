#include "registry/registry.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fucina/diag/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/registry/scratch_dir.h"

namespace fucina {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Copies of fixture plugins under names and permissions of the test's choice.
void Install(const ScratchDir& dir, const std::string& fixture) {
  dir.Write("libfucina_" + fixture + ".so", ReadFile(FixturePlugin(fixture)));
}

std::vector<PluginDirectory> In(const ScratchDir& dir) {
  return {{dir.path(), "test"}};
}

absl::Status LoadOne(const std::string& fixture, Registry& registry) {
  const PluginRequest request{FixturePlugin(fixture), ""};
  return registry.LoadNamed({&request, 1}, {});
}

std::string RefusalOf(const std::string& fixture, absl::StatusCode code) {
  Registry registry;
  const absl::Status status = LoadOne(fixture, registry);
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_TRUE(registry.plugins().empty());
  EXPECT_TRUE(registry.families().empty());
  EXPECT_EQ(registry.refused().size(), 1U);
  if (registry.refused().empty()) return "";
  EXPECT_EQ(registry.refused()[0].name, fixture);
  return std::string(registry.refused()[0].reason.message());
}

TEST(Registry, LoadsAPluginWithAllKinds) {
  Registry registry;
  ASSERT_TRUE(LoadOne("sample", registry).ok());
  ASSERT_EQ(registry.plugins().size(), 1U);
  const PluginRecord& plugin = *registry.plugins()[0];
  EXPECT_EQ(plugin.name, "sample");
  EXPECT_EQ(plugin.version, "1.2.0");
  EXPECT_EQ(plugin.license, "Apache-2.0");
  EXPECT_EQ(plugin.built_with, __VERSION__);
  const auto family = registry.FindFamily("sample");
  ASSERT_TRUE(family.ok());
  EXPECT_EQ((*family)->plugin, &plugin);
  EXPECT_EQ((*family)->descriptor.summary, "loads nothing");
  EXPECT_TRUE(registry.FindAdapter("sample").ok());
  EXPECT_TRUE(registry.FindDrafter("sample").ok());
  EXPECT_TRUE(registry.FindConstraint("sample").ok());
}

TEST(Registry, DescriptorsOutliveTheRegistry) {
  Family family;
  {
    Registry registry;
    ASSERT_TRUE(LoadOne("sample", registry).ok());
    family = (*registry.FindFamily("sample"))->descriptor;
  }
  EXPECT_EQ(family.summary, "loads nothing");
  EXPECT_EQ(family.options[0].name, "cache_type");
}

TEST(Registry, APluginRegistersOncePerRegistry) {
  Registry first;
  Registry second;
  EXPECT_TRUE(LoadOne("sample", first).ok());
  EXPECT_TRUE(LoadOne("sample", second).ok());
  EXPECT_TRUE(second.FindFamily("sample").ok());
}

// --- refusals ----------------------------------------------------------------

TEST(Registry, AnotherCoreIsRefusedFieldByField) {
  EXPECT_EQ(RefusalOf("wrong_core", absl::StatusCode::kFailedPrecondition),
            "libfucina_wrong_core.so (wrong_core 1.2.0, built with " __VERSION__
            ") was built for another fucina:"
            "\n    core: plugin 0.99, this fucina " FUCINA_VERSION_MAJOR_MINOR
            "\n    stdlib: plugin libstdc++-debug,cxx11abi1, this fucina "
            "libstdc++,cxx11abi1"
            "\n    rebuild it against this one");
}

TEST(Registry, AnotherLayoutIsRefusedTypeByType) {
  const std::string tensor = std::to_string(sizeof(Tensor));
  const std::string larger = std::to_string(sizeof(Tensor) + 8);
  const std::string aligned = std::to_string(alignof(Buffer));
  const std::string wider = std::to_string(alignof(Buffer) * 2);
  EXPECT_EQ(
      RefusalOf("wrong_layout", absl::StatusCode::kFailedPrecondition),
      "libfucina_wrong_layout.so (wrong_layout 1.2.0, built with " __VERSION__
      ") was built for another fucina:"
      "\n    Tensor: plugin " +
          larger + " bytes, this fucina " + tensor +
          " bytes"
          "\n    Buffer: plugin aligned to " +
          wider + " bytes, this fucina to " + aligned +
          "\n    SiteShape: plugin does not know it, this fucina has it"
          "\n    SiteDimensions: plugin has it, this fucina does not know it"
          "\n    rebuild it against this one");
}

TEST(Registry, AnExceptionWhileRegisteringIsInternal) {
  EXPECT_EQ(RefusalOf("throws", absl::StatusCode::kInternal),
            "libfucina_throws.so threw while registering: out of cheese");
}

TEST(Registry, ASwallowedRefusalStillFailsTheRegistration) {
  EXPECT_EQ(RefusalOf("fails", absl::StatusCode::kInvalidArgument),
            "libfucina_fails.so: registration failed: drafter 'fails': default "
            "of option 'depth': expected an integer, found 'deep'");
}

TEST(Registry, ANameThatDiffersFromTheFileIsRefused) {
  EXPECT_EQ(RefusalOf("misnamed", absl::StatusCode::kInvalidArgument),
            fs::canonical(FixturePlugin("misnamed")).string() +
                ": calls itself 'bar', expected 'misnamed' from its file name");
}

TEST(Registry, ALibraryWithoutManifestIsRefusedUnloaded) {
  EXPECT_THAT(RefusalOf("no_manifest", absl::StatusCode::kInvalidArgument),
              StartsWith(fs::canonical(FixturePlugin("no_manifest")).string() +
                         ": not a fucina plugin"));
}

TEST(Registry, TheLinkersTextIsShown) {
  const std::string message =
      RefusalOf("unlinked", absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(message,
              StartsWith(fs::canonical(FixturePlugin("unlinked")).string() +
                         ": cannot be loaded: "));
  EXPECT_THAT(message, HasSubstr("undefined symbol"));
  EXPECT_THAT(message, HasSubstr("FunctionOfAnotherCore"));
  EXPECT_THAT(message, HasSubstr("; it was probably built for another fucina "
                                 "(this is " FUCINA_VERSION_MAJOR_MINOR ")"));
}

TEST(Registry, WorldWritableFilesAreRefused) {
  const ScratchDir dir;
  Install(dir, "sample");
  chmod(dir.File("libfucina_sample.so").c_str(), 0666);
  Registry registry;
  EXPECT_TRUE(registry.LoadFound(In(dir)).ok());
  ASSERT_EQ(registry.refused().size(), 1U);
  EXPECT_EQ(registry.refused()[0].reason.code(),
            absl::StatusCode::kPermissionDenied);
}

// --- found, named, shadowed, clashing
// ------------------------------------------

TEST(Registry, FoundAndRefusedIsRememberedAndTheOthersWork) {
  const ScratchDir dir;
  Install(dir, "sample");
  Install(dir, "wrong_core");
  dir.Write("libfucina_empty.so", "");
  dir.Write("libfucina_text.so", "not a library");
  dir.Write("libunrelated.so", "not ours");
  Registry registry;
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(registry.LoadFound(In(dir)).ok());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(registry.FindFamily("sample").ok());
  std::vector<std::string> refused;
  for (const RefusedPlugin& plugin : registry.refused()) {
    refused.push_back(plugin.name);
    EXPECT_THAT(log, HasSubstr(std::string(plugin.reason.message())));
  }
  EXPECT_THAT(refused, ElementsAre("empty", "text", "wrong_core"));
}

TEST(Registry, TwoClaimsOnOneNameAreAnErrorThatNamesBothFiles) {
  const ScratchDir dir;
  Install(dir, "sample");
  Install(dir, "clash");
  Registry registry;
  const absl::Status status = registry.LoadFound(In(dir));
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("family 'sample' is claimed by both "
                         "libfucina_clash.so and libfucina_sample.so"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("list the plugins you want under 'plugins:' in the "
                        "pipeline file"));
  // The first one stays whole, nothing of the second is kept.
  EXPECT_TRUE(registry.FindFamily("other").ok());
  EXPECT_FALSE(registry.FindDrafter("sample").ok());
  EXPECT_EQ(registry.plugins().size(), 1U);
}

TEST(Registry, NamingThePluginsResolvesAClash) {
  const ScratchDir dir;
  Install(dir, "sample");
  Install(dir, "clash");
  Registry registry;
  const PluginRequest request{"sample", "pipeline.yaml:3: "};
  EXPECT_TRUE(registry.LoadNamed({&request, 1}, In(dir)).ok());
  EXPECT_TRUE(registry.FindDrafter("sample").ok());
  EXPECT_FALSE(registry.FindFamily("other").ok());
}

TEST(Registry, AnEarlierDirectoryShadowsALaterOne) {
  const ScratchDir first;
  const ScratchDir second;
  Install(first, "sample");
  Install(second, "sample");
  Registry registry;
  SetLogLevel(LogLevel::kInfo);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(
      registry.LoadFound({{first.path(), "test"}, {second.path(), "test"}})
          .ok());
  const std::string log = ::testing::internal::GetCapturedStderr();
  SetLogLevel(LogLevel::kWarning);
  ASSERT_EQ(registry.plugins().size(), 1U);
  EXPECT_EQ(registry.plugins()[0]->path, first.File("libfucina_sample.so"));
  EXPECT_THAT(log, HasSubstr("plugin " + first.File("libfucina_sample.so") +
                             " shadows " + second.File("libfucina_sample.so")));
}

TEST(Registry, TheSameFileByTwoNamesIsLoadedOnce) {
  const ScratchDir dir;
  Install(dir, "sample");
  fs::create_symlink("libfucina_sample.so", dir.File("libfucina_again.so"));
  Registry registry;
  EXPECT_TRUE(registry.LoadFound(In(dir)).ok());
  EXPECT_EQ(registry.plugins().size(), 1U);
  EXPECT_TRUE(registry.refused().empty());
}

TEST(Registry, ANamedPluginThatIsNowhereListsTheDirectories) {
  const ScratchDir first;
  const ScratchDir second;
  Registry registry;
  const PluginRequest request{"acme", "pipeline.yaml:3: "};
  const absl::Status status = registry.LoadNamed(
      {&request, 1}, {{first.path(), "test"}, {second.path(), "test"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "pipeline.yaml:3: plugin 'acme': no libfucina_acme.so in " +
                first.path() + ", " + second.path());
}

TEST(Registry, ANamedPluginThatIsRefusedIsAnError) {
  const ScratchDir dir;
  Install(dir, "wrong_core");
  Registry registry;
  const PluginRequest request{"wrong_core", "--plugin: "};
  const absl::Status status = registry.LoadNamed({&request, 1}, In(dir));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("--plugin: plugin 'wrong_core': "
                         "libfucina_wrong_core.so (wrong_core 1.2.0"));
}

// --- lookups
// -------------------------------------------------------------------

TEST(Registry, AnUnknownNameListsTheKnownOnesAndWhereWeLooked) {
  const ScratchDir dir;
  Install(dir, "sample");
  Registry registry;
  ASSERT_TRUE(registry.LoadFound(In(dir)).ok());
  const auto family = registry.FindFamily("qwen4");
  EXPECT_EQ(family.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(family.status().message(),
            "no family 'qwen4'; known: sample\n    plugins are looked for in " +
                dir.path());
  EXPECT_THAT(std::string(Registry().FindDrafter("x\n").status().message()),
              StartsWith("no drafter 'x\\n'; known: none"));
}

TEST(Registry, AnUnknownNameShowsTheRefusalOfItsLikelyHome) {
  const ScratchDir dir;
  Install(dir, "wrong_core");
  Registry registry;
  ASSERT_TRUE(registry.LoadFound(In(dir)).ok());
  for (const std::string name : {"wrong_core", "wrong_coremoe", "wrong"}) {
    EXPECT_THAT(std::string(registry.FindFamily(name).status().message()),
                HasSubstr("refused: libfucina_wrong_core.so (wrong_core"));
  }
}

// --- builtin manifests
// -----------------------------------------------------------

absl::StatusOr<std::unique_ptr<Decoder>> LoadNothing(const GgufFile&,
                                                     ThreadPool&,
                                                     const Options&) {
  return absl::UnimplementedError("nothing");
}

absl::Status RegisterBuiltin(Registrar& registrar) {
  return registrar.Add(
      Family{.name = "inside", .summary = "linked in", .load = &LoadNothing});
}

TEST(Registry, TakesABuiltinManifest) {
  const PluginManifest manifest =
      FUCINA_PLUGIN_MANIFEST(inside, "1.0.0", "Apache-2.0", &RegisterBuiltin);
  Registry registry;
  ASSERT_TRUE(registry.AddBuiltin(manifest).ok());
  const auto family = registry.FindFamily("inside");
  ASSERT_TRUE(family.ok());
  EXPECT_EQ((*family)->plugin->file, "inside (builtin)");
  // Twice is a clash like any other.
  EXPECT_EQ(registry.AddBuiltin(manifest).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST(Registry, ABuiltinManifestIsCheckedLikeAFile) {
  PluginManifest manifest =
      FUCINA_PLUGIN_MANIFEST(inside, "1.0.0", "Apache-2.0", &RegisterBuiltin);
  manifest.manifest_size += 8;
  Registry registry;
  const absl::Status status = registry.AddBuiltin(manifest);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  // Past the frozen prefix nothing is read: no version is shown.
  EXPECT_THAT(std::string(status.message()),
              StartsWith("inside (builtin) (inside) was built for another "
                         "fucina:\n    manifest: plugin "));
}

absl::Status RegisterBadly(Registrar& registrar) {
  static constexpr OptionSpec kTwice[] = {{.name = "a"}, {.name = "a"}};
  static constexpr OptionSpec kBadName[] = {{.name = "A-b"}};
  const Family good{.name = "good", .summary = "", .load = &LoadNothing};
  Family bad = good;
  bad.name = "Qwen3";
  EXPECT_EQ(registrar.Add(bad).message(),
            "family name 'Qwen3' is not of the form [a-z0-9][a-z0-9_.-]*");
  bad = good;
  bad.load = nullptr;
  EXPECT_EQ(registrar.Add(bad).message(), "family 'good' has no factory");
  bad = good;
  bad.options = kTwice;
  EXPECT_EQ(registrar.Add(bad).message(),
            "family 'good': option 'a' is declared twice");
  bad.options = kBadName;
  EXPECT_EQ(registrar.Add(bad).message(),
            "family 'good': option name 'A-b' is not of the form "
            "[a-z][a-z0-9_]*");
  EXPECT_TRUE(registrar.Add(good).ok());
  const absl::Status twice = registrar.Add(good);
  EXPECT_EQ(twice.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(twice.message(), "family 'good' is added twice");
  return absl::OkStatus();
}

TEST(Registry, RefusesBadDescriptors) {
  Registry registry;
  EXPECT_EQ(
      registry
          .AddBuiltin(FUCINA_PLUGIN_MANIFEST(bad, "1", "MIT", &RegisterBadly))
          .message(),
      "bad (builtin): registration failed: family name 'Qwen3' is not of "
      "the form [a-z0-9][a-z0-9_.-]*");
  EXPECT_TRUE(registry.families().empty());
}

}  // namespace
}  // namespace fucina
