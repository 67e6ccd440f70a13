#include "libs/rpc/server_runtime.h"

#include <google/protobuf/descriptor.h>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

// Reflection describes what this pool holds. Nothing here may name the health service's messages:
// that alone would link their descriptor in.
TEST(ServerRuntimeTest, LinksTheDescriptorOfTheHealthServiceIn) {
  ASSERT_THAT(ServerRuntime::Start({.address = "127.0.0.1:0"}), IsOk());
  EXPECT_NE(google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
                "grpc.health.v1.Health"),
            nullptr);
}

}  // namespace
}  // namespace tokenrouter
