#include "fucina/runner/runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/runner/forward.h"
#include "core/runner/fused_block.h"
#include "core/runner/model_tensors.h"
#include "core/runner/reference_block.h"
#include "core/runner/runner_state.h"
#include "fucina/diag/check.h"
#include "fucina/diag/log.h"
#include "fucina/diag/status_macros.h"
#include "fucina/model/kv_cache.h"
#include "fucina/model/weights.h"
#include "fucina/ops/context.h"

namespace fucina {
namespace {

// Positions whose rotations are made together with a state: enough for a
// conversation, 5 ms of work. Later ones are made as they are reached.
constexpr int kPreparedPositions = 4096;

DecoderInfo MakeInfo(const Descriptor& d) {
  DecoderInfo info;
  info.architecture = d.architecture;
  info.num_layers = d.num_layers;
  info.hidden_size = d.hidden_size;
  info.vocab_size = d.vocab_size;
  info.context_length = d.context_length;
  info.can_truncate = true;
  const auto site = [&info](LinearSite which, std::int64_t in,
                            std::int64_t out) {
    info.sites[static_cast<std::size_t>(which)] = {in, out};
  };
  const std::int64_t hidden = d.hidden_size;
  site(LinearSite::kQ, hidden, d.query_size());
  site(LinearSite::kK, hidden, d.kv_size());
  site(LinearSite::kV, hidden, d.kv_size());
  site(LinearSite::kO, d.query_size(), hidden);
  // A mixture has no one matrix that a pair could be added to.
  if (d.num_experts == 0) {
    site(LinearSite::kGate, hidden, d.ffn_size);
    site(LinearSite::kUp, hidden, d.ffn_size);
    site(LinearSite::kDown, d.ffn_size, hidden);
  }
  return info;
}

std::int64_t ReferenceBytes(const ModelTensors& tensors) {
  std::int64_t total = 0;
  const auto add = [&total](const GgufTensorInfo* info) {
    if (info != nullptr) total += static_cast<std::int64_t>(info->size_bytes);
  };
  const auto add_ffn = [&add](const FeedForwardTensors& t) {
    add(t.gate.weight);
    add(t.up.weight);
    add(t.down.weight);
  };
  for (const LayerTensors& t : tensors.layers) {
    for (const LinearTensor* linear : {&t.q, &t.k, &t.v, &t.o}) {
      add(linear->weight);
    }
    add_ffn(t.dense);
    add_ffn(t.experts.shared);
    add(t.experts.router.weight);
    add(t.experts.gate);
    add(t.experts.up);
    add(t.experts.gate_up);
    add(t.experts.down);
  }
  add(tensors.output.weight);
  return total;
}

}  // namespace

struct Runner::Impl {
  Impl(const GgufFile& gguf, Descriptor descriptor, ThreadPool& thread_pool,
       const Kernels& kernel_table)
      : file(gguf),
        d(std::move(descriptor)),
        context{thread_pool, kernel_table} {}

  const GgufFile& file;
  const Descriptor d;
  const ops::Context context;
  BlockStyle style = BlockStyle::kFused;
  KvGeometry geometry;
  DecoderInfo info;
  ModelTensors tensors;
  std::unique_ptr<FusedBlock> fused;          // one of
  std::unique_ptr<ReferenceBlock> reference;  // the two
  std::unique_ptr<ForwardPass> forward;
  PhaseTimes* phase_times = nullptr;
};

Runner::Runner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Runner::~Runner() = default;

absl::StatusOr<std::unique_ptr<Runner>> Runner::Load(
    const GgufFile& file, Descriptor descriptor, ThreadPool& pool,
    const RunnerOptions& options) {
  const KernelLevel level = options.kernel_level.value_or(BestKernelLevel());
  const Kernels* kernels = KernelsFor(level);
  if (kernels == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("kernel level '", Name(level), "' is not supported here"));
  }
  FUCINA_CHECK(options.expert_top_p > 0 && options.expert_top_p <= 1)
      << options.expert_top_p;
  for (const std::string& note : descriptor.notes) {
    FUCINA_LOG(WARNING) << file.display_name() << ": " << note;
  }
  if (options.rope_pairing.has_value()) {
    descriptor.rope_pairing = *options.rope_pairing;
  }

  auto impl =
      std::make_unique<Impl>(file, std::move(descriptor), pool, *kernels);
  const Descriptor& d = impl->d;
  impl->style = options.block_style.value_or(d.block_style);
  impl->info = MakeInfo(d);
  impl->info.kernel_level = std::string(Name(level));
  impl->geometry = {.num_layers = d.num_layers,
                    .num_kv_heads = d.num_kv_heads,
                    .head_dim = d.head_dim,
                    .dtype = options.cache_type};
  FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<KvCache> smallest,
                          KvCache::Create(impl->geometry, 1));
  impl->info.state_bytes_per_token = smallest->bytes_per_token();

  const Weights weights(file);
  FUCINA_ASSIGN_OR_RETURN(impl->tensors,
                          FindModelTensors(weights, d, options.strict));
  if (impl->style == BlockStyle::kFused) {
    FUCINA_ASSIGN_OR_RETURN(
        impl->fused, FusedBlock::Create(file, d, impl->tensors,
                                        options.expert_top_p, impl->context));
    impl->info.weight_bytes = impl->fused->size_bytes();
  } else {
    impl->reference = std::make_unique<ReferenceBlock>(
        d, impl->tensors, options.expert_top_p, impl->context);
    impl->info.weight_bytes = ReferenceBytes(impl->tensors);
  }
  impl->forward = std::make_unique<ForwardPass>(
      ForwardPass::Model{.descriptor = d,
                         .info = impl->info,
                         .tensors = impl->tensors,
                         .owner = impl.get(),
                         .fused = impl->fused.get(),
                         .reference = impl->reference.get(),
                         .context = impl->context});
  FUCINA_LOG(INFO) << file.display_name() << ": " << d.architecture << ", "
                   << d.num_layers << " layers, block style "
                   << Name(impl->style) << ", kernels "
                   << Name(impl->context.kernels.level);
  return std::unique_ptr<Runner>(new Runner(std::move(impl)));
}

const DecoderInfo& Runner::info() const { return impl_->info; }

absl::StatusOr<std::unique_ptr<DecodeState>> Runner::NewState(
    int capacity) const {
  FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<KvCache> cache,
                          KvCache::Create(impl_->geometry, capacity));
  if (impl_->fused != nullptr) {
    FUCINA_RETURN_IF_ERROR(
        impl_->fused->rope().Prepare(std::min(capacity, kPreparedPositions)));
  }
  auto state = std::make_unique<RunnerState>(impl_.get(), std::move(cache));
  FUCINA_RETURN_IF_ERROR(state->ReserveLogits(1, impl_->d.vocab_size));
  return state;
}

absl::Status Runner::Forward(std::span<SequenceStep> batch) const {
  return impl_->forward->Run(batch, impl_->phase_times);
}

const Descriptor& Runner::descriptor() const { return impl_->d; }

BlockStyle Runner::block_style() const { return impl_->style; }

KernelLevel Runner::kernel_level() const {
  return impl_->context.kernels.level;
}

const ops::Context& Runner::context() const { return impl_->context; }

void Runner::set_phase_times(PhaseTimes* times) { impl_->phase_times = times; }

KvCache* CacheOf(DecodeState& state) {
  const auto ours = dynamic_cast<RunnerState*>(&state);
  return ours == nullptr ? nullptr : &ours->cache();
}

}  // namespace fucina
