// Removal of near-duplicate vectors.
//
// Two rows are duplicates if their reported distance is within a threshold (threshold_join): the same
// decision on every instruction set and with any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/threshold_join.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// The threshold for pairs of at least this similarity. cosine: 1 - similarity, rounded to f32, as cosine
// distances are; inner_product: the similarity itself. Throws Error(invalid_argument) for other metrics, NaN,
// or a cosine similarity above 1.
float threshold_of_similarity(Metric metric, double similarity);

// Which row of a group of duplicates is kept. Ties: the lowest row.
enum class KeptRow : std::uint8_t {
  first,   // the lowest row
  medoid,  // most duplicates; among equals, smallest sum of distances to them (inner_product: largest sum)
  scored,  // the row with the highest score
};

std::string_view name(KeptRow kept);

enum class DuplicateGrouping : std::uint8_t {
  // Rows are considered in the order that KeptRow prefers. A row is kept unless it is a duplicate of a row
  // that has been kept already; the nearest such row removes it. So every removed row is a duplicate of the
  // kept row of its group, and no two kept rows are duplicates.
  star,
  // Connected components of the pairs; one row of each is kept. A removed row may be far from the kept one,
  // at the end of a chain of duplicates.
  connected,
};

std::string_view name(DuplicateGrouping grouping);

struct DedupOptions {
  Metric metric = Metric::sqeuclidean;
  DuplicateGrouping grouping = DuplicateGrouping::star;
  KeptRow keep = KeptRow::first;
  std::span<const double> scores = {};  // [rows], for KeptRow::scored only; no NaN
};

struct Deduplication {
  std::vector<Id> kept;    // rows, ascending
  std::vector<Id> groups;  // [rows] the kept row of each row's group; of a kept row, itself
  // [rows] The duplicate that removed each row, no_id if it is kept. star: the kept row. connected: the
  // nearest of those duplicates that are one pair closer to the kept row; ties: the lowest row.
  std::vector<Id> removed_by;
  std::vector<float> distances;  // [rows] to removed_by; for kept rows +inf (-inf for inner_product)
  std::size_t pairs = 0;         // pairs of duplicates
};

// Compares all pairs (threshold_join).
Deduplication dedup(const Context& context, RowsView rows, float threshold, const DedupOptions& options = {});

// The same for known pairs: for every row the later rows that are its duplicates, in ascending order, as
// threshold_join returns them. Throws Error(invalid_argument) if they are not of this form.
Deduplication dedup_pairs(const Context& context, const RangeNeighbors& pairs,
                          const DedupOptions& options = {});

// The result of threshold_join() with its parameters and origin (docs/format.md, kind "pairs").
struct SavedPairs {
  RangeNeighbors pairs;
  Metric metric = Metric::sqeuclidean;
  float threshold = 0;
  std::map<std::string, std::string> provenance = {};  // free text
};

// Throws Error(invalid_argument) unless the pairs are those of threshold_join() for a finite threshold.
void save(const SavedPairs& saved, const std::filesystem::path& path);
SavedPairs load_pairs(const std::filesystem::path& path);

// The result of dedup() with its parameters and origin (docs/format.md, kind "deduplication").
struct SavedDeduplication {
  Deduplication deduplication;
  Metric metric = Metric::sqeuclidean;
  float threshold = 0;
  DuplicateGrouping grouping = DuplicateGrouping::star;
  KeptRow keep = KeptRow::first;
  std::map<std::string, std::string> provenance = {};  // free text
};

// Throws Error(invalid_argument) unless it is as dedup() returns it for a finite threshold.
void save(const SavedDeduplication& saved, const std::filesystem::path& path);
SavedDeduplication load_deduplication(const std::filesystem::path& path);

}  // namespace nearwise
