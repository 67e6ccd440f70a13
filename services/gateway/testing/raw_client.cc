#include "services/gateway/testing/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

constexpr char kHeadEnd[] = "\r\n\r\n";

}  // namespace

RawClient::RawClient(int port, int receive_buffer) {
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  TR_CHECK(socket_ >= 0);
  if (receive_buffer > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  }
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int result = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  TR_CHECK(result == 0) << "cannot connect to port " << port;
}

bool RawClient::Send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

bool RawClient::Receive() {
  char buffer[16384];
  const ssize_t n = ::recv(socket_, buffer, sizeof(buffer), 0);
  if (n <= 0) return false;
  received_.append(buffer, static_cast<size_t>(n));
  return true;
}

std::string RawClient::Take(size_t bytes) {
  std::string taken = received_.substr(0, bytes);
  received_.erase(0, bytes);
  return taken;
}

std::string RawClient::ReadThrough(const std::string& mark) {
  while (true) {
    const size_t at = received_.find(mark);
    if (at != std::string::npos) return Take(at + mark.size());
    if (!Receive()) return Take(received_.size());
  }
}

std::string RawClient::ReadToEnd() {
  while (Receive()) {
  }
  return Take(received_.size());
}

std::string RawClient::ReadResponse() {
  std::string head = ReadThrough(kHeadEnd);
  if (absl::StrContains(head, "chunked")) return head + ReadThrough("\r\n0\r\n\r\n");
  const size_t at = head.find("Content-Length: ");
  size_t length = 0;
  if (at == std::string::npos ||
      !absl::SimpleAtoi(head.substr(at + 16, head.find("\r\n", at) - at - 16), &length)) {
    return head;
  }
  while (received_.size() < length && Receive()) {
  }
  return head + Take(length);
}

void RawClient::Close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

std::string PostRequest(const std::string& path, const std::string& body,
                        const std::string& headers) {
  return absl::StrCat("POST ", path,
                      " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n", headers,
                      "Content-Length: ", body.size(), kHeadEnd, body);
}

std::string BodyOf(const std::string& response) {
  const size_t at = response.find(kHeadEnd);
  return at == std::string::npos ? "" : response.substr(at + 4);
}

std::string Unchunk(const std::string& body) {
  std::string joined;
  size_t at = 0;
  while (at < body.size()) {
    const size_t line = body.find("\r\n", at);
    if (line == std::string::npos) break;
    const size_t size = std::stoul(body.substr(at, line - at), nullptr, 16);
    if (size == 0) break;
    joined += body.substr(line + 2, size);
    at = line + 2 + size + 2;
  }
  return joined;
}

}  // namespace tokenrouter
