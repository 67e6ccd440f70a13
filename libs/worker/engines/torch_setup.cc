#include "libs/worker/engines/torch_setup.h"

#include <memory>
#include <utility>

#include "libs/status/status_macros.h"
#include "libs/text/tokenizer.h"
#include "libs/torch_engine/torch_engine.h"
#include "libs/worker/core/sequence_state.h"

namespace tokenrouter {

absl::StatusOr<WorkerEngine> MakeTorchEngine(const WorkerOptions& options,
                                             const LoadProgress& progress) {
  WorkerEngine made;
  TR_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(options.model));
  made.tokenizer_fingerprint = tokenizer->Fingerprint();
  made.eos_ids.assign(tokenizer->eos_ids().begin(), tokenizer->eos_ids().end());
  TorchEngineOptions torch;
  torch.model_path = options.model;
  torch.model_name = options.model_name;
  TR_ASSIGN_OR_RETURN(torch.weight_format, ParseWeightFormat(options.weight_format));
  if (options.weight_cache != "off") torch.weight_cache = options.weight_cache;
  torch.weight_cache_bytes = options.weight_cache_bytes;
  TR_ASSIGN_OR_RETURN(torch.kv_format, ParseKvFormat(options.kv_format));
  torch.kv_bytes = options.kv_bytes;
  torch.threads = options.threads;
  torch.max_rows = options.max_rows;
  torch.max_step_tokens = options.max_step_tokens;
  torch.max_choices = kMaxVerify + 1;
  torch.usable_ids = tokenizer->usable_ids();
  torch.context_limit = options.context_limit;
  torch.progress = progress;
  TR_ASSIGN_OR_RETURN(made.engine, TorchEngine::Create(torch));
  return made;
}

}  // namespace tokenrouter
