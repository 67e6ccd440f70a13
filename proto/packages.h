// Short names of the two protobuf packages: wire:: is what the processes of tokenrouter exchange,
// api:: is what clients see.
#pragma once

namespace tokenrouter {

namespace internal::v1 {}
namespace generation::v1 {}

namespace wire = internal::v1;
namespace api = generation::v1;

}  // namespace tokenrouter
