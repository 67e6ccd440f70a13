// llama.cpp as engine_bench drives it: one process that runs one model and times its commands.
//   llama_cpp_peer quantize IN OUT FTYPE    writes OUT, the weights of IN in llama.cpp's type FTYPE
//   llama_cpp_peer serve MODEL THREADS SEQUENCES TOKENS    holds SEQUENCES of TOKENS each
// serve prints "ready WEIGHT_BYTES KV_BYTES" (read by every step; KV of one token) and then answers
// each line of its input with "ms X" or "error TEXT":
//   prefill IDS               empties the KV, then one prompt of IDS ids, logits of the last
//   fill ROWS CONTEXT         ROWS sequences with CONTEXT tokens each; not timed
//   decode ROWS CONTEXT STEPS STEPS steps of one id per row after one that is not timed, each with
//                             the greedy choice of every row; the KV is then as before
//   extend ROWS CONTEXT IDS   one step of IDS ids per row, logits of each row's last
// Settings are llama.cpp's defaults; every sequence has separate KV memory (as its server has
// with more than one slot and no unified cache), which is the faster way for unrelated rows.
#include <ggml.h>
#include <gguf.h>
#include <llama.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kFirstId = 1000;  // Ordinary text ids of every model.
constexpr int kIdRange = 5000;
constexpr int kBatch = 2048;

int IdAt(int row, int at) { return kFirstId + (at * 7919 + row * 104729) % kIdRange; }

// All tensors but an embedding table that is only looked up; 0 when the file cannot be read.
size_t BytesOfStep(const char* path) {
  gguf_context* const file = gguf_init_from_file(path, {.no_alloc = true, .ctx = nullptr});
  if (file == nullptr) return 0;
  const bool has_output = gguf_find_tensor(file, "output.weight") >= 0;
  size_t bytes = 0;
  for (int64_t i = 0; i < gguf_get_n_tensors(file); ++i) {
    const bool table = std::strcmp(gguf_get_tensor_name(file, i), "token_embd.weight") == 0;
    if (!table || !has_output) bytes += gguf_get_tensor_size(file, i);
  }
  gguf_free(file);
  return bytes;
}

class Peer {
 public:
  Peer(llama_model* model, llama_context* context)
      : context_(context),
        vocabulary_(llama_vocab_n_tokens(llama_model_get_vocab(model))),
        batch_(llama_batch_init(kBatch, 0, 1)) {}

  // Milliseconds, or -1 when llama_decode failed.
  double Prefill(int ids) {
    llama_memory_clear(memory(), true);
    const auto start = Now();
    return Read(0, 0, ids, true) ? Since(start) : -1;
  }

  double Fill(int rows, int context) {
    llama_memory_clear(memory(), true);
    const auto start = Now();
    if (!Read(0, 0, context, false)) return -1;
    for (int row = 1; row < rows; ++row) llama_memory_seq_cp(memory(), 0, row, -1, -1);
    return Decode(rows, context, 0) < 0 ? -1 : Since(start);
  }

  double Decode(int rows, int context, int steps) {
    auto start = Now();
    for (int step = 0; step <= steps; ++step) {
      batch_.n_tokens = 0;
      for (int row = 0; row < rows; ++row) Add(row, context + step, true);
      if (!Run(rows)) return -1;
      if (step == 0) start = Now();
    }
    const double ms = Since(start);
    Forget(rows, context);
    return ms;
  }

  double Extend(int rows, int context, int ids) {
    batch_.n_tokens = 0;
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < ids; ++i) Add(row, context + i, i + 1 == ids);
    }
    const auto start = Now();
    if (!Run(rows)) return -1;
    const double ms = Since(start);
    Forget(rows, context);
    return ms;
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  static Time Now() { return std::chrono::steady_clock::now(); }
  static double Since(Time start) {
    return std::chrono::duration<double, std::milli>(Now() - start).count();
  }
  llama_memory_t memory() const { return llama_get_memory(context_); }

  void Add(int row, int position, bool logits) {
    const int i = batch_.n_tokens++;
    batch_.token[i] = IdAt(row, position);
    batch_.pos[i] = position;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = row;
    batch_.logits[i] = logits ? 1 : 0;
  }

  bool Read(int row, int first, int ids, bool logits) {
    for (int at = 0; at < ids; at += kBatch) {
      batch_.n_tokens = 0;
      const int end = std::min(ids, at + kBatch);
      for (int i = at; i < end; ++i) Add(row, first + i, logits && i + 1 == ids);
      if (!Run(logits && end == ids ? 1 : 0)) return false;
    }
    return true;
  }

  // Runs batch_ and takes the greedy choice of the last `choices` logits.
  bool Run(int choices) {
    if (llama_decode(context_, batch_) != 0) return false;
    llama_synchronize(context_);
    for (int i = 0; i < choices; ++i) {
      const float* const logits = llama_get_logits_ith(context_, i - choices);
      if (logits == nullptr) return false;
      chosen_ += std::max_element(logits, logits + vocabulary_) - logits;
    }
    return true;
  }

  void Forget(int rows, int context) {
    for (int row = 0; row < rows; ++row) llama_memory_seq_rm(memory(), row, context, -1);
  }

  llama_context* const context_;
  const int vocabulary_;
  llama_batch batch_;
  volatile int64_t chosen_ = 0;  // Keeps the choices from being left out.
};

double Answer(Peer* peer, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  int a = 0, b = 0, c = 0;
  words >> command >> a >> b >> c;
  if (command == "prefill") return peer->Prefill(a);
  if (command == "fill") return peer->Fill(a, b);
  if (command == "decode") return peer->Decode(a, b, c);
  if (command == "extend") return peer->Extend(a, b, c);
  return -1;
}

int Serve(const char* path, int threads, int sequences, int tokens) {
  llama_model* const model = llama_model_load_from_file(path, llama_model_default_params());
  if (model == nullptr) return EXIT_FAILURE;
  llama_context_params parameters = llama_context_default_params();
  parameters.n_ctx = static_cast<uint32_t>(sequences * tokens);
  parameters.n_batch = kBatch;
  parameters.n_seq_max = static_cast<uint32_t>(sequences);
  parameters.n_threads = parameters.n_threads_batch = threads;
  parameters.kv_unified = false;
  llama_context* const context = llama_init_from_model(model, parameters);
  if (context == nullptr) return EXIT_FAILURE;
  const int64_t head = llama_model_n_embd(model) / llama_model_n_head(model);
  const int64_t kv_bytes = 2 * llama_model_n_layer(model) * llama_model_n_head_kv(model) * head *
                           static_cast<int64_t>(ggml_type_size(parameters.type_k));
  Peer peer(model, context);
  std::printf("ready %zu %lld\n", BytesOfStep(path), static_cast<long long>(kv_bytes));
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const double ms = Answer(&peer, line);
    if (ms < 0) {
      std::printf("error llama.cpp failed: %s\n", line.c_str());
    } else {
      std::printf("ms %.6f\n", ms);
    }
    std::fflush(stdout);
  }
  return EXIT_SUCCESS;
}

int Quantize(const char* in, const char* out, int type) {
  llama_model_quantize_params parameters = llama_model_quantize_default_params();
  parameters.ftype = static_cast<llama_ftype>(type);
  parameters.allow_requantize = true;
  return llama_model_quantize(in, out, &parameters) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void LogErrors(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // A long command must not outlive the benchmark.
  llama_log_set(LogErrors, nullptr);
  llama_backend_init();
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "quantize" && argc == 5) return Quantize(argv[2], argv[3], std::atoi(argv[4]));
  if (verb == "serve" && argc == 6) {
    return Serve(argv[2], std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]));
  }
  std::fputs("usage: llama_cpp_peer quantize IN OUT FTYPE | serve MODEL THREADS SEQUENCES TOKENS\n",
             stderr);
  return 2;
}
