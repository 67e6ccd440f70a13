#include "libs/worker/engines/worker_options.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "libs/worker/core/sequence_state.h"

namespace tokenrouter {

void AddWorkerSettings(Role role, Settings* settings, WorkerOptions* options) {
  WorkerOptions& o = *options;
  o.admin = role == Role::kSmall ? "127.0.0.1:9102" : "127.0.0.1:9103";
  settings->Add("scheduler", &o.scheduler, "gRPC address of the scheduler");
  settings->Add("admin", &o.admin, "host:port of /metrics, /livez and /readyz");
  settings->Add("pair", &o.pair, "pair of models that this worker belongs to");
  settings->Add(
      "device_key", &o.device_key,
      "workers with the same key share one device under leases; empty: a dedicated device");
  settings->AddChoice("log_level", &o.log_level, {"debug", "info", "warning", "error"},
                      "least level that is logged");
  settings->AddChoice("engine", &o.engine, {"torch", "timed", "fake"},
                      "torch: a real model; timed: hash tokens at the speed of a curve; fake: hash "
                      "tokens at once");
  settings->Add("model", &o.model, "torch: a .gguf file or a Hugging Face folder");
  settings->Add("model_name", &o.model_name, "name to show; empty: the model's own");
  settings->AddChoice("weight_format", &o.weight_format, {"int8", "int4", "fp32"},
                      "torch: how weights are kept");
  settings->Add("weight_cache", &o.weight_cache,
                "torch: folder that keeps packed weights for the next start, shared by all workers "
                "of this machine; off: pack at every start");
  settings->Add("weight_cache_bytes", &o.weight_cache_bytes, int64_t{1} << 20,
                std::numeric_limits<int64_t>::max() / 2,
                "most bytes of --weight_cache; the least recently used models are evicted");
  settings->Add("threads", &o.threads, 0, 1024, "torch: compute threads; 0: one per core");
  settings->AddChoice(
      "kv_format", &o.kv_format, {"fp32", "int8"},
      "torch: how keys and values are kept; int8 holds up to 3.9 times as many tokens");
  settings->Add("kv_bytes", &o.kv_bytes, int64_t{1} << 16, std::numeric_limits<int64_t>::max() / 2,
                "memory of the KV cache, allocated at start");
  settings->Add("context_limit", &o.context_limit, 0, 1 << 20,
                "tokens of one sequence, at most what the model was made for; 0: just that");
  settings->Add("tokenizer", &o.tokenizer,
                "timed, fake: a .gguf file or folder whose tokenizer this worker stands for");
  settings->Add(
      "timed_curve", &o.timed_curve,
      "timed: h200, 8b, cpu, vnni, roofline, fast, instant or base=MS,row=MS,id=MS[,cv=X]");
  settings->Add("timed_agreement", &o.timed_agreement, 0.0, 1.0,
                "timed, fake: share of positions at which both models agree");
  settings->Add("seed", &o.seed, int64_t{0}, std::numeric_limits<int64_t>::max(),
                "timed, fake: of the pair, the same on both sides");
  settings->Add("max_rows", &o.max_rows, 1, 4096, "rows of one step");
  settings->Add("max_step_tokens", &o.max_step_tokens, kMaxVerify + 1, 1 << 20,
                "new ids of one step");
  settings->Add("max_step_ms", &o.max_step_ms, 1, 3600 * 1000,
                "predicted time of one step: longer prompts are prefilled in chunks, and decoding "
                "rows continue between them");
  settings->Add("max_sequences", &o.max_sequences, 1, 1 << 16, "open requests");
  settings->Add("calibrate", &o.calibrate,
                "measure step times before attaching, for up to two seconds; the scheduler plans "
                "with them; the fake engine never does");
  settings->Add(
      "prefix_cache", &o.prefix_cache,
      "keep the KV of closed requests for those of the same tenant that start alike, until "
      "its blocks are needed");
  settings->Add("drain_ms", &o.drain_ms, 0, 3600 * 1000,
                "time for open requests to end after SIGTERM");
}

absl::Status Validate(const WorkerOptions& options) {
  if (options.engine != "torch" && !options.model.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--engine=", options.engine,
                                                   " runs no model, but --model is ", options.model,
                                                   "; drop one of them (or give --tokenizer)"));
  }
  if (options.engine == "torch" && options.model.empty()) {
    return absl::InvalidArgumentError(
        "--model is empty; --engine=torch needs a .gguf file or a Hugging Face folder");
  }
  if (options.engine == "torch" && !options.tokenizer.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tokenizer is ", options.tokenizer,
                     ", but --engine=torch takes the tokenizer of --model; drop it"));
  }
  if (options.scheduler.empty()) {
    return absl::InvalidArgumentError("--scheduler is empty; it needs host:port");
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
