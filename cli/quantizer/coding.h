// What quantizer encode and decode share: their arguments, checks, and the report.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "cli/shared/context_options.h"
#include "cli/shared/quantizer_file.h"
#include "cli/shared/session.h"
#include "nearwise/types.h"

namespace nearwise::cli {

// At most a few seconds of work.
inline constexpr std::size_t coding_batch_rows = 32768;

struct CodingArguments {
  std::filesystem::path quantizer;
  std::filesystem::path input;
  std::filesystem::path output;
  AdditiveEncodeOptions additive;
  std::size_t seed = 0;
  ContextArguments context;
};

// Reports before the work what would fail after it; `type` is that of the output.
void check_coding_output(const Session& session, const CodingArguments& arguments, ElementType type);

ExitCode report_coding(const Session& session, const CodingArguments& arguments, const Quantizer& quantizer,
                       double seconds, Json json, const std::string& what);

}  // namespace nearwise::cli
