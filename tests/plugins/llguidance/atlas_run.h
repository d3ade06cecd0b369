#ifndef FUCINA_TESTS_PLUGINS_LLGUIDANCE_ATLAS_RUN_H_
#define FUCINA_TESTS_PLUGINS_LLGUIDANCE_ATLAS_RUN_H_

// The embedded model, and replies of it under a constraint.

#include <memory>
#include <string>
#include <vector>

#include "fucina/chat/conversation.h"  // NeverSampled
#include "fucina/decode/generator.h"
#include "fucina/parallel/thread_pool.h"
#include "gtest/gtest.h"
#include "plugins/qwen3/qwen3_family.h"
#include "tests/core/text/vocab_file.h"

namespace fucina::testing {

struct Atlas {
  // Another file of the same family takes its place in tools.
  explicit Atlas(int threads, const std::string& path = FUCINA_SOURCE_DIR
                              "/models/atlas-6m-q8_0.gguf")
      : pool(threads) {
    file = GgufFile::Open(path).value();
    tokenizer = Tokenizer::FromGguf(*file).value();
    const Family& family = qwen3::DenseFamily();
    decoder =
        family.load(*file, pool, Options::Make(family.options, {}).value())
            .value();
    never = NeverSampled(*tokenizer, decoder->info().vocab_size);
    const auto own = tokenizer->stop_tokens();
    stops.assign(own.begin(), own.end());
  }

  ThreadPool pool;
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Decoder> decoder;
  std::vector<TokenId> never;
  std::vector<TokenId> stops;
};

// The same constraint without its forced tokens: what the mask alone makes.
class NoForcing : public Constraint {
 public:
  explicit NoForcing(std::unique_ptr<Constraint> inner)
      : inner_(std::move(inner)) {}
  absl::Status Mask(std::span<float> logits) override {
    return inner_->Mask(logits);
  }
  absl::Status Accept(TokenId token) override { return inner_->Accept(token); }
  absl::Status Reset() override { return inner_->Reset(); }
  absl::StatusOr<std::unique_ptr<Constraint>> Clone() const override {
    return std::make_unique<NoForcing>(inner_->Clone().value());
  }
  int ValidPrefix(std::span<const TokenId> tokens) override {
    return inner_->ValidPrefix(tokens);
  }
  bool IsComplete() override { return inner_->IsComplete(); }

 private:
  std::unique_ptr<Constraint> inner_;
};

// One sequence and what it needs.
struct AtlasSequence {
  AtlasSequence(const Atlas& atlas, const SamplerConfig& sampling, int capacity,
                std::unique_ptr<Constraint> own, Drafter* drafter = nullptr,
                int max_draft = 8)
      : constraint(std::move(own)),
        state(atlas.decoder->NewState(capacity).value()),
        sampler(sampling, atlas.decoder->info().vocab_size),
        sequence(*atlas.decoder, {.state = state.get(),
                                  .sampler = &sampler,
                                  .drafter = drafter,
                                  .constraint = constraint.get(),
                                  .never_sampled = atlas.never,
                                  .gate = AlwaysOn(max_draft)}) {}

  static SpeculationGateOptions AlwaysOn(int max_draft) {
    SpeculationGateOptions options;
    options.max_draft = max_draft;
    options.always_on = true;
    return options;
  }
  std::vector<TokenId> Generated() const {
    const auto tokens = sequence.history().last(
        static_cast<std::size_t>(sequence.stats().new_tokens));
    return {tokens.begin(), tokens.end()};
  }

  std::unique_ptr<Constraint> constraint;
  std::unique_ptr<DecodeState> state;
  Sampler sampler;
  Sequence sequence;
};

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_PLUGINS_LLGUIDANCE_ATLAS_RUN_H_
