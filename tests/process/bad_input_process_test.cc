// Bad input through the real gateway gets a clear 4xx in OpenAI's form, and the server continues.
#include <boost/json/parse.hpp>

#include "libs/status/status_matchers.h"
#include "tests/process/timed_cluster.h"
#include "tests/support/chat.h"
#include "tests/support/http_client.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

struct BadInput {
  const char* name;
  std::string body;
  int code;
  const char* mentions;
};

std::string Message(const std::string& fields) {
  return R"({"model":"tokenrouter","messages":[{"role":"user","content":"hi"}])" + fields + "}";
}

std::vector<BadInput> BadInputs() {
  return {
      {"not JSON", "{\"model\": ", 400, "JSON"},
      {"not an object", "[1,2]", 400, "object"},
      {"unknown model", R"({"model":"gpt-9","messages":[{"role":"user","content":"hi"}]})", 404,
       "gpt-9"},
      {"no messages", R"({"model":"tokenrouter"})", 400, "messages"},
      {"empty messages", R"({"model":"tokenrouter","messages":[]})", 400, "messages"},
      {"unknown role", R"({"model":"tokenrouter","messages":[{"role":"wizard","content":"hi"}]})",
       400, "wizard"},
      {"negative max_tokens", Message(R"(,"max_tokens":-1)"), 400, "max_tokens"},
      {"text temperature", Message(R"(,"temperature":"hot")"), 400, "temperature"},
      {"temperature beyond range", Message(R"(,"temperature":9)"), 400, "temperature"},
      {"fractional max_tokens", Message(R"(,"max_tokens":1.5)"), 400, "max_tokens"},
      {"too many choices", Message(R"(,"n":17)"), 400, "n is 17; allowed: [1, 16]"},
      {"unknown algorithm", Message(R"(,"routing":{"algorithm":"oracle"})"), 400, "oracle"},
      {"parameter out of range", Message(R"(,"routing":{"algorithm":"random","p":1.5})"), 400, "p"},
      {"unknown parameter", Message(R"(,"routing":{"algorithm":"random","q":0.5})"), 400, "q"},
      {"too long",
       R"({"model":"tokenrouter","messages":[{"role":"user","content":")" +
           std::string(200000, 'a') + R"("}]})",
       400, "context"},
      {"stream_options without stream", Message(R"(,"stream_options":{"include_usage":true})"), 400,
       "stream_options"},
  };
}

TEST(BadInputProcessTest, IsAClearErrorAndHarmsNothing) {
  TR_ASSERT_OK_AND_ASSIGN(const auto cluster,
                          StartTimedCluster(::testing::TempDir() + "bad_input_process"));
  const int port = cluster->gateway().port;
  for (const BadInput& input : BadInputs()) {
    SCOPED_TRACE(input.name);
    TR_ASSERT_OK_AND_ASSIGN(const HttpResponse response,
                            HttpFetch(port, "POST", "/v1/chat/completions", input.body));
    EXPECT_EQ(response.code, input.code) << response.body;
    boost::system::error_code error;
    const boost::json::value body = boost::json::parse(response.body, error);
    ASSERT_FALSE(error) << response.body;
    const boost::json::object& detail = body.at("error").as_object();
    EXPECT_THAT(std::string(detail.at("message").as_string()), HasSubstr(input.mentions));
    EXPECT_TRUE(detail.contains("type") && detail.contains("param") && detail.contains("code"));
  }
  TR_ASSERT_OK_AND_ASSIGN(const HttpResponse huge, HttpFetch(port, "POST", "/v1/chat/completions",
                                                             std::string(100 << 20, 'x')));
  EXPECT_EQ(huge.code, 413);
  TR_ASSERT_OK_AND_ASSIGN(const HttpResponse unknown, HttpFetch(port, "GET", "/v1/nothing"));
  EXPECT_EQ(unknown.code, 404);
  EXPECT_THAT(Chat(port, {}), IsOk()) << "the server must be unharmed";
}

}  // namespace
}  // namespace tokenrouter
