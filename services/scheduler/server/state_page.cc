#include "services/scheduler/server/state_page.h"

#include <google/protobuf/util/json_util.h>

#include <future>
#include <memory>
#include <utility>

#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<std::string> StatePage(OwnerLoop* loop,
                                      std::function<void(wire::GetStateReply*)> fill) {
  // Probes wait behind this call: for a loop that is known to be stuck it does not wait again.
  TR_RETURN_IF_ERROR(loop->Alive(kStatePageWait));
  // The answer may come after the caller has given up.
  auto promise = std::make_shared<std::promise<wire::GetStateReply>>();
  std::future<wire::GetStateReply> answer = promise->get_future();
  const bool posted = loop->Post([promise, fill = std::move(fill)] {
    wire::GetStateReply reply;
    fill(&reply);
    promise->set_value(std::move(reply));
  });
  if (!posted) return absl::UnavailableError("the scheduler's mailbox is full");
  if (answer.wait_for(absl::ToChronoMilliseconds(kStatePageWait)) != std::future_status::ready) {
    return absl::UnavailableError("the scheduler's loop has not answered for 1 s");
  }
  google::protobuf::util::JsonPrintOptions print;
  print.add_whitespace = true;
  print.always_print_primitive_fields = true;
  print.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(answer.get(), &text, print);
  if (!status.ok()) return absl::InternalError(std::string(status.message()));
  return text;
}

}  // namespace tokenrouter
