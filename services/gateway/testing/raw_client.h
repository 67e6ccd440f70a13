// A blocking TCP client for tests of HTTP: sends any bytes, well-formed or not. Every wait ends
// after ten seconds. Threads: one. Errors: a broken connection shows as an empty or short result.
#pragma once

#include <string>

namespace tokenrouter {

class RawClient {
 public:
  // `receive_buffer` bytes in the kernel; 0: its default.
  explicit RawClient(int port, int receive_buffer = 0);
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // False when the peer has closed.
  bool Send(const std::string& bytes);
  // Reads up to and including `mark`, or what arrived before the connection or the time limit
  // ended.
  std::string ReadThrough(const std::string& mark);
  std::string ReadToEnd();
  // One response: head and body by Content-Length or chunks.
  std::string ReadResponse();
  void Close();

 private:
  bool Receive();
  std::string Take(size_t bytes);

  int socket_ = -1;
  std::string received_;
};

// A POST with JSON and Content-Length.
std::string PostRequest(const std::string& path, const std::string& body,
                        const std::string& headers = "");
// The part after the head.
std::string BodyOf(const std::string& response);
// Joins the chunks of a body with chunked coding.
std::string Unchunk(const std::string& body);

}  // namespace tokenrouter
