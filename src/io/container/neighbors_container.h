// Containers of kind "neighbors": their structure, apart from where the bytes lie. For storage.cpp and
// fuzzing.
#pragma once

#include "io/container/container_reader.h"
#include "nearwise/storage.h"

namespace nearwise {

inline constexpr std::string_view neighbors_kind = "neighbors";

// In place: views into the reader.
struct NeighborsContent {
  MatrixView<const Id> ids;
  MatrixView<const float> distances;
  Metric metric = Metric::sqeuclidean;
  std::map<std::string, std::string> provenance;
};

// Verifies all checksums and, independently of them, the structure.
NeighborsContent check_neighbors(const ContainerReader& reader);

// The same, copied.
SavedNeighbors decode_neighbors(const ContainerReader& reader);

ContainerInfo describe(const ContainerReader& reader);

}  // namespace nearwise
