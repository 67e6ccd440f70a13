// Tests the contract on which everything above the engine rests: the result of a sequence is a
// function of its own ids, independent of the other rows, of how its ids are cut and of where its
// blocks lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "libs/status/status_matchers.h"
#include "tests/engine/engine_driver.h"
#include "tests/engine/tiny_engine.h"

namespace tokenrouter {
namespace {

constexpr int kSequences = 6;
constexpr int kRounds = 40;
constexpr uint32_t kIdLimit = 259;

using Ids = std::vector<TokenId>;
// Kernels of an engine: null ones as in TorchEngineOptions.
struct Pinned {
  std::string name;
  const KernelTable* kernels = nullptr;
  const PanelGemm* panel_gemm = nullptr;
};
struct Formats {
  WeightFormat weights;
  KvFormat kv;
};
constexpr Formats kFormats[] = {{WeightFormat::kInt8, KvFormat::kFp32},
                                {WeightFormat::kInt4, KvFormat::kFp32},
                                {WeightFormat::kFp32, KvFormat::kFp32},
                                {WeightFormat::kInt8, KvFormat::kInt8},
                                {WeightFormat::kFp32, KvFormat::kInt8}};
using Parameter = std::tuple<const char*, Formats, Pinned>;

Ids RandomIds(int count, std::mt19937* generator) {
  Ids ids(count);
  for (TokenId& id : ids) id = static_cast<TokenId>((*generator)() % kIdLimit);
  return ids;
}

// Fingerprints of the choices at every position of `ids`, one id per step, alone in the engine.
std::vector<std::string> OneByOne(Engine* engine, const Ids& ids) {
  EngineDriver driver(engine, 0.8f);
  std::vector<std::string> prints;
  for (const TokenId id : ids) {
    StepResult result;
    EXPECT_THAT(driver.Step({{.sequence = 1, .ids = {id}, .choices = 1}}, &result), IsOk());
    prints.push_back(Fingerprint(result.choices[0][0]));
  }
  engine->Release({1});
  return prints;
}

class EngineIdentityTest : public ::testing::TestWithParam<Parameter> {
 protected:
  TorchEngineOptions Options() const {
    const Formats formats = std::get<1>(GetParam());
    TorchEngineOptions options =
        TinyEngineOptions(std::get<0>(GetParam()), formats.weights, formats.kv);
    options.kernels = std::get<2>(GetParam()).kernels;
    options.panel_gemm = std::get<2>(GetParam()).panel_gemm;
    return options;
  }
};

// One sequence of a random run: what it will hold, and how far it is.
struct Progress {
  Ids ids;
  std::vector<std::string> expected;
  size_t done = 0;
};

// Takes the next `count` ids of each unfinished sequence, in random order, and checks the choices.
void RandomStep(Engine* engine, std::map<uint64_t, Progress>* sequences, std::mt19937* generator) {
  std::vector<uint64_t> order;
  for (const auto& [sequence, progress] : *sequences) {
    if (progress.done < progress.ids.size() && (*generator)() % 4 != 0) order.push_back(sequence);
  }
  std::shuffle(order.begin(), order.end(), *generator);
  std::vector<DrivenRow> rows;
  for (const uint64_t sequence : order) {
    const Progress& progress = sequences->at(sequence);
    const size_t count = std::min<size_t>(progress.ids.size() - progress.done,
                                          1 + (*generator)() % ((*generator)() % 3 == 0 ? 16 : 4));
    const auto first = progress.ids.begin() + progress.done;
    rows.push_back(
        {.sequence = sequence,
         .ids = Ids(first, first + count),
         .choices = static_cast<int>((*generator)() % (std::min<size_t>(count, 8) + 1))});
  }
  StepResult result;
  EngineDriver driver(engine, 0.8f);
  ASSERT_THAT(driver.Step(rows, &result), IsOk());
  for (size_t i = 0; i < rows.size(); ++i) {
    Progress& progress = sequences->at(rows[i].sequence);
    progress.done += rows[i].ids.size();
    for (int c = 0; c < rows[i].choices; ++c) {
      ASSERT_EQ(Fingerprint(result.choices[i][c]),
                progress.expected[progress.done - rows[i].choices + c])
          << "sequence " << rows[i].sequence << " at " << progress.done;
    }
  }
}

// Random forks, truncations and releases, which also shuffle the blocks.
void Disturb(Engine* engine, std::map<uint64_t, Progress>* sequences, uint64_t* next_id,
             std::mt19937* generator) {
  auto chosen = std::next(sequences->begin(), (*generator)() % sequences->size());
  Progress& progress = chosen->second;
  if (progress.done == 0) return;
  const auto length = static_cast<Position>((*generator)() % (progress.done + 1));
  switch ((*generator)() % 4) {
    case 0:
      engine->Truncate({chosen->first}, length);
      progress.done = length;
      break;
    case 1:
      engine->Release({chosen->first});
      progress.done = 0;
      break;
    case 2: {
      const uint64_t child = (*next_id)++;
      ASSERT_THAT(engine->Fork({chosen->first}, {child}, length), IsOk());
      Progress copy = progress;
      copy.done = length;
      if ((*generator)() % 2 == 0) engine->Release({chosen->first});
      if (engine->Length({chosen->first}) == 0)
        sequences->erase(chosen);
      else
        engine->Release({child});
      if (engine->Length({child}) > 0 || length == 0) sequences->emplace(child, std::move(copy));
      break;
    }
    default:
      break;
  }
}

TEST_P(EngineIdentityTest, GivesTheSameBitsInEveryBatchChunkingAndLayout) {
  std::mt19937 generator(31);
  const auto engine = MakeEngine(Options());
  std::map<uint64_t, Progress> sequences;
  uint64_t next_id = 100;
  for (int i = 0; i < kSequences; ++i) {
    Progress progress{.ids = RandomIds(20 + generator() % 90, &generator)};
    progress.expected = OneByOne(engine.get(), progress.ids);
    sequences.emplace(next_id++, std::move(progress));
  }
  for (int round = 0; round < kRounds * kSequences; ++round) {
    RandomStep(engine.get(), &sequences, &generator);
    if (HasFatalFailure()) return;
    Disturb(engine.get(), &sequences, &next_id, &generator);
  }
}

TEST_P(EngineIdentityTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  std::mt19937 generator(32);
  const Ids ids = RandomIds(70, &generator);
  TorchEngineOptions options = Options();
  options.threads = 1;
  const auto one = MakeEngine(options);
  options.threads = 3;
  const auto three = MakeEngine(options);
  EXPECT_EQ(OneByOne(one.get(), ids), OneByOne(three.get(), ids));
}

// Few long sequences are shared by the part of their context.
TEST_P(EngineIdentityTest, GivesTheSameBitsWhenThreadsShareALongSequence) {
  constexpr int kRead = kAttentionPartTokens + 60, kWritten = 4;
  std::mt19937 generator(33);
  const Ids ids = RandomIds(kRead + kWritten, &generator);
  std::vector<std::string> expected;
  for (const int threads : {1, 4}) {
    TorchEngineOptions options = Options();
    options.threads = threads;
    const auto engine = MakeEngine(options);
    EngineDriver driver(engine.get(), 0.8f);
    StepResult result;
    for (int read = 0; read < kRead;) {
      const int count = std::min<int>(kRead - read, 1 + generator() % 96);
      const auto first = ids.begin() + read;
      ASSERT_THAT(driver.Step({{.sequence = 1, .ids = Ids(first, first + count)}}, &result),
                  IsOk());
      read += count;
    }
    std::vector<std::string> prints;
    for (int i = kRead; i < kRead + kWritten; ++i) {
      ASSERT_THAT(driver.Step({{.sequence = 1, .ids = {ids[i]}, .choices = 1}}, &result), IsOk());
      prints.push_back(Fingerprint(result.choices[0][0]));
    }
    if (threads == 1) expected = prints;
    EXPECT_EQ(prints, expected);
  }
}

TEST_P(EngineIdentityTest, NamesEqualEnginesEqually) {
  TorchEngineOptions options = Options();
  const std::string name = MakeEngine(options)->info().numerics_class;
  options.max_rows = 3;
  EXPECT_EQ(MakeEngine(options)->info().numerics_class, name);
  const Formats own = std::get<1>(GetParam());
  for (const Formats other : kFormats) {
    if (other.weights == own.weights && other.kv == own.kv) continue;
    options.weight_format = other.weights;
    options.kv_format = other.kv;
    EXPECT_NE(MakeEngine(options)->info().numerics_class, name);
  }
}

// The kernels that this processor can use; its own choice is among them.
std::vector<Pinned> AllKernels() {
  std::vector<Pinned> all;
  for (const KernelTable* const kernels : UsableKernels()) {
    all.push_back({std::string("xnnpack_") + kernels->name, kernels});
  }
  for (const PanelGemm* const gemm : UsablePanelGemms()) {
    all.push_back({std::string("panels_") + gemm->name, nullptr, gemm});
  }
  return all;
}

TEST(EngineKernels, AreTheBestPanelsOfTheProcessorByDefault) {
  TorchEngineOptions options = TinyEngineOptions("llama", WeightFormat::kInt4);
  const std::string chosen = MakeEngine(options)->info().numerics_class;
  for (const Pinned& pinned : AllKernels()) {
    options.kernels = pinned.kernels;
    options.panel_gemm = pinned.panel_gemm;
    const bool best =
        !UsablePanelGemms().empty() && pinned.panel_gemm == UsablePanelGemms().front();
    EXPECT_EQ(MakeEngine(options)->info().numerics_class == chosen, best) << pinned.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EngineIdentityTest,
                         ::testing::Combine(::testing::Values("llama", "qwen2", "qwen3", "mistral"),
                                            ::testing::ValuesIn(kFormats),
                                            ::testing::ValuesIn(AllKernels())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::string(WeightFormatName(std::get<1>(info.param).weights)) +
                                  "_kv_" + std::string(KvFormatName(std::get<1>(info.param).kv)) +
                                  "_" + std::get<2>(info.param).name;
                         });

}  // namespace
}  // namespace tokenrouter
