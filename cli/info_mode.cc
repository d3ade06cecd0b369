#include "cli/info_mode.h"

#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"

namespace fucina::cli {
namespace {

std::string IdOrNull(const std::optional<TokenId>& id) {
  return id.has_value() ? absl::StrCat(*id) : "null";
}

// The scalars under the architecture's prefix are the model's dimensions.
absl::Status PrintDimensions(const GgufFile& file,
                             const std::string& architecture,
                             std::ostream& out) {
  const std::string prefix = architecture + ".";
  for (const absl::string_view key : file.keys()) {
    if (!absl::StartsWith(key, prefix)) continue;
    const GgufType type = file.Find(key)->type;
    std::string value;
    if (type == GgufType::kArray) {
      value = absl::StrCat("[", file.Find(key)->count, " values]");
    } else if (type == GgufType::kString) {
      FUCINA_ASSIGN_OR_RETURN(const auto text, file.GetString(key));
      value = Printable(*text);
    } else if (type == GgufType::kBool) {
      FUCINA_ASSIGN_OR_RETURN(const auto flag, file.GetBool(key));
      value = *flag ? "true" : "false";
    } else {
      FUCINA_ASSIGN_OR_RETURN(const auto number, file.GetFloat(key));
      value = absl::StrCat(*number);
    }
    out << key.substr(prefix.size()) << ": " << value << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrintInfo(const Pipeline& pipeline, std::ostream& out) {
  const StartupReport& report = pipeline.report;
  out << "model: " << report.model << "\n"
      << "architecture: " << report.architecture << "\n"
      << "file: "
      << HumanBytes(static_cast<std::int64_t>(pipeline.file->file_bytes()))
      << ", " << pipeline.file->tensors().size() << " tensors\n";
  for (const auto& [type, bytes] : report.weight_types) {
    out << "weights " << type << ": " << HumanBytes(bytes) << "\n";
  }
  FUCINA_RETURN_IF_ERROR(
      WithExitCode(PrintDimensions(*pipeline.file, report.architecture, out),
                   ExitCode::kFile));

  if (pipeline.tokenizer == nullptr) {
    out << "(no tokenizer: " << pipeline.tokenizer_status.message() << ")\n";
  } else {
    const Tokenizer& tokenizer = *pipeline.tokenizer;
    out << "pre-tokenizer: " << Printable(tokenizer.pre()) << "\n"
        << "vocab: " << tokenizer.vocab_size()
        << "  real: " << tokenizer.real_vocab_size()
        << "  bos: " << IdOrNull(tokenizer.special().bos)
        << "  eos: " << IdOrNull(tokenizer.special().eos) << "\n";
    for (const absl::string_view text :
         {"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>",
          "</think>"}) {
      out << text << ": " << IdOrNull(tokenizer.FindSpecial(text)) << "\n";
    }
    out << "stop tokens:";
    for (const TokenId id : tokenizer.stop_tokens()) out << " " << id;
    out << "\n";
  }
  FUCINA_ASSIGN_OR_RETURN(const auto chat_template,
                          pipeline.file->GetString("tokenizer.chat_template"));
  if (chat_template.has_value()) {
    out << "--- chat_template (" << chat_template->size() << " chars) ---\n"
        << *chat_template << "\n";
  } else {
    out << "(no chat_template metadata)\n";
  }
  return absl::OkStatus();
}

absl::Status PrintTokens(const Pipeline& pipeline, const std::string& text,
                         std::ostream& out) {
  if (!pipeline.tokenizer_status.ok()) {
    return WithExitCode(pipeline.tokenizer_status, ExitCode::kFile);
  }
  FUCINA_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                          pipeline.tokenizer->Encode(text));
  for (const TokenId id : ids) out << id << "\n";
  return absl::OkStatus();
}

}  // namespace fucina::cli
