// The four real binaries on free ports of this machine, as a test needs them.
// Ownership: owns the processes; the destructor kills them.
// Threads: one test thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/process.h"

namespace tokenrouter {

struct ClusterOptions {
  int small_workers = 1;
  int large_workers = 1;
  std::string tokenizer = {};                  // A tokenizer folder or GGUF file for the gateway.
  std::vector<std::string> worker_flags = {};  // Both roles.
  std::vector<std::string> small_flags = {};
  std::vector<std::string> large_flags = {};
  std::vector<std::string> scheduler_flags = {};
  std::vector<std::string> gateway_flags = {};
  bool start_gateway = true;  // Benches drive the scheduler's stream themselves.
};

// A started process and the ports it listens on.
struct Member {
  std::unique_ptr<Process> process;
  int port = 0;       // gRPC of the scheduler, HTTP of the gateway, 0 of a worker.
  int grpc_port = 0;  // Of the gateway.
  int admin_port = 0;
};

class Cluster {
 public:
  // Returns once the gateway, if any, answers /health with 200.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(ClusterOptions options);

  Member& scheduler() { return scheduler_; }
  Member& gateway() { return gateway_; }
  Member& small(int index) { return small_[index]; }
  Member& large(int index) { return large_[index]; }

  // Kills the scheduler (SIGKILL) and starts a new one on the same port.
  absl::Status RestartScheduler();
  absl::Status AddWorker(bool large);
  absl::Status WaitUntilHealthy();

  // The sum of all series of a metric that have at least the labels of `selector`, which is a name
  // (of a histogram with _sum or the like) or name{label="value",...}; 0 when there is none.
  static double Metric(const Member& member, const std::string& selector);
  // The same; nullopt when there is none or the process does not answer.
  static std::optional<double> FindMetric(const Member& member, const std::string& selector);
  // Waits until the metric is there and equals value, at most ten seconds.
  static bool WaitForMetric(const Member& member, const std::string& selector, double value);

  // stderr of everything, for failure messages.
  std::string Logs() const;

 private:
  explicit Cluster(ClusterOptions options) : options_(std::move(options)) {}
  absl::Status StartScheduler(int port);
  absl::Status StartGateway();

  const ClusterOptions options_;
  Member scheduler_;
  Member gateway_;
  std::vector<Member> small_;
  std::vector<Member> large_;
};

}  // namespace tokenrouter
