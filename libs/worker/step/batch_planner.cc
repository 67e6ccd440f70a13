#include "libs/worker/step/batch_planner.h"

#include <algorithm>

#include "libs/paging/block_types.h"

namespace tokenrouter {
namespace {

class Planner {
 public:
  Planner(std::span<const RowSnapshot> sequences, const StepBudget& budget)
      : sequences_(sequences),
        budget_(budget),
        tokens_left_(budget.max_step_tokens),
        blocks_left_(budget.free_blocks) {}

  BatchPlan Plan() {
    std::vector<size_t> brief, lengthy, idle;
    for (size_t i = 0; i < sequences_.size(); ++i) {
      if (sequences_[i].ready) {
        (Remaining(i) <= std::max(kShortRowIds, sequences_[i].choices) ? brief : lengthy)
            .push_back(i);
      } else if (sequences_[i].choices == 0 && Remaining(i) >= kBackgroundIds) {
        idle.push_back(i);
        plan_.background_ids += Remaining(i);
      }
    }
    ready_rows_ = static_cast<int64_t>(brief.size() + lengthy.size());
    if (budget_.background_prefill && !budget_.by_age) {
      lengthy.insert(lengthy.end(), idle.begin(), idle.end());
      idle.clear();
    }
    if (budget_.by_age) {
      brief.insert(brief.end(), lengthy.begin(), lengthy.end());
      PlanByAge(std::move(brief));
    } else if (budget_.max_rows == 1 && LengthyIsFirst(brief, lengthy)) {
      PlanLengthy(std::move(lengthy));
      PlanBrief(std::move(brief), /*leave_room=*/false);
    } else {
      PlanBrief(std::move(brief), /*leave_room=*/!lengthy.empty());
      PlanLengthy(std::move(lengthy));
    }
    if (ready_rows_ == 0) PlanIdle(std::move(idle));
    return std::move(plan_);
  }

 private:
  int32_t Remaining(size_t index) const {
    return sequences_[index].known - sequences_[index].in_kv;
  }

  void SortByOrder(std::vector<size_t>* rows) const {
    std::stable_sort(rows->begin(), rows->end(), [this](size_t a, size_t b) {
      return sequences_[a].last_step < sequences_[b].last_step;
    });
  }

  // With one row per step both kinds wait in one line.
  bool LengthyIsFirst(const std::vector<size_t>& brief, const std::vector<size_t>& lengthy) const {
    const auto earlier = [this](size_t a, size_t b) {
      return sequences_[a].last_step < sequences_[b].last_step;
    };
    if (brief.empty() || lengthy.empty()) return brief.empty();
    return earlier(*std::min_element(lengthy.begin(), lengthy.end(), earlier),
                   *std::min_element(brief.begin(), brief.end(), earlier));
  }

  void PlanBrief(std::vector<size_t> rows, bool leave_room) {
    SortByOrder(&rows);
    // A long prompt always progresses: by a quarter of the step, in its own row.
    const int64_t spared = leave_room ? budget_.max_step_tokens / 4 : 0;
    const int32_t row_limit = budget_.max_rows - (leave_room && budget_.max_rows > 1 ? 1 : 0);
    for (const size_t index : rows) {
      if (static_cast<int32_t>(plan_.rows.size()) >= row_limit) return;
      const int32_t ids = Remaining(index);
      const bool fits = ids <= tokens_left_ - spared || plan_.rows.empty();
      if (!fits || ids > tokens_left_) continue;
      AddWhole(index);
    }
  }

  // The shares are equal; what the shorter rows leave goes to the longer ones. Shares below a
  // worthwhile chunk would only spread the work; then the least recently run rows come first.
  void PlanLengthy(std::vector<size_t> rows) {
    const int64_t slots = budget_.max_rows - static_cast<int64_t>(plan_.rows.size());
    const int64_t worthwhile = std::max<int64_t>(1, tokens_left_ / kShortRowIds);
    if (slots <= 0 || tokens_left_ <= 0) return;
    SortByOrder(&rows);
    std::vector<size_t> taken;
    for (const size_t index : rows) {
      if (static_cast<int64_t>(taken.size()) >= std::min(slots, worthwhile)) break;
      if (ChunkWithin(index, tokens_left_) > 0) {
        taken.push_back(index);
      } else if (sequences_[index].ready) {
        plan_.starved.push_back(index);
      }
    }
    std::stable_sort(taken.begin(), taken.end(),
                     [this](size_t a, size_t b) { return Remaining(a) < Remaining(b); });
    for (size_t i = 0; i < taken.size() && tokens_left_ > 0; ++i) {
      AddChunk(taken[i], std::max<int64_t>(1, tokens_left_ / (taken.size() - i)));
    }
  }

  void PlanByAge(std::vector<size_t> rows) {
    std::sort(rows.begin(), rows.end(),
              [this](size_t a, size_t b) { return sequences_[a].age < sequences_[b].age; });
    bool lacks_tokens = false;
    for (const size_t index : rows) {
      if (static_cast<int32_t>(plan_.rows.size()) >= budget_.max_rows || tokens_left_ <= 0) return;
      // Its choices wait for the next step, so a free block would not help it.
      if (Remaining(index) > tokens_left_ && Remaining(index) <= sequences_[index].choices) {
        lacks_tokens = true;
        continue;
      }
      const int64_t ids = ChunkWithin(index, tokens_left_);
      const bool grows = NewBlocks(index, ids) > 0;
      if (ids <= 0 || (grows && !plan_.starved.empty())) {
        plan_.starved.push_back(index);
      } else if (!grows || !lacks_tokens) {
        Add(index, ids, ids == Remaining(index) ? sequences_[index].choices : 0);
      }
    }
  }

  void PlanIdle(std::vector<size_t> rows) {
    plan_.idle = true;
    tokens_left_ = std::min(tokens_left_, budget_.idle_step_tokens);
    blocks_left_ -= budget_.idle_reserve_blocks;
    SortByOrder(&rows);
    for (const size_t index : rows) {
      if (static_cast<int32_t>(plan_.rows.size()) >= budget_.max_rows || tokens_left_ <= 0) return;
      const int64_t ids = std::min<int64_t>(Remaining(index), tokens_left_);
      if (NewBlocks(index, ids) <= blocks_left_) Add(index, ids, 0);
    }
  }

  int64_t NewBlocks(size_t index, int64_t ids) const {
    const int64_t in_kv = sequences_[index].in_kv;
    return BlocksFor(in_kv + ids, budget_.block_size) - BlocksFor(in_kv, budget_.block_size);
  }

  // A row that starts from nothing starts only when all of it fits beside a block for every other
  // ready row (by age: every row before it): otherwise it would compute a part, be preempted for
  // the others, and compute it again.
  bool MayStart(size_t index) const {
    if (sequences_[index].in_kv > 0) return true;
    const auto planned = static_cast<int64_t>(plan_.rows.size());
    const int64_t beside = budget_.by_age || planned == 0 ? planned : ready_rows_ - 1;
    return NewBlocks(index, sequences_[index].known) <= std::max<int64_t>(0, blocks_left_ - beside);
  }

  void AddWhole(size_t index) {
    const int32_t ids = Remaining(index);
    if (!MayStart(index) || NewBlocks(index, ids) > blocks_left_) {
      plan_.starved.push_back(index);
      return;
    }
    Add(index, ids, sequences_[index].choices);
  }

  // Ids of the next chunk under `limit` and the free blocks; 0: none.
  int64_t ChunkWithin(size_t index, int64_t limit) const {
    const RowSnapshot& row = sequences_[index];
    if (!MayStart(index)) return 0;
    const int64_t filled = BlocksFor(row.in_kv, budget_.block_size) + blocks_left_;
    const int64_t ids = std::min(limit, filled * budget_.block_size - row.in_kv);
    if (ids >= Remaining(index)) return Remaining(index);
    // This is not the last chunk, so it leaves the ids that carry choices for a later one.
    return std::min<int64_t>(ids, Remaining(index) - row.choices);
  }

  void AddChunk(size_t index, int64_t limit) {
    const int64_t ids = ChunkWithin(index, limit);
    if (ids > 0) {
      Add(index, ids, ids == Remaining(index) ? sequences_[index].choices : 0);
    } else if (sequences_[index].ready) {
      plan_.starved.push_back(index);
    }
  }

  void Add(size_t index, int64_t ids, int32_t choices) {
    blocks_left_ -= NewBlocks(index, ids);
    tokens_left_ -= ids;
    if (!sequences_[index].ready) plan_.background_ids -= ids;
    plan_.rows.push_back({index, static_cast<int32_t>(ids), choices});
  }

  const std::span<const RowSnapshot> sequences_;
  const StepBudget& budget_;
  int64_t tokens_left_;
  int64_t blocks_left_;
  int64_t ready_rows_ = 0;
  BatchPlan plan_;
};

}  // namespace

BatchPlan PlanBatch(std::span<const RowSnapshot> sequences, const StepBudget& budget) {
  return Planner(sequences, budget).Plan();
}

}  // namespace tokenrouter
