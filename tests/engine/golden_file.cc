#include "tests/engine/golden_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "libs/status/status_matchers.h"
#include "tests/engine/engine_driver.h"

namespace tokenrouter {
namespace {

constexpr int kPromptChunk = 7;

// Ids the entry lists, or all, with their logits.
std::vector<std::pair<TokenId, double>> LogitsOf(const boost::json::value& entry) {
  std::vector<std::pair<TokenId, double>> logits;
  const auto* ids = entry.as_object().if_contains("ids");
  for (const boost::json::value& value : entry.at("values").as_array()) {
    const size_t i = logits.size();
    logits.emplace_back(
        ids == nullptr ? static_cast<TokenId>(i) : ids->as_array()[i].to_number<TokenId>(),
        value.to_number<double>());
  }
  return logits;
}

}  // namespace

boost::json::object ReadGolden(const std::string& name) {
  std::ifstream file(std::string(TOKENROUTER_GOLDEN_FOLDER) + "/" + name + ".json");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return boost::json::parse(text).as_object();
}

std::vector<TokenId> GoldenIds(const boost::json::object& golden, const char* field) {
  std::vector<TokenId> ids;
  for (const boost::json::value& id : golden.at(field).as_array()) {
    ids.push_back(id.to_number<TokenId>());
  }
  return ids;
}

void ExpectGoldenLogits(Engine* engine, const boost::json::object& golden, double tolerance,
                        const char* field) {
  const std::vector<TokenId> prompt = GoldenIds(golden, "prompt");
  EngineDriver driver(engine);
  driver.set_recorded_logits(engine->info().usable_ids);
  for (const boost::json::value& entry : golden.at(field).as_array()) {
    const auto position = entry.at("position").to_number<size_t>();
    StepResult result;
    ASSERT_THAT(
        driver.Step(
            {{.sequence = 1, .ids = {prompt.begin(), prompt.begin() + position + 1}, .choices = 1}},
            &result),
        IsOk());
    engine->Release({1});
    const auto& computed = result.choices[0][0].signals.top_logits;
    const std::map<TokenId, float> logits(computed.begin(), computed.end());
    double largest = 0, error = 0;
    for (const auto& [id, expected] : LogitsOf(entry)) {
      if (id >= engine->info().usable_ids) continue;  // Padding rows, which the engine drops.
      largest = std::max(largest, std::fabs(expected));
      error = std::max(error, std::fabs(expected - logits.at(id)));
    }
    EXPECT_LT(error / largest, tolerance) << "position " << position;
  }
}

void ExpectGoldenText(Engine* engine, const boost::json::object& golden) {
  const std::vector<TokenId> greedy = GoldenIds(golden, "greedy");
  EXPECT_EQ(EngineDriver(engine).Generate(1, GoldenIds(golden, "prompt"),
                                          static_cast<int>(greedy.size()), kPromptChunk),
            greedy);
  engine->Release({1});
}

}  // namespace tokenrouter
