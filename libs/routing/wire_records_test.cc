#include "libs/routing/wire_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tokenrouter/internal/v1/scheduler.pb.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;

const TokenRecord kFirst = {.id = 7, .author = Author::kSmall, .entropy = 0.5f, .logprob = -1};
const TokenRecord kSecond = {.id = 8, .author = Author::kLarge, .entropy = 0.25f, .logprob = -2};

wire::RowReport TwoRecords() {
  wire::RowReport row;
  AddRecord(kFirst, &row);
  AddRecord(kSecond, &row);
  return row;
}

TEST(WireRecordsTest, SurvivesTheWayFromWorkerToGateway) {
  wire::TokenChunk chunk;
  CopyRecords(TwoRecords(), &chunk);
  EXPECT_TRUE(RecordsFit(chunk));
  EXPECT_THAT(ReadRecords(chunk), ElementsAre(kFirst, kSecond));
  CutRecords(1, &chunk);
  EXPECT_TRUE(RecordsFit(chunk));
  EXPECT_THAT(ReadRecords(chunk), ElementsAre(kFirst));
}

TEST(WireRecordsTest, EntropiesAndLogprobsMayBeAbsentAsAWhole) {
  wire::RowReport row = TwoRecords();
  row.clear_entropies();
  row.clear_logprobs();
  EXPECT_TRUE(RecordsFit(row));
  EXPECT_THAT(ReadRecords(row), ElementsAre(TokenRecord{.id = 7, .author = Author::kSmall},
                                            TokenRecord{.id = 8, .author = Author::kLarge}));
  CutRecords(1, &row);
  EXPECT_EQ(row.ids_size(), 1);
  row.add_entropies(1);
  row.add_entropies(1);
  EXPECT_FALSE(RecordsFit(row));
}

TEST(WireRecordsTest, EveryIdHasAnAuthorThatIsAModel) {
  wire::RowReport row = TwoRecords();
  row.set_authors("\1");
  EXPECT_FALSE(RecordsFit(row));
  row.set_authors(std::string("\1\0", 2));
  EXPECT_FALSE(RecordsFit(row)) << "the prompt writes nothing";
  row.set_authors("\1\3");
  EXPECT_FALSE(RecordsFit(row));
}

}  // namespace
}  // namespace tokenrouter
