#include "tests/engine/tiny_engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/torch_engine/cpu/kv_memory.h"
#include "libs/torch_engine/model/decoder.h"
#include "tests/support/tiny_family.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tiny_tokenizer.h"

namespace tokenrouter {
namespace {

constexpr int64_t kTinyKvBlocks = 64;

TinyModelSpec SpecOf(const std::string& family) {
  auto spec = TinyFamily(family, "large", 5);
  TR_CHECK(spec.ok()) << spec.status().ToString();
  if (spec->architecture == Architecture::kQwen2) spec->tied_embeddings = true;
  return *spec;
}

}  // namespace

std::string TinyModelPath(const std::string& family) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/engine_tiny_", getpid(), "_", family, ".gguf");
  if (access(path.c_str(), R_OK) == 0) return path;
  const absl::Status status = WriteTinyModel(SpecOf(family), TinyFormat::kGgufF32, path);
  TR_CHECK(status.ok()) << status.ToString();
  return path;
}

TorchEngineOptions TinyEngineOptions(const std::string& family, WeightFormat format,
                                     KvFormat kv_format) {
  TorchEngineOptions options;
  options.model_path = TinyModelPath(family);
  options.weight_format = format;
  options.kv_format = kv_format;
  options.kv_bytes = kTinyKvBlocks * KvMemory::BlockBytes(
                                         AttentionShapeOf(DescribeTiny(SpecOf(family))), kv_format);
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
