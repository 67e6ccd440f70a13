// The metrics of the real processes, as a person who scrapes them reads of them in the documents.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "libs/status/status_matchers.h"
#include "tests/process/timed_cluster.h"
#include "tests/support/chat.h"
#include "tests/support/http_client.h"

namespace tokenrouter {
namespace {

// Full names, also where labels follow: not the `..._suffix` that a sentence continues with.
std::set<std::string> DocumentedMetrics() {
  static const std::regex kName("tokenrouter_(gateway|scheduler|worker)_[a-z0-9_]*[a-z0-9]");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TOKENROUTER_DOCS)) {
    if (entry.path().extension() != ".md") continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (std::sregex_iterator match(text.begin(), text.end(), kName), end; match != end; ++match) {
      names.insert(match->str());
    }
  }
  return names;
}

TEST(MetricsProcessTest, EveryDocumentedMetricIsInAScrape) {
  TR_ASSERT_OK_AND_ASSIGN(const auto cluster,
                          StartTimedCluster(::testing::TempDir() + "metrics_process"));
  EXPECT_THAT(Chat(cluster->gateway().port, {}), IsOk());
  std::string scrapes;
  for (const Member* member :
       {&cluster->gateway(), &cluster->scheduler(), &cluster->small(0), &cluster->large(0)}) {
    TR_ASSERT_OK_AND_ASSIGN(const HttpResponse page,
                            HttpFetch(member->admin_port, "GET", "/metrics"));
    scrapes += page.body;
  }
  const std::set<std::string> names = DocumentedMetrics();
  EXPECT_GE(names.size(), 20u);
  for (const std::string& name : names) {
    EXPECT_NE(scrapes.find("# TYPE " + name + " "), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tokenrouter
