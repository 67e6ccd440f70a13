#include "libs/config/settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr absl::string_view kSections[] = {"gateway", "scheduler", "small_worker", "large_worker"};
constexpr absl::string_view kCommonKeys[] = {"log_level", "pair", "scheduler"};

template <size_t N>
bool Contains(const absl::string_view (&names)[N], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string EnvironmentName(const std::string& name) {
  return "TOKENROUTER_" + absl::AsciiStrToUpper(name);
}

// CLI11 takes the argument after `--name=` as its value. An explicit empty argument prevents that.
std::vector<const char*> WithEmptyValues(int argc, const char* const* argv,
                                         std::vector<std::string>* names) {
  names->reserve(static_cast<size_t>(argc));  // Keeps c_str() where it is.
  std::vector<const char*> arguments;
  for (int i = 0; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (i > 0 && absl::StartsWith(argument, "--") && absl::EndsWith(argument, "=")) {
      names->emplace_back(argument.substr(0, argument.size() - 1));
      arguments.insert(arguments.end(), {names->back().c_str(), ""});
    } else {
      arguments.push_back(argv[i]);
    }
  }
  return arguments;
}

// Levenshtein distance, to name the flag that was probably meant.
int EditDistance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

struct Settings::Impl {
  Impl(std::string name, const std::string& summary)
      : program(std::move(name)), app(summary, program) {}

  std::string Nearest(const std::string& unknown) const {
    std::string best;
    int best_distance = 1 << 20;
    for (const std::string& known : names) {
      const int distance = EditDistance(unknown, known);
      if (distance < best_distance) best_distance = distance, best = known;
    }
    return best;
  }

  CLI::Option* Register(CLI::Option* option, const std::string& name) {
    names.push_back(name);
    return option->envname(EnvironmentName(name))->capture_default_str();
  }

  // `value`: a number, or several.
  template <typename Value, typename Number>
  CLI::Option* AddNumber(const std::string& name, Value* value, Number low, Number high,
                         const std::string& help) {
    return Register(app.add_option("--" + name, *value, help), name)->check(CLI::Range(low, high));
  }

  // Where the value comes from an environment variable, CLI11's message names the variable.
  std::string Explain(const std::string& error, const std::vector<const char*>& arguments) const;
  absl::Status ApplyFile();
  absl::Status ApplyItem(const CLI::ConfigItem& item);

  const std::string program;
  CLI::App app;
  std::string config_path;
  std::vector<std::string> names;
};

Settings::Settings(std::string program, std::string summary)
    : impl_(std::make_unique<Impl>(std::move(program), summary)) {
  Add("config", &impl_->config_path, "INI/TOML file of settings");
}

Settings::~Settings() = default;

void Settings::Add(const std::string& name, std::string* value, const std::string& help) {
  impl_->Register(impl_->app.add_option("--" + name, *value, help), name);
}

void Settings::Add(const std::string& name, bool* value, const std::string& help) {
  impl_->Register(impl_->app.add_flag("--" + name, *value, help), name)
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->type_name("BOOLEAN")
      ->default_str(*value ? "true" : "false");
}

void Settings::Add(const std::string& name, int32_t* value, int32_t low, int32_t high,
                   const std::string& help) {
  impl_->AddNumber(name, value, low, high, help);
}

void Settings::Add(const std::string& name, int64_t* value, int64_t low, int64_t high,
                   const std::string& help) {
  impl_->AddNumber(name, value, low, high, help);
}

void Settings::Add(const std::string& name, double* value, double low, double high,
                   const std::string& help) {
  impl_->AddNumber(name, value, low, high, help);
}

void Settings::Add(const std::string& name, std::vector<int32_t>* values, int32_t low, int32_t high,
                   const std::string& help) {
  impl_->AddNumber(name, values, low, high, help)->delimiter(',');
}

void Settings::Add(const std::string& name, std::vector<double>* values, double low, double high,
                   const std::string& help) {
  impl_->AddNumber(name, values, low, high, help)->delimiter(',');
}

void Settings::AddChoice(const std::string& name, std::string* value,
                         const std::vector<std::string>& allowed, const std::string& help) {
  impl_->Register(impl_->app.add_option("--" + name, *value, help), name)
      ->check(CLI::IsMember(allowed));
}

std::string Settings::Impl::Explain(const std::string& error,
                                    const std::vector<const char*>& arguments) const {
  for (const std::string& name : names) {
    const std::string flag = "--" + name;
    if (!absl::StartsWith(error, flag + ":")) continue;
    const bool given = std::any_of(arguments.begin(), arguments.end(), [&flag](const char* text) {
      return text == flag || absl::StartsWith(text, flag + "=");
    });
    if (!given && std::getenv(EnvironmentName(name).c_str()) != nullptr) {
      return absl::StrCat("environment variable ", EnvironmentName(name),
                          error.substr(flag.size()));
    }
  }
  return error;
}

// Values from the file reach only options that neither a flag nor the environment set; the section
// of this process overrides the common keys.
absl::Status Settings::Impl::ApplyFile() {
  std::ifstream file(config_path);
  std::error_code ignored;
  if (!file || std::filesystem::is_directory(config_path, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat("config file ", config_path, ": cannot be read"));
  }
  std::vector<CLI::ConfigItem> own, common;
  for (CLI::ConfigItem& item : CLI::ConfigTOML().from_config(file)) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's marks of a section's ends.
    if (item.parents.empty()) {
      common.push_back(std::move(item));
    } else if (!Contains(kSections, item.parents[0])) {
      return absl::InvalidArgumentError(
          absl::StrCat("config file ", config_path, ": section [", item.parents[0],
                       "] is no process; allowed: ", absl::StrJoin(kSections, ", ")));
    } else if (item.parents[0] == program) {
      own.push_back(std::move(item));
    }
  }
  for (const CLI::ConfigItem& item : own) TR_RETURN_IF_ERROR(ApplyItem(item));
  for (const CLI::ConfigItem& item : common) TR_RETURN_IF_ERROR(ApplyItem(item));
  return absl::OkStatus();
}

absl::Status Settings::Impl::ApplyItem(const CLI::ConfigItem& item) {
  const std::string where = absl::StrCat("config file ", config_path, ", key ", item.name);
  const bool is_common = item.parents.empty();
  if (is_common && !Contains(kCommonKeys, item.name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": belongs into the section of a process; before the first section only ",
        absl::StrJoin(kCommonKeys, ", ")));
  }
  CLI::Option* option = app.get_option_no_throw("--" + item.name);
  if (option == nullptr) {
    if (is_common) return absl::OkStatus();  // This process does not use it.
    return absl::InvalidArgumentError(absl::StrCat(where, ": unknown in [", program,
                                                   "]; did you mean ", Nearest(item.name), "?"));
  }
  if (option->count() > 0) return absl::OkStatus();
  try {
    option->add_result(item.inputs);
    option->run_callback();
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", error.what()));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Settings::Parse(int argc, const char* const* argv) {
  std::vector<std::string> rewritten;
  const std::vector<const char*> arguments = WithEmptyValues(argc, argv, &rewritten);
  try {
    impl_->app.parse(static_cast<int>(arguments.size()), arguments.data());
    if (!impl_->config_path.empty()) {
      const absl::Status status = impl_->ApplyFile();
      if (!status.ok()) return status;
    }
  } catch (const CLI::CallForHelp&) {
    std::cout << impl_->app.help();
    return false;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = impl_->app.remaining();
    const std::string first = extras.empty() ? "" : extras.front();
    const std::string name =
        first.substr(0, first.find('=')).substr(std::min<size_t>(2, first.size()));
    return absl::InvalidArgumentError(
        absl::StrCat("unknown flag ", first, "; did you mean --", impl_->Nearest(name), "?"));
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(impl_->Explain(error.what(), arguments));
  }
  return true;
}

}  // namespace tokenrouter
