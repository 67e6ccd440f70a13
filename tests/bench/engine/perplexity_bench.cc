// The quality cost of small weights and small KV: perplexity of one model on real code in each
// format and in its fp32 reference, on the same tokens, with a paired 95 % interval over texts.
//   perplexity_bench --model=FILE --texts=HumanEval.jsonl [--tokens=16384] [--format=int4]
//       [--kv_format=int8] [--join=8]
// The reference is fp32 weights; with --kv_format=int8 it is the same weights with fp32 KV.
// The texts are teacher-forced, kRows at a time, through the ordinary Engine contract: a logit bias
// makes the next id of the text the choice, and its logprob is that of the raw distribution.
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/config/settings.h"
#include "libs/status/status_macros.h"
#include "libs/text/tokenizer.h"
#include "libs/torch_engine/torch_engine.h"
#include "tests/bench/measure/bench_parts.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr int kRows = 64;
constexpr float kForce = 100.0f;  // Bias that makes an id the choice.
constexpr double kTwoSided95 = 1.96;

constexpr char kAllFormats[] = "all";

struct Options {
  std::string model, texts;
  std::string format = kAllFormats;
  std::string kv_format = "fp32";
  int32_t join = 1;
  int32_t tokens = 16384;
  int32_t threads = 2;
};

using Ids = std::vector<TokenId>;

struct Formats {
  WeightFormat weights;
  KvFormat kv;
};

// Prompt and solution of each problem, `join` problems to a text, until `tokens` predicted ids are
// there.
absl::StatusOr<std::vector<Ids>> ReadTexts(const Options& options) {
  TR_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(options.model));
  std::ifstream file(options.texts);
  if (!file) return absl::NotFoundError(absl::StrCat("--texts: cannot read ", options.texts));
  std::vector<Ids> texts;
  int64_t predicted = 0;
  std::string text;
  int joined = 0;
  for (std::string line; predicted < options.tokens && std::getline(file, line);) {
    const json::object problem = json::parse(line).as_object();
    absl::StrAppend(&text, std::string(problem.at("prompt").as_string()),
                    std::string(problem.at("canonical_solution").as_string()));
    if (++joined < options.join) continue;
    TR_ASSIGN_OR_RETURN(Ids ids, tokenizer->Encode(text, {}));
    text.clear();
    joined = 0;
    if (ids.size() < 2) continue;
    predicted += static_cast<int64_t>(ids.size()) - 1;
    texts.push_back(std::move(ids));
  }
  if (predicted < options.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("--texts has only ", predicted, " tokens; wanted ", options.tokens));
  }
  return texts;
}

// Teacher-forces up to kRows texts at a time, as KV capacity allows; the end of a text frees
// capacity for the next one.
class Scorer {
 public:
  Scorer(Engine* engine, const std::vector<Ids>& texts)
      : engine_(engine),
        texts_(texts),
        sums_(texts.size(), 0.0),
        unclaimed_(engine->info().total_blocks) {}

  // Sum of log probabilities of each text.
  absl::StatusOr<std::vector<double>> Run() {
    while (true) {
      while (live_.size() < kRows && next_ < texts_.size() && Blocks(next_) <= unclaimed_) {
        unclaimed_ -= Blocks(next_);
        live_.push_back({.text = next_++, .at = 0});
      }
      if (live_.empty() && next_ < texts_.size())
        return absl::ResourceExhaustedError("a text is longer than KV: lower --join");
      if (live_.empty()) return sums_;
      TR_RETURN_IF_ERROR(Step());
    }
  }

 private:
  struct Live {
    size_t text;
    Position at;  // The id that runs next.
  };

  int64_t Blocks(size_t text) const {
    return static_cast<int64_t>(texts_[text].size()) / engine_->info().block_size + 1;
  }

  absl::Status Step() {
    contexts_.assign(live_.size(), {});
    StepBatch batch;
    for (size_t i = 0; i < live_.size(); ++i) {
      const Ids& ids = texts_[live_[i].text];
      contexts_[i].parameters.temperature = 0;
      contexts_[i].parameters.logit_bias = {{ids[live_[i].at + 1], kForce}};
      batch.rows.push_back({.sequence = SequenceId{live_[i].text + 1},
                            .first = live_[i].at,
                            .new_ids = std::span<const TokenId>(ids).subspan(live_[i].at, 1),
                            .choices = 1,
                            .sampling = &contexts_[i],
                            .signals = {}});
    }
    TR_RETURN_IF_ERROR(engine_->Step(batch, &result_));
    std::vector<Live> still;
    for (size_t i = 0; i < live_.size(); ++i) {
      const Ids& ids = texts_[live_[i].text];
      const Choice& choice = result_.choices[i][0];
      if (choice.id != ids[live_[i].at + 1])
        return absl::InternalError("a logit lay 100 below the best");
      sums_[live_[i].text] += choice.logprob;
      ++live_[i].at;
      if (static_cast<size_t>(live_[i].at) + 1 < ids.size()) {
        still.push_back(live_[i]);
      } else {
        engine_->Release(SequenceId{live_[i].text + 1});
        unclaimed_ += Blocks(live_[i].text);
      }
    }
    live_ = std::move(still);
    return absl::OkStatus();
  }

  Engine* const engine_;
  const std::vector<Ids>& texts_;
  std::vector<double> sums_;
  int64_t unclaimed_;  // Blocks of KV that no live text will need.
  std::vector<Live> live_;
  std::vector<SamplingContext> contexts_;
  StepResult result_;
  size_t next_ = 0;
};

absl::StatusOr<std::vector<double>> Score(const Options& options, Formats formats,
                                          const std::vector<Ids>& texts) {
  TR_ASSIGN_OR_RETURN(const auto engine, TorchEngine::Create({.model_path = options.model,
                                                              .weight_format = formats.weights,
                                                              .kv_format = formats.kv,
                                                              .threads = options.threads,
                                                              .compute_nice = 0,
                                                              .max_rows = kRows}));
  std::cerr << "scoring " << WeightFormatName(formats.weights) << ", KV "
            << KvFormatName(formats.kv) << "\n";
  return Scorer(engine.get(), texts).Run();
}

// Prints both perplexities and the change with its interval: the texts are the independent units,
// so the standard error is that of the ratio estimator sum(d) / sum(n) over texts.
void Report(const Options& options, Formats formats, const std::vector<Ids>& texts,
            const std::vector<double>& scores, const std::vector<double>& fp32) {
  double tokens = 0, sum = 0, sum_fp32 = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    tokens += static_cast<double>(texts[i].size() - 1);
    sum += scores[i];
    sum_fp32 += fp32[i];
  }
  const double mean = (sum_fp32 - sum) / tokens;  // Rise of the loss per token.
  double squares = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const double residual = (fp32[i] - scores[i]) - mean * static_cast<double>(texts[i].size() - 1);
    squares += residual * residual;
  }
  const double count = static_cast<double>(texts.size());
  const double error = kTwoSided95 * std::sqrt(squares * count / (count - 1)) / tokens;
  std::cout << json::serialize(
                   json::object{{"bench", "perplexity"},
                                {"model", options.model.substr(options.model.rfind('/') + 1)},
                                {"format", std::string(WeightFormatName(formats.weights))},
                                {"kv_format", std::string(KvFormatName(formats.kv))},
                                {"join", options.join},
                                {"tokens", static_cast<int64_t>(tokens)},
                                {"texts", static_cast<int64_t>(texts.size())},
                                {"perplexity_fp32", std::exp(-sum_fp32 / tokens)},
                                {"perplexity", std::exp(-sum / tokens)},
                                {"change_percent", 100 * std::expm1(mean)},
                                {"change_low_percent", 100 * std::expm1(mean - error)},
                                {"change_high_percent", 100 * std::expm1(mean + error)}})
            << std::endl;
}

absl::Status Run(int argc, char** argv) {
  Options options;
  Settings settings("perplexity_bench",
                    "Perplexity of small weights against fp32 of the same weights");
  settings.Add("model", &options.model, "model file or folder");
  settings.Add("texts", &options.texts,
               "JSON lines with prompt and canonical_solution, as HumanEval has");
  settings.Add("tokens", &options.tokens, 16, 1 << 24, "least number of predicted tokens");
  settings.AddChoice("format", &options.format, {kAllFormats, "int8", "int4", "fp32"},
                     "weight format; all: int8 and int4");
  settings.AddChoice(
      "kv_format", &options.kv_format, {"fp32", "int8"},
      "fp32: weights are compared with fp32 ones; int8: KV is compared with fp32 KV");
  settings.Add("join", &options.join, 1, 64, "problems of one text, for longer contexts");
  settings.Add("threads", &options.threads, 1, 256, "compute threads");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  TR_ASSIGN_OR_RETURN(const std::vector<Ids> texts, ReadTexts(options));
  TR_ASSIGN_OR_RETURN(const KvFormat kv, ParseKvFormat(options.kv_format));
  std::vector<double> fp32;
  for (const WeightFormat weights :
       {WeightFormat::kInt8, WeightFormat::kInt4, WeightFormat::kFp32}) {
    const bool asked = options.format == kAllFormats ? weights != WeightFormat::kFp32
                                                     : options.format == WeightFormatName(weights);
    if (!asked) continue;
    const Formats formats{weights, kv};
    TR_ASSIGN_OR_RETURN(const std::vector<double> scores, Score(options, formats, texts));
    if (fp32.empty() || kv == KvFormat::kInt8) {
      const WeightFormat weights = kv == KvFormat::kInt8 ? formats.weights : WeightFormat::kFp32;
      TR_ASSIGN_OR_RETURN(fp32, Score(options, {weights, KvFormat::kFp32}, texts));
    }
    Report(options, formats, texts, scores, fp32);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::BenchMain(tokenrouter::Run, argc, argv); }
