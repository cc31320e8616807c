#include "cli/quantizer/coding.h"

#include "cli/shared/files.h"

namespace nearwise::cli {

void check_coding_output(const Session& session, const CodingArguments& arguments, ElementType type) {
  require_suffix_for(Content::vectors, arguments.output);
  if (element_type_of(arguments.output).value_or(type) != type)
    refuse(session, "the output is {}, which '{}' cannot hold", name(type), arguments.output.string());
  check_output(session, arguments.output, {arguments.quantizer, arguments.input});
}

ExitCode report_coding(const Session& session, const CodingArguments& arguments, const Quantizer& quantizer,
                       double seconds, Json json, const std::string& what) {
  json.update({{"kind", quantizer.kind()},
               {"code_bytes", quantizer.code_bytes()},
               {"seconds", seconds},
               {"output", arguments.output.string()}});
  conclude(session, json, fmt::format("wrote {} to {}, {:.3g} s", what, arguments.output.string(), seconds));
  return ExitCode::ok;
}

}  // namespace nearwise::cli
