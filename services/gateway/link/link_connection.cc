#include "services/gateway/link/link_connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/timing/redial_wait.h"
#include "libs/tokens/protocol_version.h"

namespace tokenrouter {

bool LinkConnection::TakeDial(absl::Time now) {
  if (state_ != State::kDown || now < dial_at_) return false;
  state_ = State::kDialling;
  return true;
}

void LinkConnection::OnConnected() {
  if (state_ != State::kDialling) return;
  state_ = State::kGreeting;
  hello_due_ = true;
}

bool LinkConnection::OnDisconnected(absl::Time now, std::string why) {
  if (state_ == State::kDown) return false;
  if (!refused_) last_trouble_ = std::move(why);
  refused_ = false;
  dial_at_ = now + RedialWait(options_.gateway_id, failures_++);
  state_ = State::kDown;
  term_ = 0;
  hello_due_ = hang_up_ = false;
  // Nothing is known about the pair until the next Welcome.
  pair_status_.set_small_workers(0);
  pair_status_.set_large_workers(0);
  return true;
}

bool LinkConnection::Hears(const wire::SchedulerFrame& frame) {
  if (state_ == State::kGreeting && frame.has_welcome()) OnWelcome(frame);
  if (state_ != State::kUp || frame.term() != term_) return false;
  if (frame.has_pair()) pair_status_ = frame.pair();
  return true;
}

void LinkConnection::OnWelcome(const wire::SchedulerFrame& frame) {
  const wire::Welcome& welcome = frame.welcome();
  if (frame.term() < highest_term_ || welcome.protocol_version() != kProtocolVersion) {
    last_trouble_ = absl::StrCat("refused the scheduler of term ", frame.term(), ", protocol ",
                                 welcome.protocol_version(), "; wanted a term of at least ",
                                 highest_term_, ", protocol ", kProtocolVersion);
    hang_up_ = refused_ = true;
    return;
  }
  state_ = State::kUp;
  term_ = highest_term_ = frame.term();
  failures_ = 0;
  last_trouble_.clear();
  pair_status_ = welcome.pair();
}

bool LinkConnection::TakeHangUp() { return std::exchange(hang_up_, false); }

std::optional<wire::GatewayHello> LinkConnection::TakeHello() {
  if (state_ != State::kGreeting || !std::exchange(hello_due_, false)) return std::nullopt;
  wire::GatewayHello hello;
  hello.set_gateway_id(options_.gateway_id);
  hello.set_protocol_version(kProtocolVersion);
  hello.set_highest_term(highest_term_);
  hello.set_tokenizer_fingerprint(options_.tokenizer_fingerprint);
  hello.set_pair(options_.pair);
  return hello;
}

absl::Time LinkConnection::dial_at() const {
  return state_ == State::kDown ? dial_at_ : absl::InfiniteFuture();
}

std::string LinkConnection::WhyDown() const {
  if (!last_trouble_.empty()) return last_trouble_;
  return absl::StrCat("the scheduler at ", options_.scheduler,
                      " (--scheduler) has not answered yet");
}

}  // namespace tokenrouter
