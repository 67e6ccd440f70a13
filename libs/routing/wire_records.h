// Token records on the wire: the columns ids, authors, entropies and logprobs, which RowReport and
// TokenChunk share. Entropies and logprobs may be absent as a whole. Pure and thread-safe.
#pragma once

#include <algorithm>
#include <vector>

#include "libs/routing/wire_types.h"
#include "libs/tokens/token_record.h"

namespace tokenrouter {

template <typename Message>
void AddRecord(const TokenRecord& record, Message* message) {
  message->add_ids(record.id);
  message->mutable_authors()->push_back(static_cast<char>(record.author));
  message->add_entropies(record.entropy);
  message->add_logprobs(record.logprob);
}

// Whether the columns of a peer's message fit each other and every author is a model.
template <typename Message>
bool RecordsFit(const Message& message) {
  const int ids = message.ids_size();
  const auto fits = [ids](int size) { return size == 0 || size == ids; };
  return message.authors().size() == static_cast<size_t>(ids) && fits(message.entropies_size()) &&
         fits(message.logprobs_size()) &&
         std::all_of(message.authors().begin(), message.authors().end(), IsAuthor);
}

// REQUIRES: RecordsFit(message).
template <typename Message>
std::vector<TokenRecord> ReadRecords(const Message& message) {
  std::vector<TokenRecord> records(message.ids_size());
  for (int i = 0; i < message.ids_size(); ++i) {
    records[i].id = message.ids(i);
    records[i].author = CheckedAuthor(message.authors()[i]);
    if (message.entropies_size() > 0) records[i].entropy = message.entropies(i);
    if (message.logprobs_size() > 0) records[i].logprob = message.logprobs(i);
  }
  return records;
}

template <typename From, typename To>
void CopyRecords(const From& from, To* to) {
  to->mutable_ids()->CopyFrom(from.ids());
  to->set_authors(from.authors());
  to->mutable_entropies()->CopyFrom(from.entropies());
  to->mutable_logprobs()->CopyFrom(from.logprobs());
}

// Shortens the message to its first `keep` records. REQUIRES: RecordsFit(*message), keep >= 0.
template <typename Message>
void CutRecords(int keep, Message* message) {
  if (keep >= message->ids_size()) return;
  message->mutable_ids()->Truncate(keep);
  message->mutable_authors()->resize(keep);
  if (message->entropies_size() > keep) message->mutable_entropies()->Truncate(keep);
  if (message->logprobs_size() > keep) message->mutable_logprobs()->Truncate(keep);
}

}  // namespace tokenrouter
