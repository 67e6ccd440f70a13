#include "tests/support/cluster.h"

#include <filesystem>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "libs/status/status_macros.h"
#include "tests/support/http_client.h"

namespace tokenrouter {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(60);
constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

std::string Binary(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

absl::StatusOr<int> PortOf(Process* process, const std::string& name) {
  const auto line = process->WaitForEvent("listening", kStartTimeout, "name", name);
  if (line.has_value()) return static_cast<int>(line->at("port").as_int64());
  return absl::UnavailableError(
      absl::StrCat("no port '", name, "' was announced:\n", process->Output()));
}

absl::StatusOr<Member> StartMember(std::vector<std::string> argv,
                                   const std::vector<std::string>& more,
                                   const std::string& port_name) {
  argv.insert(argv.end(), more.begin(), more.end());
  argv.push_back("--admin=127.0.0.1:0");
  Member member;
  TR_ASSIGN_OR_RETURN(member.process, Process::Start(argv));
  TR_ASSIGN_OR_RETURN(member.admin_port, PortOf(member.process.get(), "admin"));
  if (!port_name.empty()) {
    TR_ASSIGN_OR_RETURN(member.port, PortOf(member.process.get(), port_name));
  }
  return member;
}

// Whether a line of a scrape is a series that matches a selector of Cluster::Metric.
bool Selects(absl::string_view selector, absl::string_view line) {
  if (absl::StartsWith(line, "#")) return false;
  const auto separators = absl::ByAnyChar("{,} ");
  const std::vector<absl::string_view> wanted =
      absl::StrSplit(selector, separators, absl::SkipEmpty());
  const std::vector<absl::string_view> has = absl::StrSplit(line, separators, absl::SkipEmpty());
  return absl::c_all_of(
      wanted, [&has](absl::string_view part) { return absl::c_linear_search(has, part); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(ClusterOptions options) {
  std::unique_ptr<Cluster> cluster(new Cluster(std::move(options)));
  TR_RETURN_IF_ERROR(cluster->StartScheduler(0));
  for (int i = 0; i < cluster->options_.small_workers; ++i)
    TR_RETURN_IF_ERROR(cluster->AddWorker(false));
  for (int i = 0; i < cluster->options_.large_workers; ++i)
    TR_RETURN_IF_ERROR(cluster->AddWorker(true));
  if (!cluster->options_.start_gateway) return cluster;
  TR_RETURN_IF_ERROR(cluster->StartGateway());
  TR_RETURN_IF_ERROR(cluster->WaitUntilHealthy());
  return cluster;
}

absl::Status Cluster::StartScheduler(int port) {
  TR_ASSIGN_OR_RETURN(scheduler_,
                      StartMember({Binary("scheduler"), absl::StrCat("--listen=127.0.0.1:", port)},
                                  options_.scheduler_flags, "grpc"));
  return absl::OkStatus();
}

absl::Status Cluster::AddWorker(bool large) {
  std::vector<std::string> flags = options_.worker_flags;
  const std::vector<std::string>& own = large ? options_.large_flags : options_.small_flags;
  flags.insert(flags.end(), own.begin(), own.end());
  TR_ASSIGN_OR_RETURN(Member member,
                      StartMember({Binary(large ? "large_worker" : "small_worker"),
                                   absl::StrCat("--scheduler=127.0.0.1:", scheduler_.port)},
                                  flags, ""));
  if (!member.process->WaitForEvent("attached", kStartTimeout)) {
    return absl::UnavailableError(
        absl::StrCat("the worker did not attach:\n", member.process->Output()));
  }
  (large ? large_ : small_).push_back(std::move(member));
  return absl::OkStatus();
}

absl::Status Cluster::StartGateway() {
  TR_ASSIGN_OR_RETURN(gateway_,
                      StartMember({Binary("gateway"), "--http=127.0.0.1:0", "--grpc=127.0.0.1:0",
                                   absl::StrCat("--scheduler=127.0.0.1:", scheduler_.port),
                                   absl::StrCat("--tokenizer=", options_.tokenizer)},
                                  options_.gateway_flags, "http"));
  TR_ASSIGN_OR_RETURN(gateway_.grpc_port, PortOf(gateway_.process.get(), "grpc"));
  return absl::OkStatus();
}

absl::Status Cluster::RestartScheduler() {
  const int port = scheduler_.port;
  scheduler_.process.reset();
  return StartScheduler(port);
}

absl::Status Cluster::WaitUntilHealthy() {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  absl::StatusOr<HttpResponse> health;
  while (absl::Now() < deadline) {
    health = HttpFetch(gateway_.port, "GET", "/health");
    if (health.ok() && health->code == 200) return absl::OkStatus();
    absl::SleepFor(kPollInterval);
  }
  return absl::UnavailableError(absl::StrCat(
      "the gateway is not healthy: ", health.ok() ? health->body : health.status().ToString(), "\n",
      Logs()));
}

double Cluster::Metric(const Member& member, const std::string& selector) {
  return FindMetric(member, selector).value_or(0);
}

std::optional<double> Cluster::FindMetric(const Member& member, const std::string& selector) {
  const absl::StatusOr<HttpResponse> page = HttpFetch(member.admin_port, "GET", "/metrics");
  if (!page.ok()) return std::nullopt;
  std::optional<double> sum;
  for (const auto line : absl::StrSplit(page->body, '\n')) {
    if (!Selects(selector, line)) continue;
    double value = 0;
    if (absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) sum = sum.value_or(0) + value;
  }
  return sum;
}

bool Cluster::WaitForMetric(const Member& member, const std::string& selector, double value) {
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (FindMetric(member, selector) != value) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(kPollInterval);
  }
  return true;
}

std::string Cluster::Logs() const {
  std::string all;
  const auto add = [&all](const std::string& name, const Member& member) {
    if (member.process != nullptr)
      absl::StrAppend(&all, "--- ", name, "\n", member.process->Output());
  };
  add("scheduler", scheduler_);
  add("gateway", gateway_);
  for (const Member& member : small_) add("small_worker", member);
  for (const Member& member : large_) add("large_worker", member);
  return all;
}

}  // namespace tokenrouter
