#include "backend/cpu/rows/top_k.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/selection_key.h"
#include "backend/cpu/operations.h"

namespace nearwise::cpu {
namespace {

// Minimum k for which sorting is faster than a heap.
constexpr std::size_t min_sorted = 64;

}  // namespace

void AnswerSorter::add(const Answer& answer) {
  if (answer.key == 0 && std::signbit(answer.key)) negative_zeros_.push_back(answer.row);
  keys_[count_++] = make_key(image_of_number(answer.key, Order::smallest), answer.row);
}

void AnswerSorter::sort_into(Answer* answers, std::size_t k) {
  sorter_.sort(keys_.data(), count_);
  std::ranges::sort(negative_zeros_);
  for (std::size_t i = 0; i < k; ++i) {
    const std::uint32_t row = position_of_key(keys_[i]);
    float key = number_of_image(image_of_key(keys_[i]), Order::smallest);
    if (key == 0) key = std::ranges::binary_search(negative_zeros_, row) ? -0.0F : 0.0F;
    answers[i] = {key, row};
  }
}

std::size_t TopK::bytes_per_query(std::size_t k, std::size_t base_width, std::size_t spare) {
  return Candidates::bytes_per_query(spare, base_width) + k * sizeof(Answer) + sizeof(std::uint32_t);
}

TopK::TopK(CpuStream& stream, const PackedRows& queries, const RowsView& query_rows, std::size_t k,
           Metric metric, std::size_t spare, const DeniedIds& denied)
    : Candidates(stream, queries, query_rows, metric, spare, denied),
      k_(k),
      answers_(stream.budget(), query_rows.rows() * k),
      answer_counts_(stream.budget(), query_rows.rows()) {
  std::ranges::fill(answer_counts_.span(), 0U);
}

void TopK::tighten_by_scores(std::size_t query) {
  const std::span<const float> listed = scores(query);
  if (listed.size() < k_) return;
  const float kth = stream().candidate_list.kth_score(listed.data(), listed.size(), k_);
  lower_limit(query, limit_from_score(query, kth));
}

void TopK::tighten_by_answers(std::size_t query) {
  if (answer_counts_[query] == k_) lower_limit(query, bound().limit_from_key(answers_[query * k_].key));
}

std::span<const Answer> TopK::finish(std::size_t query, AnswerSorter& sorter) {
  drop_excluded(query);
  Answer* const heap = answers_.data() + query * k_;
  // A heap pays off only if most entries are rejected; here few are.
  if (answer_counts_[query] == 0 && k_ >= min_sorted && scores(query).size() >= k_) {
    sorter.clear();
    evaluate_list(query, [&](const Answer& answer) { sorter.add(answer); });
    sorter.sort_into(heap, k_);
    return {heap, k_};
  }
  evaluate_candidates(query);
  std::sort_heap(heap, heap + answer_counts_[query]);
  return {heap, answer_counts_[query]};
}

std::unique_ptr<Candidates> TopK::start_subset(const PackedRows& queries, const RowsView& query_rows,
                                               std::size_t first_query) const {
  return std::make_unique<TopK>(stream(), queries, query_rows, k_, metric(), default_spare(k_),
                                denied().from_query(first_query, query_rows.rows()));
}

std::span<const Answer> TopK::evaluate_rest(std::size_t query) {
  drop_excluded(query);
  evaluate_candidates(query);
  return {answers_.data() + query * k_, answer_counts_[query]};
}

std::unique_ptr<Collector> start_top_k(Stream& stream, const TopKArgs& args) {
  return std::make_unique<TopK>(cpu_stream(stream), static_cast<const PackedRows&>(args.queries),
                                args.query_rows, args.k, args.metric, TopK::default_spare(args.k),
                                args.denied);
}

}  // namespace nearwise::cpu
