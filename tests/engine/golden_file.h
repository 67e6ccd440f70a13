// Golden files: logits and greedy text of an independent numpy decoder
// (tools/golden/make_golden.py), and the comparison of an engine with them.
// Ownership: plain values. Threads: one. Errors: a missing or broken file ends the process.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "libs/inference/engine.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

boost::json::object ReadGolden(const std::string& name);
std::vector<TokenId> GoldenIds(const boost::json::object& golden, const char* field);

// Expects the logits that the file's `field` has at some positions of the prompt, within
// `tolerance` of the largest of a position.
void ExpectGoldenLogits(Engine* engine, const boost::json::object& golden, double tolerance,
                        const char* field = "logits");
// Expects the file's greedy text.
void ExpectGoldenText(Engine* engine, const boost::json::object& golden);

}  // namespace tokenrouter
