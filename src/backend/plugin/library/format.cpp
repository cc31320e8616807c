// fmt, compiled into the plugin, which otherwise would have to bring its shared library along.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include <string>

// The one function that is called, by fmt::format: what is not used would not be compiled.
[[gnu::used]] static std::string (*const used)(fmt::string_view, fmt::format_args) = fmt::vformat;
