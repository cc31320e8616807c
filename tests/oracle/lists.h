// The definition of a search in inverted lists, executed: every code of every probed list is decoded and
// compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "oracle/knn.h"

namespace nearwise::oracle {

// A list of an index: its decoded vectors and ids.
struct DecodedList {
  std::vector<double> rows;  // [ids, dim]
  std::vector<Id> ids;
};

// centroid + codeword, each sum rounded to f32; part boundaries, bits and codebooks as in ProductQuantizer.
inline std::vector<double> decode_product(std::span<const float> centroid,
                                          std::span<const std::size_t> part_begins,
                                          std::span<const float> codebooks, unsigned bits,
                                          std::span<const std::uint8_t> code) {
  std::vector<double> row(part_begins.back());
  std::size_t book = 0;
  for (std::size_t part = 0; part + 1 < part_begins.size(); ++part) {
    const std::size_t length = part_begins[part + 1] - part_begins[part];
    const unsigned word = bits == 8 ? code[part] : (code[part / 2] >> (part % 2 * 4)) % 16;
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t place = part_begins[part] + i;
      row[place] = static_cast<float>(centroid[place] + codebooks[book + word * length + i]);
    }
    book += length << bits;
  }
  return row;
}

// centroid and codewords, added up in f64 in this order and rounded to f32 once; words: [code bytes, 256,
// dim].
inline std::vector<double> decode_additive(std::span<const float> centroid, std::span<const float> words,
                                           std::span<const std::uint8_t> code) {
  std::vector<double> row(centroid.begin(), centroid.end());
  for (std::size_t i = 0; i < row.size(); ++i) {
    for (std::size_t book = 0; book < code.size(); ++book)
      row[i] += words[(book * 256 + code[book]) * row.size() + i];
    row[i] = static_cast<float>(row[i]);
  }
  return row;
}

// probes: the lists of this query. rows: by id, or empty; then the best `candidates` are compared again.
inline std::vector<Candidate> search_lists(std::span<const double> query, std::span<const DecodedList> lists,
                                           std::span<const Id> probes, std::size_t k, std::size_t candidates,
                                           std::span<const double> rows, Metric metric) {
  const std::size_t dim = query.size();
  std::vector<Candidate> found;
  for (const Id list : probes) {
    if (list == no_id) continue;
    const DecodedList& entries = lists[static_cast<std::size_t>(list)];
    for (std::size_t i = 0; i < entries.ids.size(); ++i)
      found.push_back(
          {reported(metric, query, std::span(entries.rows).subspan(i * dim, dim)), entries.ids[i]});
  }
  const auto sort_and_cut = [&](std::size_t most) {
    std::sort(found.begin(), found.end(),
              [&](const Candidate& left, const Candidate& right) { return better(metric, left, right); });
    if (found.size() > most) found.resize(most);
  };
  sort_and_cut(candidates);
  if (!rows.empty()) {
    for (Candidate& candidate : found)
      candidate.value =
          reported(metric, query, rows.subspan(static_cast<std::size_t>(candidate.id) * dim, dim));
    sort_and_cut(k);
  }
  while (found.size() < k) found.push_back({worst_value(metric), no_id});
  return found;
}

}  // namespace nearwise::oracle
