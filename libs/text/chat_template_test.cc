#include "libs/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kHello = R"([{"role":"user","content":"Hello"}])";

absl::StatusOr<std::string> Render(std::string_view source, ChatInput input) {
  if (input.messages_json.empty()) input.messages_json = kHello;
  auto compiled = ChatTemplate::Create(source, "", "<s>", "</s>");
  if (!compiled.ok()) return compiled.status();
  return (*compiled)->Render(input);
}

MATCHER_P(Gives, text, "") {
  if (!arg.ok()) *result_listener << arg.status().ToString();
  return arg.ok() && *arg == text;
}

TEST(ChatTemplateTest, KnowsTheVariablesOfHuggingFace) {
  EXPECT_THAT(Render("{{ bos_token }}{{ messages[0]['content'] }}{{ eos_token }}"
                     "{% if add_generation_prompt %}>{% endif %}"
                     "{% if tools is none %} no tools{% endif %}",
                     {}),
              Gives("<s>Hello</s>> no tools"));
  EXPECT_THAT(
      Render("{{ enable_thinking }} {{ add_generation_prompt }}",
             {.variables_json = R"({"enable_thinking": false})", .add_generation_prompt = false}),
      Gives("False False"));
}

TEST(ChatTemplateTest, TrimsBlocksAsHuggingFaceDoes) {
  EXPECT_THAT(Render("{% for m in messages %}\n  {% if true %}\n{{ m.role }}\n  {% endif %}\n"
                     "{% endfor %}\n",
                     {}),
              Gives("user\n"));
}

TEST(ChatTemplateTest, RunsPythonMethods) {
  EXPECT_THAT(Render("{{ messages[0].content.upper().strip() }} {{ 'a,b'.split(',')[1] }}"
                     "{% for k, v in messages[0].items() %} {{ k }}={{ v }}{% endfor %}"
                     " {{ messages[0].get('name', 'nobody') }}"
                     "{{ ' yes' if 'Hello there'.startswith('Hello') }}",
                     {}),
              Gives("HELLO b role=user content=Hello nobody yes"));
}

TEST(ChatTemplateTest, KeepsStateInANamespace) {
  EXPECT_THAT(Render("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
                     "{% if m.role == 'x' %}{% break %}{% endif %}{% endfor %}{{ ns.n }}",
                     {}),
              Gives("1"));
}

TEST(ChatTemplateTest, PassesOverTheTagsThatMarkAnswersForTraining) {
  EXPECT_THAT(Render("a {%- generation -%} {{ '{%' }}b {%- endgeneration %} c", {}),
              Gives("a{%b c"));
}

TEST(ChatTemplateTest, WritesJsonAsPythonDoes) {
  const std::string_view tools =
      R"([{"z":1,"a":[true,null,1.0,1e-5,1e16,12345.678],"s":"<é'\"\n>"},{}])";
  EXPECT_THAT(Render("{{ tools | tojson }}", {.tools_json = tools}),
              Gives(R"([{"z": 1, "a": [true, null, 1.0, 1e-05, 1e+16, 12345.678], )"
                    R"("s": "<é'\"\n>"}, {}])"));
  EXPECT_THAT(Render("{{ tools | tojson(indent=2) }}", {.tools_json = R"([{"a":[]},1])"}),
              Gives("[\n  {\n    \"a\": []\n  },\n  1\n]"));
  EXPECT_THAT(Render("{{ tools | tojson(sort_keys=true, ensure_ascii=true) }}",
                     {.tools_json = R"({"b":"é🙂","a":0})"}),
              Gives(R"({"a": 0, "b": "\u00e9\ud83d\ude42"})"));
}

TEST(ChatTemplateTest, WritesTheDateItIsGiven) {
  const absl::Time now = absl::FromUnixSeconds(1722470400);
  EXPECT_THAT(Render("{{ strftime_now('%d %b %Y %H:%M') }}", {.now = now}),
              Gives("01 Aug 2024 00:00"));
}

TEST(ChatTemplateTest, AnErrorCarriesTheTemplatesMessage) {
  EXPECT_THAT(Render("\n{{ raise_exception('roles must alternate') }}", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "chat template: roles must alternate (line 2 of the template)"));
  EXPECT_THAT(Render("{{ messages[3].content.strip() }}", {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ChatTemplateTest, ATemplateThatDoesNotCompileFailsAtLoad) {
  EXPECT_THAT(ChatTemplate::Create("{% if %}", "", "", "").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not compile")));
  EXPECT_THAT(ChatTemplate::Create("ok", "{% endfor %}", "", "").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 1")));
}

TEST(ChatTemplateTest, RefusesInputThatIsNotJson) {
  EXPECT_THAT(Render("x", {.messages_json = "[{"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("messages")));
  EXPECT_THAT(Render("x", {.variables_json = "[]"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a JSON object")));
}

TEST(ChatTemplateTest, StopsATemplateThatRunsTooLong) {
  EXPECT_THAT(Render("{% for i in range(9999) %}{% for j in range(9999) %}{{ i * j }}{% endfor %}"
                     "{% endfor %}",
                     {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("instructions")));
  EXPECT_THAT(Render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ChatTemplateTest, UsesTheToolTemplateOnlyWithTools) {
  TR_ASSERT_OK_AND_ASSIGN(const auto both, ChatTemplate::Create("plain", "tools", "", ""));
  EXPECT_THAT(both->Render({.messages_json = kHello}), Gives("plain"));
  EXPECT_THAT(both->Render({.messages_json = kHello, .tools_json = "null"}), Gives("plain"));
  EXPECT_THAT(both->Render({.messages_json = kHello, .tools_json = "[{}]"}), Gives("tools"));
}

}  // namespace
}  // namespace tokenrouter
