// Our CPU engine beside llama.cpp, in one run. JSON rows, by part:
//   decode     decode and prefill, same bits against same bits, engines alternating in each cell
//   extend     passes of 8..64 new ids per row, and the best GEMM rate found on this machine
//   bandwidth  read bandwidth of the machine
//   prefix     what the prefix cache saves on real processes (no peer)
//   delay      the effect of a long prompt on decoding rows, on real processes (no peer)
//   engine_bench --small=A.gguf --large=B.gguf --peer=none|PROGRAM [--part=decode,extend]
//       [--models=small,large] [--formats=int8,int4] [--rows=1,8] [--contexts=64] [--rounds=3]
// PROGRAM is llama_cpp_peer, which `./tokenrouter bench engine` builds. It needs a quiet machine:
// others_cpu_share of each row is the share that other processes used.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libs/config/settings.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/model/weight_format.h"
#include "tests/bench/engine/delay_part.h"
#include "tests/bench/engine/engine_bandwidth.h"
#include "tests/bench/engine/engine_decode_part.h"
#include "tests/bench/engine/engine_extend_part.h"
#include "tests/bench/engine/engine_llama.h"
#include "tests/bench/engine/engine_options.h"
#include "tests/bench/engine/prefix_part.h"
#include "tests/bench/measure/bench_parts.h"

namespace tokenrouter {
namespace {

constexpr int kMostRows = 64;
constexpr int kMostContext = 32768;

const BenchParts<EngineBenchOptions>& Parts() {
  static const auto* const parts =
      new BenchParts<EngineBenchOptions>{{"decode", RunDecodePart},
                                         {"extend", RunExtendPart},
                                         {"bandwidth", RunBandwidthPart},
                                         {"prefix", RunPrefixPart},
                                         {"delay", RunDelayPart}};
  return *parts;
}

// As flags have them.
struct Typed {
  std::string part = "decode", small, large, models = "small,large", formats = "int8,int4";
  std::string peer = "none";
};

absl::Status ReadTyped(const Typed& typed, EngineBenchOptions* options) {
  options->small = typed.small;
  options->large = typed.large;
  for (const auto name : absl::StrSplit(typed.models, ',')) {
    if (name != "small" && name != "large") {
      return absl::InvalidArgumentError(
          absl::StrCat("--models=", typed.models, ": a list of small, large"));
    }
    const std::string& path = name == "small" ? typed.small : typed.large;
    if (path.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, ": the model file is missing"));
    }
    options->models.push_back(path);
  }
  if (typed.peer != "none") options->peer = typed.peer;
  for (const auto item : absl::StrSplit(typed.formats, ',')) {
    const std::string format(item);
    TR_RETURN_IF_ERROR(ParseWeightFormat(format).status());
    if (!options->peer.empty()) TR_RETURN_IF_ERROR(PeerFormatOf(format).status());
    options->formats.push_back(format);
  }
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  Typed typed;
  EngineBenchOptions options;
  Settings settings("engine_bench", "Our CPU engine beside llama.cpp");
  settings.Add("part", &typed.part, "list of " + PartNames(Parts()));
  settings.Add("small", &typed.small, "GGUF file of the small model");
  settings.Add("large", &typed.large, "GGUF file of the large model");
  settings.Add("models", &typed.models, "list of small, large");
  settings.Add("formats", &typed.formats,
               "list of our weight formats, each beside its peer's; prefix takes the first");
  settings.AddChoice("kv_format", &options.kv_format, {"fp32", "int8"}, "of our engine");
  settings.Add("rows", &options.rows, 1, kMostRows,
               "list of numbers of sequences; extend takes those up to 16");
  settings.Add("contexts", &options.contexts, 1, kMostContext,
               "list of tokens of each sequence before the step");
  settings.Add("peer", &typed.peer, "the program llama_cpp_peer, or none");
  settings.Add("rounds", &options.rounds, 1, 100, "of each cell, the engines alternating");
  settings.Add("steps", &options.steps, 1, 1024, "decode: steps of a round");
  settings.Add("prompt", &options.prompt, 1, 1024, "decode: ids of the measured prefill");
  settings.Add("threads", &options.threads, 1, 256, "of each engine");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  TR_RETURN_IF_ERROR(ReadTyped(typed, &options));
  return RunParts(Parts(), typed.part, options);
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // A peer that ended must not end this process.
  return tokenrouter::BenchMain(tokenrouter::Run, argc, argv);
}
