#include "tests/engine/tiny_engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/torch_engine/cpu/kv_memory.h"
#include "libs/torch_engine/model/decoder.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tiny_tokenizer.h"

namespace tokenrouter {
namespace {

constexpr int64_t kTinyKvBlocks = 64;

TinyModelSpec SpecOf(Architecture architecture) {
  TinyModelSpec spec = TinyLarge(architecture, 5);
  spec.layers = 3;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.tied_embeddings = architecture == Architecture::kQwen2;
  return spec;
}

}  // namespace

std::string TinyModelPath(Architecture architecture) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/engine_tiny_", getpid(), "_",
                                        ArchitectureName(architecture), ".gguf");
  if (access(path.c_str(), R_OK) == 0) return path;
  const absl::Status status = WriteTinyModel(SpecOf(architecture), TinyFormat::kGgufF32, path);
  TR_CHECK(status.ok()) << status.ToString();
  return path;
}

TorchEngineOptions TinyEngineOptions(Architecture architecture, WeightFormat format) {
  TorchEngineOptions options;
  options.model_path = TinyModelPath(architecture);
  options.weight_format = format;
  options.kv_bytes =
      kTinyKvBlocks * KvMemory::BlockBytes(AttentionShapeOf(DescribeTiny(SpecOf(architecture))));
  options.threads = 2;
  options.compute_nice = 0;
  options.max_rows = 16;
  options.max_step_tokens = 96;
  options.max_choices = 8;
  options.usable_ids = kTinyTokenizerSize;
  return options;
}

std::unique_ptr<TorchEngine> MakeEngine(const TorchEngineOptions& options) {
  auto engine = TorchEngine::Create(options);
  TR_CHECK(engine.ok()) << engine.status().ToString();
  return *std::move(engine);
}

}  // namespace tokenrouter
