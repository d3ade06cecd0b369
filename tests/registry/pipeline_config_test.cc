#include "registry/pipeline_config.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fucina/decode/sampler.h"
#include "fucina/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "registry/config_keys.h"
#include "tests/registry/scratch_dir.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Status Parse(absl::string_view text, PipelineConfig& config) {
  return ParsePipeline(text, "p.yaml", "/base", config);
}

// What a file is refused with.
std::string Refusal(absl::string_view text) {
  PipelineConfig config;
  const absl::Status status = Parse(text, config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_EQ(config, PipelineConfig()) << "changed by a failed read";
  return std::string(status.message());
}

constexpr char kEverything[] = R"(# every key
version: 1
model: models/m.gguf
family: qwen3
options: {block_style: fused, strict: true}
plugins: [qwen3, ./build/libfucina_x.so, /abs/libfucina_y.so]
threads: 3
context: 8192
prefill_chunk: 64
cache_type: f16
kernel_level: avx2
pre_tokenizer: qwen2
log_level: info
sampling:
  temperature: 0.65
  top_k: 20
  top_p: 0.95
  min_p: 0.05
  repeat_penalty: 1.1
  frequency_penalty: -0.5
  presence_penalty: 1.5
  penalty_window: 128
  seed: 18446744073709551615
chat:
  system: |
    You are "terse".
      Indented.
  thinking: false
  max_tokens: 77
  stop: ["\n\n", "END"]
  stop_tokens: [1, 151645]
  template: chatml
  template_arguments: '{"a": [1, 2]}'
adapter:
  kind: shine
  options:
    context: "some text"
drafter:
  kind: cascade
  options: {max_draft: 8, sources: [suffix, recycling]}
constraint: {kind: llguidance, options: {regex: "[0-9]+"}}
)";

TEST(PipelineConfig, ReadsEveryKey) {
  PipelineConfig c;
  ASSERT_TRUE(Parse(kEverything, c).ok()) << Parse(kEverything, c);
  EXPECT_EQ(c.model, "/base/models/m.gguf");
  EXPECT_EQ(c.family, "qwen3");
  EXPECT_EQ(c.options.at("block_style").text, "fused");
  EXPECT_EQ(c.options.at("strict").text, "true");
  ASSERT_TRUE(c.plugins.has_value());
  ASSERT_EQ(c.plugins->size(), 3U);
  EXPECT_EQ((*c.plugins)[0].entry, "qwen3");
  EXPECT_EQ((*c.plugins)[0].origin, "p.yaml:6: plugins: ");
  EXPECT_EQ((*c.plugins)[1].entry, "/base/build/libfucina_x.so");
  EXPECT_EQ((*c.plugins)[2].entry, "/abs/libfucina_y.so");
  EXPECT_EQ(c.threads, 3);
  EXPECT_EQ(c.context, 8192);
  EXPECT_EQ(c.prefill_chunk, 64);
  EXPECT_EQ(c.cache_type, "f16");
  EXPECT_EQ(c.kernel_level, "avx2");
  EXPECT_EQ(c.pre_tokenizer, "qwen2");
  EXPECT_EQ(c.log_level, "info");
  EXPECT_EQ(c.sampling.temperature, 0.65);
  EXPECT_EQ(c.sampling.top_k, 20);
  EXPECT_EQ(c.sampling.top_p, 0.95);
  EXPECT_EQ(c.sampling.min_p, 0.05);
  EXPECT_EQ(c.sampling.repeat_penalty, 1.1);
  EXPECT_EQ(c.sampling.frequency_penalty, -0.5);
  EXPECT_EQ(c.sampling.presence_penalty, 1.5);
  EXPECT_EQ(c.sampling.penalty_window, 128);
  EXPECT_EQ(c.sampling.seed, 18446744073709551615ULL);
  EXPECT_EQ(c.chat.system, "You are \"terse\".\n  Indented.\n");
  EXPECT_EQ(c.chat.thinking, false);
  EXPECT_EQ(c.chat.max_tokens, 77);
  EXPECT_THAT(c.chat.stop, ElementsAre("\n\n", "END"));
  EXPECT_THAT(c.chat.stop_tokens, ElementsAre(1, 151645));
  EXPECT_EQ(c.chat.chat_template, "chatml");
  EXPECT_EQ(c.chat.template_arguments, "{\"a\": [1, 2]}");
  EXPECT_EQ(c.adapter.kind, "shine");
  EXPECT_EQ(c.adapter.options.at("context").text, "some text");
  EXPECT_EQ(c.drafter.options.at("sources").text, "suffix,recycling");
  EXPECT_EQ(c.constraint.kind, "llguidance");
  EXPECT_EQ(c.Blame("sampling.top_k"), "p.yaml:16: sampling.top_k: ");
  EXPECT_EQ(c.Blame("drafter.kind"), "p.yaml:39: drafter.kind: ");
}

TEST(PipelineConfig, WindowsLineEndsAndAByteOrderMarkChangeNothing) {
  PipelineConfig plain;
  PipelineConfig windows;
  ASSERT_TRUE(Parse(kEverything, plain).ok());
  std::string text = "\xef\xbb\xbf";
  for (const char c : std::string(kEverything)) {
    if (c == '\n') text += '\r';
    text += c;
  }
  ASSERT_TRUE(Parse(text, windows).ok()) << Parse(text, windows);
  EXPECT_EQ(plain, windows);
  EXPECT_EQ(plain.Blame("drafter.kind"), windows.Blame("drafter.kind"));
}

TEST(PipelineConfig, AnEndMarkIsFine) {
  PipelineConfig c;
  EXPECT_TRUE(Parse("---\nversion: 1\nthreads: 2\n...\n", c).ok());
  EXPECT_EQ(c.threads, 2);
  EXPECT_TRUE(
      Parse("version: 1\nchat:\n  system: |\n    no final newline", c).ok());
  EXPECT_EQ(c.chat.system, "no final newline\n");
}

TEST(PipelineConfig, DumpReadsBackToTheSame) {
  PipelineConfig c;
  ASSERT_TRUE(Parse(kEverything, c).ok());
  PipelineConfig back;
  const std::string dump = DumpPipeline(c);
  ASSERT_TRUE(ParsePipeline(dump, "dump", "/elsewhere", back).ok())
      << ParsePipeline(dump, "dump", "/elsewhere", back) << "\n"
      << dump;
  EXPECT_EQ(back, c) << dump;
  EXPECT_EQ(DumpPipeline(back), dump);
}

TEST(PipelineConfig, TheDumpOfTheDefaultsReadsBack) {
  const PipelineConfig c;
  PipelineConfig back;
  const std::string dump = DumpPipeline(c);
  ASSERT_TRUE(Parse(dump, back).ok()) << Parse(dump, back) << "\n" << dump;
  EXPECT_EQ(back, c) << dump;
  EXPECT_THAT(dump, HasSubstr("  # temperature: the family's\n"));
}

// Any texts and numbers, not only tame ones.
TEST(PipelineConfig, RandomDumpsReadBack) {
  std::mt19937_64 random(7);
  const std::string alphabet = "a\"\\'#:\n\t{}[],&*!|> -%@`\x01\x7f\xc3\xa9";
  for (int round = 0; round < 200; ++round) {
    const auto text = [&] {
      std::string out = "x";
      for (int i = static_cast<int>(random() % 12); i > 0; --i) {
        const std::size_t at = random() % (alphabet.size() - 1);
        out += alphabet[at] == '\xc3'   ? "\xc3\xa9"
               : alphabet[at] == '\xa9' ? std::string("z")
                                        : std::string(1, alphabet[at]);
      }
      return out;
    };
    PipelineConfig c;
    c.model = "/" + text();
    c.chat.system = text();
    c.chat.stop = {text(), text()};
    c.options[text()] = {text(), {}};
    c.drafter.kind = text();
    c.drafter.options[text()] = {text(), {}};
    c.sampling.seed = random();
    c.sampling.temperature = std::ldexp(static_cast<double>(random()), -70);
    c.sampling.top_p = static_cast<double>(random() >> 11) * 0x1p-53;
    if (random() % 2 == 0) c.plugins.emplace();
    PipelineConfig back;
    const std::string dump = DumpPipeline(c);
    ASSERT_TRUE(Parse(dump, back).ok()) << Parse(dump, back) << "\n" << dump;
    ASSERT_EQ(back, c) << dump;
  }
}

TEST(PipelineConfig, FlagsWinAndReplaceLists) {
  PipelineConfig c;
  ASSERT_TRUE(Parse(kEverything, c).ok());
  const Origin flag{Origin::Kind::kFlag, "--stop-string", "", ""};
  ASSERT_TRUE(Set(c, "chat.stop", "a", flag).ok());
  ASSERT_TRUE(Set(c, "chat.stop", "b", flag).ok());
  EXPECT_THAT(c.chat.stop, ElementsAre("a", "b"));
  ASSERT_TRUE(
      Set(c, "sampling.top_k", "5", {Origin::Kind::kFlag, "--top-k", "", ""})
          .ok());
  EXPECT_EQ(c.sampling.top_k, 5);
  EXPECT_EQ(c.Blame("sampling.top_k"), "--top-k: ");
}

TEST(PipelineConfig, AnEmptyPluginListIsAClosedWorld) {
  PipelineConfig c;
  ASSERT_TRUE(Parse("version: 1\nplugins: []\n", c).ok());
  ASSERT_TRUE(c.plugins.has_value());
  EXPECT_TRUE(c.plugins->empty());
}

// --- refusals ----------------------------------------------------------------

TEST(PipelineConfig, UnknownKeysAreRefusedWithLineAndNearest) {
  EXPECT_EQ(Refusal("version: 1\nthreds: 3\n"),
            "p.yaml:2: unknown key 'threds'; did you mean 'threads'");
  EXPECT_EQ(Refusal("version: 1\nsampling:\n  top_k: 1\n  temprature: 1\n"),
            "p.yaml:4: unknown key 'temprature' in 'sampling'; did you mean "
            "'temperature'");
  EXPECT_EQ(Refusal("version: 1\ndrafter: {what_is_this: 1}\n"),
            "p.yaml:2: unknown key 'what_is_this' in 'drafter'; known: kind, "
            "references, max_draft, costs, gate, options");
  // Each known key once.
  EXPECT_EQ(Refusal("version: 1\n<<: {threads: 3}\n"),
            "p.yaml:2: unknown key '<<'; known: version, model, family, "
            "plugins, threads, context, prefill_chunk, cache_type, "
            "kernel_level, pre_tokenizer, log_level, memory_check, sampling, "
            "chat, adapter, drafter, constraint, options");
}

TEST(PipelineConfig, KeysGivenTwiceAreRefused) {
  EXPECT_EQ(Refusal("version: 1\nthreads: 3\nthreads: 4\n"),
            "p.yaml:3: key 'threads' is given twice");
  EXPECT_EQ(Refusal("version: 1\nchat: {max_tokens: 3, max_tokens: 4}\n"),
            "p.yaml:2: key 'chat.max_tokens' is given twice");
}

TEST(PipelineConfig, TheVersionMustBeOne) {
  EXPECT_EQ(Refusal("threads: 3\n"),
            "p.yaml:1: no 'version'; begin the file with 'version: 1'");
  EXPECT_EQ(Refusal("version: 2\nnew_key: 3\n"),
            "p.yaml:1: version: expected 1, found '2'; this file was written "
            "for another fucina");
  for (const char* text : {"", "# only a comment\n", "- 1\n", "text\n"}) {
    EXPECT_EQ(Refusal(text),
              "p.yaml:1: expected 'version: 1' and further keys, found no "
              "mapping");
  }
}

TEST(PipelineConfig, WrongTypesAreRefused) {
  EXPECT_EQ(Refusal("version: 1\nthreads: many\n"),
            "p.yaml:2: threads: expected an integer from 0 to 1024, found "
            "'many'");
  EXPECT_EQ(Refusal("version: 1\nthreads: [1]\n"),
            "p.yaml:2: threads: expected an integer from 0 to 1024, found a "
            "list");
  EXPECT_EQ(Refusal("version: 1\nthreads:\n"),
            "p.yaml:2: threads: expected an integer from 0 to 1024, found "
            "nothing");
  EXPECT_EQ(Refusal("version: 1\nsampling: 3\n"),
            "p.yaml:2: sampling: expected a section with keys, found '3'");
  EXPECT_EQ(Refusal("version: 1\nplugins: qwen3\n"),
            "p.yaml:2: plugins: expected a list, found 'qwen3'");
  EXPECT_EQ(Refusal("version: 1\nplugins: [[a]]\n"),
            "p.yaml:2: plugins: expected a plugin's name or file, found a "
            "list");
  EXPECT_EQ(Refusal("version: 1\nchat:\n  thinking: yes\n"),
            "p.yaml:3: chat.thinking: expected true or false, found 'yes'; "
            "write it out");
  EXPECT_EQ(Refusal("version: 1\noptions: {a: [\"x,y\"]}\n"),
            "p.yaml:2: options.a: expected a text without a comma, found "
            "'x,y'");
  EXPECT_EQ(Refusal("version: 1\noptions: {a: {b: 1}}\n"),
            "p.yaml:2: options.a: expected a value, found keys");
  EXPECT_EQ(Refusal("version: 1\n[1, 2]: 3\n"),
            "p.yaml:2: a key must be a plain text");
  EXPECT_EQ(Refusal("version: 1\nmodel: ''\n"),
            "p.yaml:2: model: expected a path, found ''");
}

// The same value by file and by flag: the same words.
TEST(PipelineConfig, OutOfRangeValuesAreRefusedAlikeInFileAndFlag) {
  const struct {
    const char* key;
    const char* bad;
  } cases[] = {
      {"sampling.temperature", "-1"},
      {"sampling.temperature", "999999"},
      {"sampling.temperature", "nan"},
      {"sampling.temperature", "1e309"},
      {"sampling.temperature", "inf"},
      {"sampling.temperature", "hot"},
      {"sampling.top_p", "-1"},
      {"sampling.top_p", "2"},
      {"sampling.top_p", "1.0000001"},
      {"sampling.top_k", "-5"},
      {"sampling.top_k", "1.5"},
      {"sampling.top_k", "2147483648"},
      {"sampling.min_p", "2"},
      {"sampling.repeat_penalty", "0"},
      {"sampling.repeat_penalty", "-0.0"},
      {"sampling.penalty_window", "-1"},
      {"sampling.presence_penalty", "2.1"},
      {"sampling.frequency_penalty", "-3"},
      {"sampling.seed", "-1"},
      {"sampling.seed", "18446744073709551616"},
      {"threads", "1025"},
      {"threads", "-1"},
      {"context", "-1"},
      {"context", "99999999999"},
      {"prefill_chunk", "0"},
      {"chat.max_tokens", "0"},
      {"chat.stop_tokens", "-1"},
      {"chat.thinking", "maybe"},
      {"chat.template_arguments", "[1]"},
      {"cache_type", "f64"},
      {"kernel_level", "sse"},
      {"log_level", "debug"},
      {"family", ""},
      {"chat.stop", ""},
      {"chat.template", ""},
  };
  for (const auto& c : cases) {
    const ConfigKey* key = FindConfigKey(c.key);
    ASSERT_NE(key, nullptr) << c.key;
    PipelineConfig config;
    const absl::Status by_flag =
        Set(config, c.key, c.bad, {Origin::Kind::kFlag, "--flag", "", ""});
    EXPECT_EQ(by_flag.code(), absl::StatusCode::kInvalidArgument)
        << c.key << " " << c.bad;
    EXPECT_THAT(
        std::string(by_flag.message()),
        StartsWith(std::string("--flag: expected ") +
                   std::string(key->expects) + ", found '" + c.bad + "'"));
    EXPECT_EQ(config, PipelineConfig());

    const std::string name(c.key);
    const std::size_t dot = name.find('.');
    const std::string value = key->is_list ? "['" + std::string(c.bad) + "']"
                                           : "'" + std::string(c.bad) + "'";
    const std::string file = dot == std::string::npos
                                 ? "version: 1\n" + name + ": " + value + "\n"
                                 : "version: 1\n" + name.substr(0, dot) +
                                       ": {" + name.substr(dot + 1) + ": " +
                                       value + "}\n";
    EXPECT_EQ(Refusal(file),
              "p.yaml:2: " + name +
                  std::string(by_flag.message()).substr(strlen("--flag")));
  }
}

TEST(PipelineConfig, ANegativeTemperatureSaysWhatToUse) {
  EXPECT_THAT(Refusal("version: 1\nsampling: {temperature: -1}\n"),
              HasSubstr("use 0 to always take the most likely token"));
}

TEST(PipelineConfig, WhatTheTableAcceptsTheSamplerAccepts) {
  for (const auto& [key, values] :
       std::map<std::string, std::vector<std::string>>{
           {"sampling.temperature", {"0", "0.7", "1000", "1e-9"}},
           {"sampling.top_k", {"0", "1", "2147483647"}},
           {"sampling.top_p", {"0", "1", "0.5"}},
           {"sampling.min_p", {"0", "1"}},
           {"sampling.repeat_penalty", {"1e-9", "1", "4"}},
           {"sampling.frequency_penalty", {"-2", "2"}},
           {"sampling.presence_penalty", {"-2", "2"}},
           {"sampling.penalty_window", {"0", "1000000"}}}) {
    for (const std::string& value : values) {
      PipelineConfig c;
      ASSERT_TRUE(Set(c, key, value, {Origin::Kind::kFlag, "--x", "", ""}).ok())
          << key << value;
      SamplerConfig sampler;
      sampler.temperature = c.sampling.temperature.value_or(0);
      sampler.top_k = c.sampling.top_k.value_or(0);
      sampler.top_p = c.sampling.top_p.value_or(1);
      sampler.min_p = c.sampling.min_p.value_or(0);
      sampler.repeat_penalty = c.sampling.repeat_penalty;
      sampler.frequency_penalty = c.sampling.frequency_penalty;
      sampler.presence_penalty = c.sampling.presence_penalty;
      sampler.penalty_window = c.sampling.penalty_window;
      EXPECT_TRUE(Validate(sampler).ok()) << Validate(sampler);
    }
  }
}

TEST(PipelineConfig, KnowsEveryKernelLevel) {
  for (const KernelLevel level : kAllKernelLevels) {
    PipelineConfig c;
    EXPECT_TRUE(Set(c, "kernel_level", Name(level),
                    {Origin::Kind::kFlag, "--x", "", ""})
                    .ok())
        << Name(level);
  }
}

TEST(PipelineConfig, YamlThatIsNotOursIsRefused) {
  EXPECT_EQ(Refusal("version: 1\nmodel: &m x\nfamily: *m\n"),
            "p.yaml:2: anchors (&name) are not allowed; write the value "
            "again");
  EXPECT_THAT(Refusal("version: 1\nmodel: *m\n"), StartsWith("p.yaml:2: "));
  EXPECT_EQ(Refusal("version: 1\nmodel: !!python/object x\n"),
            "p.yaml:2: tags (!name) are not allowed");
  EXPECT_EQ(Refusal("version: 1\n---\nversion: 1\n"),
            "p.yaml:3: more than one document; a pipeline file holds one");
  EXPECT_EQ(Refusal("version: 1\noptions: {a: [[[[[1]]]]]}\n"),
            "p.yaml:2: nested deeper than any key is");
  EXPECT_THAT(Refusal("version: 1\nmodel: \"unclosed\n"),
              HasSubstr(": not YAML: "));
  EXPECT_THAT(Refusal("version: 1\nmodel: 'unclosed"),
              HasSubstr(": not YAML: "));
  EXPECT_THAT(Refusal("version: 1\nplugins: [a,\n"), HasSubstr(": not YAML: "));
  EXPECT_THAT(Refusal("version: 1\n\tmodel: x\n"), HasSubstr(": not YAML: "));
  EXPECT_EQ(Refusal(std::string("version: 1\nmodel: a\0b\n", 22)),
            "p.yaml: holds a zero byte; not a text file");
}

TEST(PipelineConfig, HostileFilesAreRefusedInTimeAndMemory) {
  std::string laughs = "version: 1\na: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    laughs += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i)
      laughs += "*" + std::string(1, char(c - 1)) + ",";
    laughs += "]\n";
  }
  EXPECT_THAT(Refusal(laughs), HasSubstr("not allowed"));
  for (const std::string open : {"[", "{a: ", "- ", "? "}) {
    std::string deep;
    while (deep.size() < 900000) deep += open;
    Refusal(deep);
  }
  EXPECT_EQ(Refusal(std::string((1U << 20) + 1, ' ')),
            "p.yaml: larger than 1 MiB; not a pipeline file");
}

// --- files
// ---------------------------------------------------------------------

TEST(PipelineConfig, PathsAreRelativeToTheFile) {
  const ScratchDir dir;
  const std::string path = dir.Write("p.yaml",
                                     "version: 1\nmodel: sub/../m.gguf\n"
                                     "chat: {template: t.jinja}\n");
  PipelineConfig c;
  ASSERT_TRUE(LoadPipelineFile(path, c).ok());
  EXPECT_EQ(c.model, dir.File("m.gguf"));
  EXPECT_EQ(c.chat.chat_template, dir.File("t.jinja"));
}

TEST(PipelineConfig, FilesThatCannotBeReadAreNamed) {
  const ScratchDir dir;
  PipelineConfig c;
  const absl::Status absent = LoadPipelineFile(dir.File("none.yaml"), c);
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(absent.message(),
            dir.File("none.yaml") + ": No such file or directory");
  EXPECT_EQ(LoadPipelineFile(dir.path(), c).message(),
            dir.path() + ": not a regular file");
  EXPECT_EQ(LoadPipelineFile("/dev/zero", c).message(),
            "/dev/zero: not a regular file");
}

TEST(PipelineConfig, TheExamplesAreRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::string(FUCINA_SOURCE_DIR) + "/examples/pipelines")) {
    PipelineConfig c;
    const absl::Status status = LoadPipelineFile(entry.path().string(), c);
    EXPECT_TRUE(status.ok()) << status;
    ++count;
  }
  EXPECT_GE(count, 8);
}

// --- options of plugins
// ----------------------------------------------------------

constexpr OptionSpec kSpecs[] = {
    {.name = "max_draft",
     .type = OptionType::kInt,
     .default_value = "8",
     .doc = "longest draft"},
    {.name = "sources",
     .type = OptionType::kStringList,
     .default_value = "suffix",
     .doc = "who drafts"},
};

TEST(PipelineConfig, OptionsAreCheckedAgainstThePluginsSpecs) {
  PipelineConfig c;
  ASSERT_TRUE(Parse("version: 1\ndrafter:\n  kind: cascade\n  options:\n"
                    "    sources: [a, b]\n",
                    c)
                  .ok());
  const auto options =
      ResolveOptions("drafter 'cascade'", kSpecs, c.drafter.options);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->GetInt("max_draft"), 8);
  EXPECT_THAT(options->GetStringList("sources"), ElementsAre("a", "b"));
}

TEST(PipelineConfig, UnknownOptionsNameLineAndNearest) {
  PipelineConfig c;
  ASSERT_TRUE(Parse("version: 1\ndrafter:\n  kind: cascade\n  options:\n"
                    "    max_drafts: 3\n",
                    c)
                  .ok());
  EXPECT_EQ(
      ResolveOptions("drafter 'cascade'", kSpecs, c.drafter.options)
          .status()
          .message(),
      "p.yaml:5: drafter 'cascade' has no option 'max_drafts'; did you mean "
      "'max_draft'");
  EXPECT_EQ(ResolveOptions("drafter 'none'", {}, c.drafter.options)
                .status()
                .message(),
            "p.yaml:5: drafter 'none' has no option 'max_drafts'; it has none");
  PipelineConfig bad;
  ASSERT_TRUE(
      Parse("version: 1\ndrafter: {options: {max_draft: lots}}\n", bad).ok());
  EXPECT_EQ(
      ResolveOptions("drafter 'cascade'", kSpecs, bad.drafter.options)
          .status()
          .message(),
      "p.yaml:2: option 'max_draft' of drafter 'cascade': expected an integer, "
      "found 'lots'");
}

// --- the table
// -------------------------------------------------------------------

TEST(ConfigKeys, NamesAndFlagsAreUniqueAndDocumented) {
  std::set<std::string> names;
  std::set<std::string> flags;
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_TRUE(names.insert(std::string(key.name)).second) << key.name;
    if (!key.flag.empty()) {
      EXPECT_TRUE(flags.insert(std::string(key.flag)).second) << key.flag;
      EXPECT_EQ(FindConfigFlag(key.flag), &key);
    }
    EXPECT_FALSE(key.doc.empty()) << key.name;
    EXPECT_FALSE(key.expects.empty()) << key.name;
    EXPECT_FALSE(key.initial.empty()) << key.name;
    EXPECT_EQ(FindConfigKey(key.name), &key);
  }
  for (const ConfigSwitch& s : ConfigSwitches()) {
    EXPECT_TRUE(flags.insert(std::string(s.flag)).second) << s.flag;
    PipelineConfig c;
    EXPECT_TRUE(
        Set(c, s.key, s.text, {Origin::Kind::kFlag, "--x", "", ""}).ok());
  }
  EXPECT_EQ(FindConfigFlag(""), nullptr);
}

TEST(ConfigKeys, TheInitialValuesAreTheStructs) {
  PipelineConfig c;
  for (const ConfigKey& key : ConfigKeys()) {
    bool is_set = false;
    const auto texts = Get(c, key, is_set);
    if (!is_set) continue;
    EXPECT_EQ(texts, std::vector{std::string(key.initial)});
  }
}

// docs/pipelines.md lists each key with flag, expectation and initial value.
TEST(ConfigKeys, TheManualHasEveryKey) {
  const std::string manual =
      ReadFile(std::string(FUCINA_SOURCE_DIR) + "/docs/pipelines.md");
  for (const ConfigKey& key : ConfigKeys()) {
    const std::string row =
        "| `" + std::string(key.name) + "` | " +
        (key.flag.empty() ? "" : "`" + std::string(key.flag) + "` ") + "| " +
        std::string(key.expects) + " | " + std::string(key.initial) + " | " +
        std::string(key.doc) + " |";
    EXPECT_THAT(manual, HasSubstr(row));
  }
}

}  // namespace
}  // namespace fucina
