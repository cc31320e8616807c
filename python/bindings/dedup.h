// Options of the removal of near-duplicates from Python.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>
#include <string>

#include "bindings.h"
#include "nearwise/dedup.h"

namespace nearwise::python {

using Scores = nb::ndarray<nb::numpy, const double, nb::ndim<1>, nb::c_contig>;

// scores must outlive the options.
DedupOptions dedup_options(const std::string& metric, bool keeps_medoids, const std::optional<Scores>& scores,
                           bool connected);

}  // namespace nearwise::python
