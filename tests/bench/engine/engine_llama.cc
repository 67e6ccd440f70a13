#include "tests/bench/engine/engine_llama.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

namespace fs = std::filesystem;

constexpr int kAnswerLimitMs = 30 * 60 * 1000;  // Filling 2048 tokens on a slow machine included.
constexpr size_t kLineLimit = 256;
// The model files of tools/versions.lock are in this one already.
constexpr const char* kFormatOfFiles = "Q4_K_M";

// llama.cpp's numbers of the formats it can write.
const std::map<std::string, int>& FileTypes() {
  static const auto* const types = new std::map<std::string, int>{{"Q8_0", 7}, {"BF16", 32}};
  return *types;
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv, int in, int out) {
  std::vector<char*> pointers;
  for (const std::string& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (in >= 0) posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, argv[0].c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("--peer: ", argv[0], " does not start: ", strerror(error)));
  }
  return process;
}

absl::Status Quantize(const std::string& program, const std::string& model, int type,
                      const std::string& target) {
  std::cerr << "writing " << target << "\n";
  const std::string part = target + ".part";
  TR_ASSIGN_OR_RETURN(
      const pid_t process,
      Spawn({program, "quantize", model, part, absl::StrCat(type)}, -1, STDERR_FILENO));
  int status = 0;
  waitpid(process, &status, 0);
  std::error_code error;
  if (status == 0) fs::rename(part, target, error);
  if (status != 0 || error) {
    fs::remove(part, error);
    return absl::InternalError(absl::StrCat("llama.cpp could not write ", target, " from ", model,
                                            " (wait status ", status, ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FileOf(const std::string& program, const std::string& model,
                                   const std::string& format) {
  if (format == kFormatOfFiles) return model;
  const auto type = FileTypes().find(format);
  if (type == FileTypes().end()) {
    return absl::InvalidArgumentError(absl::StrCat("no peer model in ", format));
  }
  const std::string target = fs::path(program).parent_path() /
                             absl::StrCat(fs::path(model).stem().string(), ".", format, ".gguf");
  if (!fs::exists(target)) TR_RETURN_IF_ERROR(Quantize(program, model, type->second, target));
  return target;
}

}  // namespace

absl::StatusOr<std::string> PeerFormatOf(const std::string& format) {
  if (format == "int8") return "Q8_0";
  if (format == "int4") return kFormatOfFiles;
  if (format == "bf16") return "BF16";
  return absl::InvalidArgumentError(
      absl::StrCat("--formats=", format, " has no peer with the same bits; allowed: int8, int4, ",
                   "bf16, or --peer=none"));
}

absl::StatusOr<std::unique_ptr<LlamaEngine>> LlamaEngine::Start(const std::string& program,
                                                                const std::string& model,
                                                                const std::string& format,
                                                                int threads,
                                                                const MeasuredSizes& sizes) {
  TR_ASSIGN_OR_RETURN(const std::string file, FileOf(program, model, format));
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("no pipe: ", strerror(errno)));
  }
  const int tokens = std::max(sizes.tokens, sizes.prompt);
  auto process = Spawn({program, "serve", file, absl::StrCat(threads), absl::StrCat(sizes.rows),
                        absl::StrCat(tokens)},
                       in[0], out[1]);
  close(in[0]);
  close(out[1]);
  if (!process.ok()) {
    close(in[1]);
    close(out[0]);
    return process.status();
  }
  std::unique_ptr<LlamaEngine> engine(
      new LlamaEngine(*process, fdopen(in[1], "w"), fdopen(out[0], "r"), format));
  TR_ASSIGN_OR_RETURN(const std::string ready, engine->ReadLine());
  if (std::sscanf(ready.c_str(), "ready %lf %lf", &engine->weight_bytes_,
                  &engine->kv_bytes_per_token_) != 2) {
    return absl::InternalError(absl::StrCat("llama.cpp with ", file, " said: ", ready));
  }
  return engine;
}

LlamaEngine::LlamaEngine(pid_t process, std::FILE* to, std::FILE* from, std::string format)
    : process_(process), to_(to), from_(from), format_(std::move(format)) {
  setvbuf(from_, nullptr, _IONBF, 0);  // ReadLine polls the descriptor: nothing may hide above it.
}

LlamaEngine::~LlamaEngine() {
  std::fclose(to_);
  std::fclose(from_);
  waitpid(process_, nullptr, 0);
}

absl::StatusOr<double> LlamaEngine::Prefill(int ids) { return Ask(absl::StrCat("prefill ", ids)); }

absl::Status LlamaEngine::Fill(int rows, int context) {
  return Ask(absl::StrCat("fill ", rows, " ", context)).status();
}

absl::StatusOr<double> LlamaEngine::Decode(int rows, int context, int steps) {
  return Ask(absl::StrCat("decode ", rows, " ", context, " ", steps));
}

absl::StatusOr<double> LlamaEngine::Extend(int rows, int context, int ids) {
  return Ask(absl::StrCat("extend ", rows, " ", context, " ", ids));
}

absl::StatusOr<std::string> LlamaEngine::ReadLine() {
  std::string line;
  while (line.size() < kLineLimit) {
    pollfd waiting{.fd = fileno(from_), .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, kAnswerLimitMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      return absl::UnavailableError(
          absl::StrCat("llama.cpp was silent for ", kAnswerLimitMs / 1000, " s"));
    }
    const int character = std::fgetc(from_);
    if (character == EOF) return absl::UnavailableError("llama.cpp's process ended");
    if (character == '\n') return line;
    line.push_back(static_cast<char>(character));
  }
  return absl::InternalError(absl::StrCat("llama.cpp's process said: ", line));
}

absl::StatusOr<double> LlamaEngine::Ask(const std::string& line) {
  if (std::fprintf(to_, "%s\n", line.c_str()) < 0 || std::fflush(to_) != 0) {
    return absl::UnavailableError("llama.cpp's process ended");
  }
  TR_ASSIGN_OR_RETURN(const std::string answer, ReadLine());
  double ms = 0;
  if (std::sscanf(answer.c_str(), "ms %lf", &ms) != 1) {
    return absl::InternalError(absl::StrCat("\"", line, "\": ", answer));
  }
  return ms;
}

}  // namespace tokenrouter
