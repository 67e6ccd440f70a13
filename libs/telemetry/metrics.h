// Thin wrappers of prometheus-cpp: the registry is passed in, families are built in constructors,
// names end in their unit or in _total. References stay valid as long as the registry. Threads:
// prometheus-cpp's types are thread-safe.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

namespace tokenrouter {

using MetricLabels = prometheus::Labels;

prometheus::Counter& AddCounter(prometheus::Registry* registry, const std::string& name,
                                const std::string& help, const MetricLabels& labels = {});
prometheus::Gauge& AddGauge(prometheus::Registry* registry, const std::string& name,
                            const std::string& help, const MetricLabels& labels = {});
prometheus::Histogram& AddHistogram(prometheus::Registry* registry, const std::string& name,
                                    const std::string& help,
                                    const prometheus::Histogram::BucketBoundaries& bounds,
                                    const MetricLabels& labels = {});

// Seconds: 1 ms to 60 s, fine enough for steps of a few milliseconds.
const prometheus::Histogram::BucketBoundaries& LatencyBuckets();
// Counts: 1 to 8192 by powers of two.
const prometheus::Histogram::BucketBoundaries& SizeBuckets();

// The exposition text of everything in the registry.
std::string ExposeText(const prometheus::Registry& registry);

}  // namespace tokenrouter
