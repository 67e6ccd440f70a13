#include "libs/telemetry/metrics.h"

#include <prometheus/text_serializer.h>

namespace tokenrouter {

prometheus::Counter& AddCounter(prometheus::Registry* registry, const std::string& name,
                                const std::string& help, const MetricLabels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry).Add(labels);
}

prometheus::Gauge& AddGauge(prometheus::Registry* registry, const std::string& name,
                            const std::string& help, const MetricLabels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry).Add(labels);
}

prometheus::Histogram& AddHistogram(prometheus::Registry* registry, const std::string& name,
                                    const std::string& help,
                                    const prometheus::Histogram::BucketBoundaries& bounds,
                                    const MetricLabels& labels) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry).Add(labels, bounds);
}

const prometheus::Histogram::BucketBoundaries& LatencyBuckets() {
  static const prometheus::Histogram::BucketBoundaries bounds = {
      0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1,
      0.15,  0.25,  0.5,   0.75,  1,      1.5,  2.5,   5,    10,   20,   40,    60};
  return bounds;
}

const prometheus::Histogram::BucketBoundaries& SizeBuckets() {
  static const prometheus::Histogram::BucketBoundaries bounds = {
      1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
  return bounds;
}

std::string ExposeText(const prometheus::Registry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

}  // namespace tokenrouter
