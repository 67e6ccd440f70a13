// Any frames, from any peer, in any order, to the scheduler's core: it may close the peer and
// count, never crash.
#include <string>

#include "services/scheduler/testing/scripted_scheduler.h"
#include "tests/fuzz/frame_script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tokenrouter::ScriptedScheduler;
  ScriptedScheduler script({}, /*reattach_grace=*/absl::Seconds(1));
  script.AttachAll();
  script.Submit(1, "always");
  script.Submit(2, "never");
  tokenrouter::ForEachRecord(data, size, [&script](uint8_t kind, std::string_view bytes) {
    const std::string text(bytes);
    tokenrouter::wire::WorkerFrame from_worker;
    tokenrouter::wire::GatewayFrame from_gateway;
    switch (kind % 8) {
      case 0:
      case 1:
        if (!from_worker.ParseFromString(text)) return;
        script.ToCore(kind % 8 == 0 ? ScriptedScheduler::kSmall : ScriptedScheduler::kLarge,
                      from_worker);
        break;
      case 2:
        if (from_gateway.ParseFromString(text))
          script.ToCore(ScriptedScheduler::kGateway, from_gateway);
        break;
      case 3:  // A peer that is not known yet.
        if (from_worker.ParseFromString(text)) script.ToCoreAsIs(30, from_worker);
        break;
      case 4:
        script.WorkerGone(ScriptedScheduler::kSmall);
        script.Attach(tokenrouter::Role::kSmall, ScriptedScheduler::kSmall);
        break;
      case 5:
        script.WorkerGone(ScriptedScheduler::kLarge);
        script.Attach(tokenrouter::Role::kLarge, ScriptedScheduler::kLarge);
        break;
      default:
        script.Tick(absl::Milliseconds(10 * (1 + bytes.size())));
    }
    script.ForgetFrames();
  });
  return 0;
}
