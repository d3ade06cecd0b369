#include "tests/conformance/family_suite.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fucina/diag/status_macros.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"
#include "fucina/parallel/thread_pool.h"
#include "tests/conformance/recording_tap.h"

namespace fucina::conformance {
namespace {

constexpr int kNumTokens = 12;

using Row = std::vector<float>;  // [vocab_size]

std::int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

// The model's bytes with its architecture replaced (when not empty) and one
// tensor left out (when not empty).
absl::StatusOr<std::string> Variant(const GgufFile& file,
                                    absl::string_view architecture,
                                    absl::string_view without) {
  GgufWriter writer;
  for (absl::string_view key : file.keys()) {
    if (key == "general.architecture" && !architecture.empty()) {
      writer.AddString(key, architecture);
    } else {
      writer.AddValue(key, *file.Find(key));
    }
  }
  for (const GgufTensorInfo& tensor : file.tensors()) {
    if (tensor.name == without) continue;
    writer.AddTensor(tensor.name, tensor.dtype,
                     {tensor.ne, static_cast<std::size_t>(tensor.rank)},
                     {tensor.data, tensor.size_bytes});
  }
  return writer.Serialize();
}

class Suite {
 public:
  Suite(const Family& family, const GgufFile& file, const Options& options,
        ThreadPool& pool, const Decoder& decoder)
      : family_(family),
        file_(file),
        options_(options),
        pool_(pool),
        decoder_(decoder),
        vocab_size_(decoder.info().vocab_size) {
    std::mt19937 random(1);
    for (int i = 0; i < kNumTokens; ++i) {
      tokens_.push_back(static_cast<TokenId>(random() % vocab_size_));
    }
  }

  absl::Status InfoIsSound() const;
  absl::Status RefusesAnotherArchitecture() const;
  absl::Status NamesMissingTensors() const;
  absl::Status NonsenseLeaksNothing() const;
  absl::Status ManyEqualOneByOne() const;
  absl::Status BatchEqualsAlone() const;
  absl::Status ThreadsDoNotMatter() const;
  absl::Status TruncateForgets() const;
  absl::Status StatesAreIndependent() const;
  absl::Status TwoThreadsWork() const;
  absl::Status CapacityIsKept() const;
  absl::Status BadRequestsChangeNothing() const;
  absl::Status RowsAreWhatWasAsked() const;
  absl::Status ZeroAdapterIsNone() const;
  absl::Status TapSeesEveryLayer() const;
  absl::Status TapSeesOnlyWhatItWants() const;
  absl::Status DecodingDoesNotAllocate() const;

 private:
  absl::StatusOr<std::unique_ptr<DecodeState>> NewState(
      int capacity = kNumTokens + 4) const {
    FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<DecodeState> state,
                            decoder_.NewState(capacity));
    if (state == nullptr || state->length() != 0 ||
        state->capacity() < capacity) {
      return Broken("a new state is not empty or too small");
    }
    return state;
  }

  // Logits of one step over `tokens`, as asked.
  absl::StatusOr<std::vector<Row>> Forward(
      const Decoder& decoder, DecodeState& state,
      std::span<const TokenId> tokens, LogitRows rows = LogitRows::kAll,
      const AdapterSet* adapter = nullptr) const {
    SequenceStep step{
        .tokens = tokens, .state = &state, .rows = rows, .adapter = adapter};
    FUCINA_RETURN_IF_ERROR(decoder.Forward({&step, 1}));
    return RowsOf(step);
  }

  // All logits of five tokens that `tap` watches.
  absl::StatusOr<std::vector<Row>> Tapped(LayerTap& tap) const;

  absl::StatusOr<std::vector<Row>> RowsOf(const SequenceStep& step) const {
    const std::int64_t expected =
        step.rows == LogitRows::kNone ? 0
        : step.rows == LogitRows::kLast
            ? 1
            : static_cast<std::int64_t>(step.tokens.size());
    std::vector<Row> rows;
    if (expected == 0) return rows;
    if (step.logits.rank() != 2 || step.logits.dim(0) != expected ||
        step.logits.dim(1) != vocab_size_ ||
        step.logits.dtype() != DType::kF32) {
      return Broken(absl::StrCat("expected logits f32 [", expected, ", ",
                                 vocab_size_, "], found ",
                                 step.logits.DebugString()));
    }
    for (std::int64_t i = 0; i < expected; ++i) {
      const float* row = step.logits.row_f32(i);
      rows.emplace_back(row, row + vocab_size_);
    }
    return rows;
  }

  // The rows of tokens_ one at a time on a fresh state: what all else is held
  // against.
  absl::StatusOr<std::vector<Row>> Reference() const {
    FUCINA_ASSIGN_OR_RETURN(const auto state, NewState());
    std::vector<Row> rows;
    for (const TokenId& token : tokens_) {
      FUCINA_ASSIGN_OR_RETURN(std::vector<Row> row,
                              Forward(decoder_, *state, {&token, 1}));
      rows.push_back(std::move(row[0]));
    }
    return rows;
  }

  absl::Status Equal(std::span<const Row> found,
                     std::span<const Row> expected) const {
    if (found.size() != expected.size()) return Broken("rows are missing");
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (int j = 0; j < vocab_size_; ++j) {
        if (std::memcmp(&found[i][j], &expected[i][j], sizeof(float)) != 0) {
          return Broken(absl::StrCat("row ", i, ", logit ", j, ": expected ",
                                     expected[i][j], ", found ", found[i][j]));
        }
      }
    }
    return absl::OkStatus();
  }

  std::span<const TokenId> Tokens(int begin, int count) const {
    return std::span<const TokenId>(tokens_).subspan(begin, count);
  }

  const Family& family_;
  const GgufFile& file_;
  const Options& options_;
  ThreadPool& pool_;
  const Decoder& decoder_;
  const int vocab_size_;
  std::vector<TokenId> tokens_;
};

absl::Status Suite::InfoIsSound() const {
  const DecoderInfo& info = decoder_.info();
  if (info.architecture != family_.name) {
    return Broken(absl::StrCat("expected architecture '", family_.name,
                               "', found '", info.architecture, "'"));
  }
  if (info.num_layers < 1 || info.hidden_size < 1 || info.vocab_size < 1 ||
      info.context_length < 1 || info.weight_bytes < 1 ||
      info.state_bytes_per_token < 0) {
    return Broken("a dimension or a size is not positive");
  }
  if (info.context_length < kNumTokens + 4) {
    return Broken(absl::StrCat("the test model must hold ", kNumTokens + 4,
                               " tokens of context"));
  }
  return absl::OkStatus();
}

absl::Status Suite::RefusesAnotherArchitecture() const {
  FUCINA_ASSIGN_OR_RETURN(const std::string bytes,
                          Variant(file_, "no_such_architecture", ""));
  FUCINA_ASSIGN_OR_RETURN(
      const auto file,
      GgufFile::Parse("variant", std::as_bytes(std::span(bytes))));
  const auto decoder = family_.load(*file, pool_, options_);
  if (decoder.ok()) return Broken("it was loaded");
  if (!absl::IsInvalidArgument(decoder.status())) {
    return Broken(absl::StrCat("expected InvalidArgument, found ",
                               decoder.status().ToString()));
  }
  return absl::OkStatus();
}

absl::Status Suite::NamesMissingTensors() const {
  int refused = 0;
  for (const GgufTensorInfo& tensor : file_.tensors()) {
    FUCINA_ASSIGN_OR_RETURN(const std::string bytes,
                            Variant(file_, "", tensor.name));
    FUCINA_ASSIGN_OR_RETURN(
        const auto file,
        GgufFile::Parse("variant", std::as_bytes(std::span(bytes))));
    const auto decoder = family_.load(*file, pool_, options_);
    if (decoder.ok()) continue;  // optional: a tied output, for example
    ++refused;
    if (!absl::StrContains(decoder.status().message(), tensor.name)) {
      return Broken(absl::StrCat("without '", tensor.name, "' the message is: ",
                                 decoder.status().message()));
    }
  }
  if (refused == 0) return Broken("it loads without any one of them");
  return absl::OkStatus();
}

absl::Status Suite::NonsenseLeaksNothing() const {
  FUCINA_ASSIGN_OR_RETURN(const std::string bytes, [&] {
    GgufWriter writer;
    writer.AddString("general.architecture", family_.name);
    return writer.Serialize();
  }());
  FUCINA_ASSIGN_OR_RETURN(
      const auto file,
      GgufFile::Parse("nonsense", std::as_bytes(std::span(bytes))));
  std::int64_t before = 0;
  for (int i = 0; i < 60; ++i) {
    if (i == 10) before = HeapBytes();
    if (family_.load(*file, pool_, options_).ok()) {
      return Broken("a file without anything in it was loaded");
    }
  }
  const std::int64_t grown = HeapBytes() - before;
  // Less than a byte per load: nothing is kept.
  return grown < 50 ? absl::OkStatus()
                    : Broken(absl::StrCat(grown, " bytes after 50 loads"));
}

absl::Status Suite::ManyEqualOneByOne() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  for (const int chunk : {2, 3, 5, kNumTokens}) {
    FUCINA_ASSIGN_OR_RETURN(const auto state, NewState());
    std::vector<Row> found;
    for (int at = 0; at < kNumTokens; at += chunk) {
      FUCINA_ASSIGN_OR_RETURN(
          std::vector<Row> rows,
          Forward(decoder_, *state,
                  Tokens(at, std::min(chunk, kNumTokens - at))));
      for (Row& row : rows) found.push_back(std::move(row));
    }
    if (state->length() != kNumTokens) return Broken("the length is wrong");
    if (absl::Status equal = Equal(found, expected); !equal.ok()) {
      return Broken(absl::StrCat(chunk, " tokens at once: ", equal.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status Suite::BatchEqualsAlone() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  // Three sequences of different lengths, cut from the same tokens.
  const int lengths[] = {kNumTokens, 1, 5};
  std::vector<std::unique_ptr<DecodeState>> states;
  std::vector<SequenceStep> batch;
  for (const int length : lengths) {
    FUCINA_ASSIGN_OR_RETURN(auto state, NewState());
    states.push_back(std::move(state));
    batch.push_back({.tokens = Tokens(0, length),
                     .state = states.back().get(),
                     .rows = LogitRows::kAll});
  }
  FUCINA_RETURN_IF_ERROR(decoder_.Forward(batch));
  for (const SequenceStep& step : batch) {
    FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> rows, RowsOf(step));
    FUCINA_RETURN_IF_ERROR(
        Equal(rows, std::span(expected).first(step.tokens.size())));
  }
  return absl::OkStatus();
}

absl::Status Suite::ThreadsDoNotMatter() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    FUCINA_ASSIGN_OR_RETURN(const auto decoder,
                            family_.load(file_, pool, options_));
    FUCINA_ASSIGN_OR_RETURN(const auto state, decoder->NewState(kNumTokens));
    FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> found,
                            Forward(*decoder, *state, tokens_));
    FUCINA_RETURN_IF_ERROR(Equal(found, expected));
  }
  return absl::OkStatus();
}

absl::Status Suite::TruncateForgets() const {
  if (!decoder_.info().can_truncate) {
    return absl::UnimplementedError("its states cannot take back tokens");
  }
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  for (const int keep : {0, 1, 7, kNumTokens}) {
    FUCINA_ASSIGN_OR_RETURN(const auto state, NewState());
    FUCINA_RETURN_IF_ERROR(
        Forward(decoder_, *state, Tokens(0, keep > 0 ? keep : 1)).status());
    if (keep == 0) FUCINA_RETURN_IF_ERROR(state->Truncate(0));
    // Other tokens, then back.
    const std::vector<TokenId> garbage(3, tokens_[0]);
    FUCINA_RETURN_IF_ERROR(Forward(decoder_, *state, garbage).status());
    FUCINA_RETURN_IF_ERROR(state->Truncate(keep));
    if (state->length() != keep) return Broken("the length is wrong");
    FUCINA_RETURN_IF_ERROR(state->Truncate(keep + 5));  // a no-op
    if (state->length() != keep) return Broken("truncating forward grew it");
    if (keep == kNumTokens) continue;
    FUCINA_ASSIGN_OR_RETURN(
        const std::vector<Row> found,
        Forward(decoder_, *state, Tokens(keep, kNumTokens - keep)));
    FUCINA_RETURN_IF_ERROR(Equal(found, std::span(expected).subspan(keep)));
  }
  FUCINA_ASSIGN_OR_RETURN(const auto state, NewState());
  if (!absl::IsInvalidArgument(state->Truncate(-1))) {
    return Broken("a negative length is not refused");
  }
  return absl::OkStatus();
}

absl::Status Suite::StatesAreIndependent() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  FUCINA_ASSIGN_OR_RETURN(const auto first, NewState());
  FUCINA_ASSIGN_OR_RETURN(const auto second, NewState());
  std::vector<Row> found;
  for (int i = 0; i < kNumTokens; ++i) {
    FUCINA_ASSIGN_OR_RETURN(std::vector<Row> row,
                            Forward(decoder_, *first, Tokens(i, 1)));
    found.push_back(std::move(row[0]));
    // The other one sees the tokens backwards.
    FUCINA_RETURN_IF_ERROR(
        Forward(decoder_, *second, Tokens(kNumTokens - 1 - i, 1)).status());
  }
  return Equal(found, expected);
}

absl::Status Suite::TwoThreadsWork() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  absl::StatusOr<std::vector<Row>> other =
      absl::InternalError("the thread did not run");
  std::thread thread([&] { other = Reference(); });
  const absl::StatusOr<std::vector<Row>> mine = Reference();
  thread.join();
  FUCINA_RETURN_IF_ERROR(mine.status());
  FUCINA_RETURN_IF_ERROR(other.status());
  FUCINA_RETURN_IF_ERROR(Equal(*mine, expected));
  return Equal(*other, expected);
}

absl::Status Suite::CapacityIsKept() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  FUCINA_ASSIGN_OR_RETURN(const auto state, decoder_.NewState(4));
  if (state->capacity() != 4)
    return Broken("the capacity is not what was asked");
  FUCINA_RETURN_IF_ERROR(Forward(decoder_, *state, Tokens(0, 3)).status());
  const absl::Status full = Forward(decoder_, *state, Tokens(3, 2)).status();
  if (full.code() != absl::StatusCode::kOutOfRange) {
    return Broken(absl::StrCat("expected OutOfRange, found ", full.ToString()));
  }
  if (state->length() != 3) return Broken("the length changed");
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> found,
                          Forward(decoder_, *state, Tokens(3, 1)));
  FUCINA_RETURN_IF_ERROR(Equal(found, std::span(expected).subspan(3, 1)));
  for (const int capacity : {0, -1}) {
    if (!absl::IsInvalidArgument(decoder_.NewState(capacity).status())) {
      return Broken(absl::StrCat("a capacity of ", capacity,
                                 " is not refused as InvalidArgument"));
    }
  }
  return absl::OkStatus();
}

absl::Status Suite::BadRequestsChangeNothing() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  FUCINA_ASSIGN_OR_RETURN(const auto state, NewState());
  FUCINA_RETURN_IF_ERROR(Forward(decoder_, *state, Tokens(0, 3)).status());
  const auto refused = [&](std::span<SequenceStep> batch,
                           absl::string_view what) -> absl::Status {
    const absl::Status status = decoder_.Forward(batch);
    if (!absl::IsInvalidArgument(status)) {
      return Broken(absl::StrCat(what, ": expected InvalidArgument, found ",
                                 status.ToString()));
    }
    if (state->length() != 3) return Broken(absl::StrCat(what, ": length"));
    return absl::OkStatus();
  };
  FUCINA_RETURN_IF_ERROR(refused({}, "an empty batch"));
  SequenceStep empty{.state = state.get()};
  FUCINA_RETURN_IF_ERROR(refused({&empty, 1}, "an empty step"));
  for (const TokenId bad : {-1, vocab_size_}) {
    const TokenId tokens[] = {tokens_[3], bad};
    SequenceStep step{.tokens = tokens, .state = state.get()};
    FUCINA_RETURN_IF_ERROR(refused({&step, 1}, absl::StrCat("token ", bad)));
  }
  SequenceStep twice[] = {{.tokens = Tokens(3, 1), .state = state.get()},
                          {.tokens = Tokens(3, 1), .state = state.get()}};
  FUCINA_RETURN_IF_ERROR(refused(twice, "one state twice"));
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> found,
                          Forward(decoder_, *state, Tokens(3, 2)));
  return Equal(found, std::span(expected).subspan(3, 2));
}

absl::Status Suite::RowsAreWhatWasAsked() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  FUCINA_ASSIGN_OR_RETURN(const auto state, NewState());
  FUCINA_RETURN_IF_ERROR(
      Forward(decoder_, *state, Tokens(0, 4), LogitRows::kNone).status());
  FUCINA_ASSIGN_OR_RETURN(
      const std::vector<Row> found,
      Forward(decoder_, *state, Tokens(4, 3), LogitRows::kLast));
  return Equal(found, std::span(expected).subspan(6, 1));
}

absl::Status Suite::ZeroAdapterIsNone() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  const DecoderInfo& info = decoder_.info();
  // Pairs of rank 1 with B = 0 at every site: adds exactly nothing.
  std::vector<std::vector<float>> memory;
  AdapterSet adapter;
  adapter.layers.resize(static_cast<std::size_t>(info.num_layers));
  int sites = 0;
  for (auto& layer : adapter.layers) {
    for (int site = 0; site < kNumLinearSites; ++site) {
      const SiteShape shape = info.sites[site];
      if (shape.in == 0 || shape.out == 0) continue;
      ++sites;
      memory.emplace_back(shape.out, 1.0F);
      float* a = memory.back().data();
      memory.emplace_back(shape.in, 0.0F);
      float* b = memory.back().data();
      layer[site] = LowRank{.a = Tensor(DType::kF32, {shape.out, 1}, a),
                            .b = Tensor(DType::kF32, {1, shape.in}, b)};
    }
  }
  if (sites == 0) return absl::UnimplementedError("no site takes an adapter");
  FUCINA_ASSIGN_OR_RETURN(const auto state, NewState());
  FUCINA_ASSIGN_OR_RETURN(
      const std::vector<Row> found,
      Forward(decoder_, *state, tokens_, LogitRows::kAll, &adapter));
  return Equal(found, expected);
}

absl::Status Suite::TapSeesEveryLayer() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  RecordingTap tap;
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> rows, Tapped(tap));
  const DecoderInfo& info = decoder_.info();
  const std::string shape = absl::StrCat("f32 [5, ", info.hidden_size, "]");
  if (static_cast<int>(tap.layers.size()) != info.num_layers) {
    return Broken(absl::StrCat("expected ", info.num_layers, " calls, found ",
                               tap.layers.size()));
  }
  for (int i = 0; i < info.num_layers; ++i) {
    if (tap.layers[i] != i || tap.positions[i] != 0 || tap.shapes[i] != shape) {
      return Broken(absl::StrCat("call ", i, ": expected layer ", i,
                                 " at position 0 with ", shape, ", found ",
                                 tap.layers[i], " at ", tap.positions[i],
                                 " with ", tap.shapes[i]));
    }
  }
  return Equal(rows, std::span(expected).first(5));
}

absl::Status Suite::TapSeesOnlyWhatItWants() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> expected, Reference());
  const int last = decoder_.info().num_layers - 1;
  RecordingTap tap({{.layer = last, .rows = TapRows::kLast}});
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> rows, Tapped(tap));
  if (tap.layers != std::vector<int>{last}) {
    return Broken(absl::StrCat("expected one call, for layer ", last,
                               ", found calls for layers ",
                               absl::StrJoin(tap.layers, ", ")));
  }
  const std::string shape =
      absl::StrCat("f32 [1, ", decoder_.info().hidden_size, "]");
  if (tap.positions[0] != 4 || tap.shapes[0] != shape) {
    return Broken(absl::StrCat("expected the last row, ", shape,
                               " at position 4, found ", tap.shapes[0],
                               " at position ", tap.positions[0]));
  }
  return Equal(rows, std::span(expected).first(5));
}

absl::StatusOr<std::vector<Row>> Suite::Tapped(LayerTap& tap) const {
  FUCINA_ASSIGN_OR_RETURN(const auto state, NewState());
  SequenceStep step{.tokens = Tokens(0, 5),
                    .state = state.get(),
                    .rows = LogitRows::kAll,
                    .tap = &tap};
  FUCINA_RETURN_IF_ERROR(decoder_.Forward({&step, 1}));
  return RowsOf(step);
}

absl::Status Suite::DecodingDoesNotAllocate() const {
  if (!decoder_.info().can_truncate) {
    return absl::UnimplementedError("its states cannot take back tokens");
  }
  FUCINA_ASSIGN_OR_RETURN(const auto state, NewState());
  std::int64_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i == 50) before = HeapBytes();
    if (state->length() == kNumTokens) {
      FUCINA_RETURN_IF_ERROR(state->Truncate(1));
    }
    SequenceStep step{.tokens = Tokens(i % kNumTokens, 1),
                      .state = state.get()};
    FUCINA_RETURN_IF_ERROR(decoder_.Forward({&step, 1}));
  }
  const std::int64_t grown = HeapBytes() - before;
  return grown <= 0 ? absl::OkStatus()
                    : Broken(absl::StrCat("the heap grew by ", grown,
                                          " bytes in 950 steps"));
}

}  // namespace

void CheckFamily(const Family& family, const std::string& path,
                 const OptionTexts& texts, Report& report) {
  report.Subject(absl::StrCat("family '", family.name, "'"));
  const auto file = GgufFile::Open(path);
  if (!file.ok()) return report.Property("reads the model", file.status());
  const auto options = Options::Make(family.options, texts);
  if (!options.ok()) {
    return report.Property("takes its options", options.status());
  }
  ThreadPool pool(2);
  const auto decoder = family.load(**file, pool, *options);
  report.Property("loads the model with its options",
                  decoder.ok() && *decoder == nullptr
                      ? Broken("OK, and no decoder")
                      : decoder.status());
  if (!decoder.ok() || *decoder == nullptr) return;

  const Suite suite(family, **file, *options, pool, **decoder);
  const struct {
    absl::string_view property;
    absl::Status (Suite::*check)() const;
  } properties[] = {
      {"describes its decoder", &Suite::InfoIsSound},
      {"refuses a file of another architecture as InvalidArgument",
       &Suite::RefusesAnotherArchitecture},
      {"names a tensor that is missing", &Suite::NamesMissingTensors},
      {"refuses an empty file and keeps no memory of it",
       &Suite::NonsenseLeaksNothing},
      {"gives the logit rows that were asked for", &Suite::RowsAreWhatWasAsked},
      {"n tokens at once equal n tokens one by one, bit for bit",
       &Suite::ManyEqualOneByOne},
      {"a batch of sequences equals each alone, bit for bit",
       &Suite::BatchEqualsAlone},
      {"the number of threads changes no bit", &Suite::ThreadsDoNotMatter},
      {"truncating and appending equals a fresh state, bit for bit",
       &Suite::TruncateForgets},
      {"two states interleaved do not influence each other",
       &Suite::StatesAreIndependent},
      {"two threads on two states equal one thread", &Suite::TwoThreadsWork},
      {"past the capacity is OutOfRange and changes nothing",
       &Suite::CapacityIsKept},
      {"bad requests are InvalidArgument and change nothing",
       &Suite::BadRequestsChangeNothing},
      {"an adapter of zeros equals no adapter", &Suite::ZeroAdapterIsNone},
      {"a tap sees every layer once, in order", &Suite::TapSeesEveryLayer},
      {"a tap sees only what it wants", &Suite::TapSeesOnlyWhatItWants},
      {"1,000 decode steps do not grow the heap",
       &Suite::DecodingDoesNotAllocate},
  };
  for (const auto& [property, check] : properties) {
    report.Property(property, (suite.*check)());
  }
}

}  // namespace fucina::conformance
