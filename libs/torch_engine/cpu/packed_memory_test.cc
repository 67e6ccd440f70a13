#include "libs/torch_engine/cpu/packed_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/status_matchers.h"
#include "libs/torch_engine/cpu/cpu_linear.h"

namespace tokenrouter {
namespace {

constexpr int64_t kInputs = 96;
constexpr int64_t kOutputs = 130;
constexpr int64_t kRows = 5;

void Serially(int64_t items, const std::function<void(int64_t)>& item) {
  for (int64_t i = 0; i < items; ++i) item(i);
}

PackedKey Key() {
  return {.engine = "engine", .files = "files", .content = [] { return "content"; }};
}

TEST(PackedMemory, GivesAlignedZerosThatDoNotOverlap) {
  PackedMemory memory;
  std::vector<std::pair<std::byte*, int64_t>> parts;
  for (const int64_t bytes : {1, 64, 1000, 100 << 20, 63, 1 << 20}) {
    const auto part = memory.Allocate(bytes);
    ASSERT_THAT(part, IsOk());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*part) % kPackedAlignment, 0u);
    EXPECT_EQ((*part)[0], std::byte{0});
    EXPECT_EQ((*part)[bytes - 1], std::byte{0});
    parts.emplace_back(*part, bytes);
  }
  std::sort(parts.begin(), parts.end());
  for (size_t i = 1; i < parts.size(); ++i) {
    EXPECT_LE(parts[i - 1].first + parts[i - 1].second, parts[i].first);
  }
}

TEST(PackedMemory, RefusesBytesThatDoNotFit) {
  PackedMemory memory;
  EXPECT_THAT(memory.Allocate(int64_t{1} << 55), StatusIs(absl::StatusCode::kResourceExhausted));
}

struct Variant {
  const char* name;
  WeightFormat format;
  const PanelGemm* panel_gemm;
};

// A linear layer that is packed into a file and then taken from it.
class PackedLinearTest : public ::testing::TestWithParam<Variant> {
 protected:
  PackedLinearTest() : input_(kRows * kInputs + CpuLinear::kInputSlack) {
    for (float& value : input_) value = Normal();
    weights_.resize(kInputs * kOutputs);
    for (float& value : weights_) value = Normal();
    bias_.resize(kOutputs);
    for (float& value : bias_) value = Normal();
  }
  float Normal() { return std::normal_distribution<float>()(generator_); }

  // Output of the layer. `reads` counts rows that were read from the model.
  std::vector<float> Run(PackedMemory* memory, int* reads) {
    QuantizedRows quantized(kRows, kInputs);
    ThreadPool pool(1, 0);
    const CpuLinearContext context{.kernels = UsableKernels().front(),
                                   .panel_gemm = GetParam().panel_gemm,
                                   .pool = &pool,
                                   .memory = memory,
                                   .quantized = &quantized};
    const auto read = [&](int64_t first, int64_t count, std::span<float> out) {
      *reads += static_cast<int>(count);
      std::memcpy(out.data(), weights_.data() + first * kInputs, out.size_bytes());
    };
    const WeightRows rows{
        .name = "w", .inputs = kInputs, .outputs = kOutputs, .read = read, .bias = bias_};
    auto linear = PackLinear(rows, GetParam().format, context);
    EXPECT_THAT(linear, IsOk());
    std::vector<float> output(kRows * kOutputs);
    (*linear)->Run(input_.data(), kRows, output.data(), context);
    (*linear)->Run(input_.data(), kRows, output.data(), context);
    return output;
  }

  std::mt19937 generator_{7};
  std::vector<float> input_, weights_, bias_;
};

TEST_P(PackedLinearTest, ComputesTheSameBitsFromAFileWithoutReadingTheModel) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/packed_linear_", getpid(), GetParam().name);
  int reads = 0;
  std::vector<float> packed;
  {
    PackedMemory memory;
    const auto writer = PackedFileWriter::Create(path, 0);
    ASSERT_THAT(writer, IsOk());
    memory.UseFiles(nullptr, writer->get());
    packed = Run(&memory, &reads);
    EXPECT_TRUE(memory.complete());
    ASSERT_THAT((*writer)->Finish(Key(), Serially), IsOk());
  }
  EXPECT_EQ(reads, kOutputs);
  auto file = PackedFile::Open(path, Key(), Serially, nullptr);
  ASSERT_THAT(file, IsOk());
  PackedMemory memory;
  memory.UseFiles(*std::move(file), nullptr);
  const std::vector<float> mapped = Run(&memory, &reads);
  EXPECT_EQ(reads, kOutputs) << "the model was read again";
  EXPECT_EQ(std::memcmp(mapped.data(), packed.data(), packed.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, PackedLinearTest,
    ::testing::Values(Variant{"int8_xnn", WeightFormat::kInt8, nullptr},
                      Variant{"int4_xnn", WeightFormat::kInt4, nullptr},
                      Variant{"fp32_xnn", WeightFormat::kFp32, nullptr},
                      Variant{"int8_panels", WeightFormat::kInt8, &ScalarPanelGemm()},
                      Variant{"int4_panels", WeightFormat::kInt4, &ScalarPanelGemm()}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tokenrouter
