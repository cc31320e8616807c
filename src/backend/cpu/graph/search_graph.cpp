// Beam search in a graph.
//
// The rows of the two nearest entries that are not expanded are compared at once: their codes arrive from
// memory together, and so do the lists of edges of the next two. A thread with several queries searches for
// some of them in turns: what one of them reads next arrives while the others compute.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "backend/cpu/graph/graph_scratch.h"
#include "backend/cpu/kernels/prefetch.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/rows/answers.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t max_task_queries = 64;
// Groups of entries whose leaves are compared, and leaves that a search begins with.
constexpr std::size_t top_probes = 4;
constexpr std::size_t seeds = 4;

class CpuGraph : public PreparedGraph {
 public:
  explicit CpuGraph(const PrepareGraphArgs& args) : graph(args.graph), scratch(args) {}

  const SearchGraphView graph;
  mutable GraphScratchPool scratch;
};

// The indices of the smallest values, ascending by value, then index.
template <std::size_t most>
class Smallest {
 public:
  void offer(std::int32_t value, std::uint32_t index) {
    const std::uint64_t entry = std::uint64_t{static_cast<std::uint32_t>(value)} << 32 | index;
    if (count_ == most && entry >= entries_[most - 1]) return;
    std::size_t place = count_ < most ? count_++ : most - 1;
    for (; place > 0 && entry < entries_[place - 1]; --place) entries_[place] = entries_[place - 1];
    entries_[place] = entry;
  }
  std::size_t size() const { return count_; }
  std::uint32_t operator[](std::size_t place) const { return static_cast<std::uint32_t>(entries_[place]); }

 private:
  std::array<std::uint64_t, most> entries_;
  std::size_t count_ = 0;
};

// Searches for one query at a time, in steps that begin with what the step before has prefetched.
class GraphSearcher {
 public:
  GraphSearcher(const CpuStream& cpu, const SearchGraphArgs& args, const CpuGraph& prepared)
      : kernels_(cpu.code_distances),
        args_(args),
        graph_(prepared.graph),
        pool_(prepared.scratch),
        scratch_(pool_.take()),
        has_nibbles_(graph_.nibbles.rows() != 0),
        evaluator_(cpu, args.queries, graph_.vectors, graph_.codec->metric) {}
  ~GraphSearcher() {
    scratch_->forget_seen();
    pool_.give_back(std::move(scratch_));
  }
  GraphSearcher(const GraphSearcher&) = delete;
  GraphSearcher& operator=(const GraphSearcher&) = delete;

  void begin(std::size_t query) {
    query_ = query;
    graph_.codec->encode_query(args_.queries, query, scratch_->vector.data(), scratch_->byte_query.data(),
                               scratch_->nibble_query.data());
    scratch_->beam.reset(*scratch_->budget, args_.beam);
    if (args_.allowed.any()) scratch_->found.reset(*scratch_->budget, args_.evaluated);
    if (!args_.absent.empty()) set_seen(args_.absent[query]);
    find_entries();
    step_ = &GraphSearcher::compare;
  }

  bool is_done() const { return step_ == nullptr; }
  // Requires !is_done().
  void advance() { (this->*step_)(); }

 private:
  // All rows of `codes`, from the first.
  void compare_all(const MatrixView<const std::uint8_t>& codes, std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) scratch_->rows[i] = static_cast<std::uint32_t>(first + i);
    compare_bytes(codes, count);
  }
  void compare_bytes(const MatrixView<const std::uint8_t>& codes, std::size_t count) {
    kernels_.bytes({.query = scratch_->byte_query.data(),
                    .codes = codes.data(),
                    .row_bytes = codes.cols(),
                    .rows = scratch_->rows.data(),
                    .count = count,
                    .distances = scratch_->distances.data()});
  }
  void compare_rows(std::size_t count) {
    if (!has_nibbles_) {
      compare_bytes(graph_.codes, count);
      return;
    }
    kernels_.nibbles({.query = scratch_->nibble_query.data(),
                      .codes = graph_.nibbles.data(),
                      .row_bytes = graph_.nibbles.cols(),
                      .rows = scratch_->rows.data(),
                      .count = count,
                      .distances = scratch_->distances.data()});
  }

  bool set_seen(std::uint32_t row) {
    std::uint32_t& word = scratch_->seen[row >> 5];
    const std::uint32_t bit = 1U << (row & 31U);
    if ((word & bit) != 0) return false;
    word |= bit;
    scratch_->mark(&row, 1);
    return true;
  }

  // The nearest leaves of the entry tree.
  void find_entries() {
    const EntryTreeView& entries = graph_.entries;
    compare_all(entries.top_codes, 0, entries.top_codes.rows());
    Smallest<top_probes> tops;
    for (std::uint32_t top = 0; top < entries.top_codes.rows(); ++top)
      tops.offer(scratch_->distances[top], top);
    Smallest<seeds> leaves;
    for (std::size_t i = 0; i < tops.size(); ++i) {
      const std::uint32_t top = tops[i];
      const std::uint32_t first = top == 0 ? 0 : entries.ends[top - 1];
      compare_all(entries.leaf_codes, first, entries.ends[top] - first);
      for (std::uint32_t leaf = first; leaf < entries.ends[top]; ++leaf)
        leaves.offer(scratch_->distances[leaf - first], leaf);
    }
    const MatrixView<const std::uint8_t>& codes = traversed_codes();
    count_ = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const std::uint32_t row = entries.rows[leaves[i]];
      if (!set_seen(row)) continue;
      scratch_->rows[count_++] = row;
      prefetch_row(codes, row);
    }
  }

  const MatrixView<const std::uint8_t>& traversed_codes() const {
    return has_nibbles_ ? graph_.nibbles : graph_.codes;
  }
  // Longer codes are read in order, which the hardware prefetches.
  static void prefetch_row(const MatrixView<const std::uint8_t>& codes, std::uint32_t row) {
    prefetch(reinterpret_cast<std::uintptr_t>(codes.row(row).data()),
             std::min<std::size_t>(codes.cols(), 512));
  }
  void prefetch_edges(std::uint32_t row) {
    prefetch(reinterpret_cast<std::uintptr_t>(graph_.edges.row(row).data()),
             graph_.edges.cols() * sizeof(std::int32_t));
  }

  // Step: lists the rows next to the nearest ones, and prefetches their codes.
  void expand() {
    Beam& beam = scratch_->beam;
    const MatrixView<const std::uint8_t>& codes = traversed_codes();
    count_ = 0;
    for (std::size_t i = 0; i < expanded_at_once && beam.has_next(); ++i) {
      const std::uint32_t row = beam.expand();
      if (beam.has_next()) prefetch_edges(beam.peek());
      std::uint32_t* const rows = scratch_->rows.data() + count_;
      const std::size_t added = kernels_.unseen({.list = graph_.edges.row(row).data(),
                                                 .degree = graph_.edges.cols(),
                                                 .seen = scratch_->seen.data(),
                                                 .codes = codes.data(),
                                                 .row_bytes = codes.cols(),
                                                 .rows = rows});
      scratch_->mark(rows, added);
      count_ += added;
    }
    step_ = &GraphSearcher::compare;
  }

  // Step: puts the listed rows into the beam.
  void compare() {
    compare_rows(count_);
    insert(count_);
    if (!scratch_->beam.has_next()) {
      finish_traversal();
      return;
    }
    std::array<std::uint32_t, expanded_at_once> next;
    const std::size_t count = scratch_->beam.peek(next);
    for (std::size_t i = 0; i < count; ++i) prefetch_edges(next[i]);
    step_ = &GraphSearcher::expand;
  }

  void finish_traversal() {
    scratch_->forget_seen();
    if (!args_.is_starved.empty()) args_.is_starved[query_] = allowed_in_beam() < args_.k ? 1 : 0;
    if (!has_nibbles_) {
      prefetch_vectors();
      return;
    }
    const Beam& beam = found();
    for (std::size_t i = 0; i < beam.size(); ++i) prefetch_row(graph_.codes, beam.row(i));
    step_ = &GraphSearcher::rank_by_bytes;
  }

  void insert(std::size_t count) {
    Beam& beam = scratch_->beam;
    const std::int32_t* const distances = scratch_->distances.data();
    if (args_.allowed.any())
      for (std::size_t i = 0; i < count; ++i)
        if (distances[i] <= scratch_->found.worst() && args_.allowed.contains(scratch_->rows[i]))
          scratch_->found.insert(distances[i], scratch_->rows[i]);
    std::int32_t worst = beam.worst();
    for (std::size_t i = 0; i < count; ++i) {
      if (distances[i] > worst) continue;
      beam.insert(distances[i], scratch_->rows[i]);
      worst = beam.worst();
    }
  }

  Beam& found() { return args_.allowed.any() ? scratch_->found : scratch_->beam; }
  std::size_t evaluated() { return std::min(found().size(), args_.evaluated); }

  void prefetch_vectors() {
    std::array<std::uint32_t, RowEvaluator::batch> rows;
    const std::size_t count = std::min(evaluated(), rows.size());
    for (std::size_t i = 0; i < count; ++i) rows[i] = found().row(i);
    evaluator_.prefetch_rows({rows.data(), count});
    step_ = &GraphSearcher::write_results;
  }

  // Step: evaluates the best of the beam by the vectors.
  void write_results() {
    const Beam& found = this->found();
    const std::size_t count = evaluated();
    evaluator_.begin(query_);
    if (scratch_->answers.size() < count) scratch_->answers = Buffer<Answer>(*scratch_->budget, count);
    Answer* const all = scratch_->answers.data();
    for (std::size_t first = 0; first < count; first += RowEvaluator::batch) {
      std::uint32_t rows[RowEvaluator::batch];
      float keys[RowEvaluator::batch];
      const std::size_t size = std::min(RowEvaluator::batch, count - first);
      for (std::size_t i = 0; i < size; ++i) rows[i] = found.row(first + i);
      evaluator_.evaluate(rows, 0, size, keys);
      for (std::size_t i = 0; i < size; ++i) all[first + i] = {keys[i], rows[i]};
    }
    const std::size_t best = std::min(count, args_.k);
    std::partial_sort(all, all + best, all + count);
    write_answers({all, best}, graph_.codec->metric, 0, args_.ids.row(query_), args_.distances.row(query_));
    step_ = nullptr;
  }

  std::size_t allowed_in_beam() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < scratch_->beam.size(); ++i)
      count += args_.allowed.contains(scratch_->beam.row(i)) ? 1 : 0;
    return count;
  }

  // Step: orders the beam by all 8 bits.
  void rank_by_bytes() {
    Beam& found = this->found();
    const std::size_t count = found.size();
    if (scratch_->rows.size() < count + code_overrun) {
      // Both or none: the other searches that use this memory look at the size of one.
      Buffer<std::uint32_t> rows(*scratch_->budget, count + code_overrun);
      scratch_->distances = Buffer<std::int32_t>(*scratch_->budget, count + code_overrun);
      scratch_->rows = std::move(rows);
    }
    for (std::size_t i = 0; i < count; ++i) scratch_->rows[i] = found.row(i);
    compare_bytes(graph_.codes, count);
    found.reset(*scratch_->budget, std::max(std::min(count, args_.evaluated), std::size_t{1}));
    for (std::size_t i = 0; i < count; ++i) found.insert(scratch_->distances[i], scratch_->rows[i]);
    prefetch_vectors();
  }

  const CodeDistanceKernels& kernels_;
  const SearchGraphArgs& args_;
  const SearchGraphView& graph_;
  GraphScratchPool& pool_;
  std::unique_ptr<GraphScratch> scratch_;
  const bool has_nibbles_;
  RowEvaluator evaluator_;
  std::size_t query_ = 0;
  std::size_t count_ = 0;                    // listed rows, whose codes are on their way
  void (GraphSearcher::*step_)() = nullptr;  // what is next
};

// Searches for queries [first, end) on this thread.
void search_in_turns(const CpuStream& cpu, const SearchGraphArgs& args, const CpuGraph& prepared,
                     std::size_t first, std::size_t end) {
  std::array<std::optional<GraphSearcher>, graph_searches_per_thread> searchers;
  std::size_t next = first;
  std::size_t searching = 0;
  for (auto& searcher : searchers) {
    if (next == end) break;
    try {
      searcher.emplace(cpu, args, prepared).begin(next);
    } catch (const Error& error) {
      // Fewer in turns, where the memory limit leaves no room.
      searcher.reset();
      if (searching == 0 || error.code() != ErrorCode::out_of_memory) throw;
      break;
    }
    ++next;
    ++searching;
  }
  while (searching != 0) {
    for (auto& searcher : searchers) {
      if (!searcher || searcher->is_done()) continue;
      searcher->advance();
      if (!searcher->is_done()) continue;
      cpu.context.cancel.check();
      if (next < end)
        searcher->begin(next++);
      else
        --searching;
    }
  }
}

}  // namespace

std::unique_ptr<PreparedGraph> prepare_graph(Stream&, const PrepareGraphArgs& args) {
  return std::make_unique<CpuGraph>(args);
}

void search_graph(Stream& stream, const SearchGraphArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const auto& prepared = static_cast<const CpuGraph&>(args.graph);
  const std::size_t queries = args.queries.rows();
  // Several tasks for each thread, since queries differ.
  const std::size_t tasks_wanted = 4 * static_cast<std::size_t>(cpu.threads().count());
  const std::size_t task_queries =
      std::clamp<std::size_t>(divide_up(queries, tasks_wanted), 1, max_task_queries);
  cpu.threads().for_each(divide_up(queries, task_queries), [&](std::size_t task) {
    const std::size_t end = std::min(queries, (task + 1) * task_queries);
    search_in_turns(cpu, args, prepared, task * task_queries, end);
    if (args.progress != nullptr) args.progress->add(end - task * task_queries);
  });
}

}  // namespace nearwise::cpu
