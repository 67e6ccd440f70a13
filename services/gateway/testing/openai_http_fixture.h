// The fixture of the tests of the HTTP routes: the handler on a scripted scheduler and a byte-level
// model, and the way in which a connection takes the steps of a call. Threads: one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libs/timing/simulated_clock.h"
#include "services/gateway/openai/openai_http.h"
#include "services/gateway/testing/fake_scheduler_port.h"
#include "services/gateway/testing/fake_text_model.h"

namespace tokenrouter {

class OpenAiHttpFixture : public ::testing::Test {
 protected:
  explicit OpenAiHttpFixture(int max_requests = 2) : max_requests_(max_requests) {}

  std::unique_ptr<HttpCall> Start(const std::string& method, const std::string& path,
                                  const std::string& body = "", HttpHeaders headers = {}) {
    return http_.Start({method, path, std::move(headers), body}, [this] { ++wakes_; });
  }
  std::unique_ptr<HttpCall> Chat(const std::string& fields = "") {
    return Start(
        "POST", "/v1/chat/completions",
        absl::StrCat(R"({"model":"tokenrouter","messages":[{"role":"user","content":"hi"}])",
                     fields, "}"));
  }
  // Next step with bytes, as the connection would take it.
  static HttpStep Take(HttpCall* call) {
    HttpStep step = call->Next();
    if (step.kind == HttpStep::Kind::kStreamHead || step.kind == HttpStep::Kind::kStreamData)
      call->OnWritten();
    return step;
  }
  static std::string Header(const HttpStep& step, const std::string& name) {
    return std::string(HttpRequest{"", "", step.headers, ""}.Header(name));
  }
  static std::vector<std::string> Data(const std::string& events) {
    std::vector<std::string> data;
    for (const absl::string_view event : absl::StrSplit(events, "\n\n", absl::SkipEmpty())) {
      EXPECT_EQ(event.substr(0, 6), "data: ");
      data.emplace_back(event.substr(6));
    }
    return data;
  }

  const int max_requests_;
  prometheus::Registry registry_;
  GatewayMetrics metrics_{&registry_};
  FakeTextModel model_;
  FakeSchedulerPort port_;
  SimulatedClock clock_;
  RequestIntake intake_{IntakeOptions{}, &model_, [] { return uint64_t{1}; }};
  OpenAiHttp http_{
      {.max_requests = max_requests_}, &intake_, {&port_, &model_, &metrics_, &clock_}};
  int wakes_ = 0;
};

}  // namespace tokenrouter
