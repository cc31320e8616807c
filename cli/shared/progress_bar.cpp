#include "cli/shared/progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cli/shared/text.h"

namespace nearwise::cli {
namespace {

constexpr std::chrono::milliseconds bar_interval{100};
constexpr std::chrono::seconds line_interval{5};
// Below it, the time spent so far says little about the rest.
constexpr double first_estimate = 0.05;
constexpr const char* clear_line = "\r\033[K";

std::size_t terminal_columns() {
  struct winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// Progress that cannot be written is no error.
void write_stderr(const std::string& text) { static_cast<void>(std::fputs(text.c_str(), stderr)); }

}  // namespace

ProgressStyle choose_progress_style(bool quiet) {
  if (quiet) return ProgressStyle::none;
  const char* const terminal = std::getenv("TERM");
  const bool can_redraw = terminal != nullptr && std::string_view(terminal) != "dumb";
  return can_redraw && isatty(STDERR_FILENO) == 1 ? ProgressStyle::bar : ProgressStyle::lines;
}

ProgressBar::ProgressBar(ProgressStyle style, std::string operation, std::string unit, std::uint64_t units)
    : style_(style),
      operation_(std::move(operation)),
      unit_(std::move(unit)),
      units_(static_cast<double>(units)) {}

void ProgressBar::finish() {
  const std::lock_guard lock(mutex_);
  if (is_drawn_) write_stderr(clear_line);
  is_drawn_ = false;
}

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  if (style_ == ProgressStyle::none || done == 0 || total == 0) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now < next_) return;

  const double elapsed = std::chrono::duration<double>(now - start_).count();
  // The bar is cleared when the work is complete; until then it is never full.
  const double fraction = std::min(0.99, static_cast<double>(done) / static_cast<double>(total));
  const int percent = static_cast<int>(std::floor(fraction * 100));
  const std::string rate =
      unit_.empty() ? "" : fmt::format("{} {}/s  ", format_count(fraction * units_ / elapsed), unit_);
  const std::string left = fraction < first_estimate
                               ? "time left unknown"
                               : format_duration(elapsed / fraction - elapsed) + " left";
  const std::string numbers = fmt::format("{:3} %  {}{}", percent, rate, left);
  if (style_ == ProgressStyle::lines) {
    next_ = now + line_interval;
    write_stderr(fmt::format("nearwise: {} {}\n", operation_, numbers));
    return;
  }
  next_ = now + bar_interval;
  // One column stays free: some terminals wrap a full line.
  const std::size_t taken = operation_.size() + numbers.size() + 5;
  const std::size_t columns = terminal_columns();
  std::string line = operation_ + " ";
  if (columns > taken + 4) {
    const std::size_t width = std::min<std::size_t>(40, columns - taken);
    const auto filled = static_cast<std::size_t>(fraction * static_cast<double>(width));
    line += fmt::format("[{:-<{}}] ", std::string(filled, '#'), width);
  }
  line += numbers;
  write_stderr(clear_line + line.substr(0, columns - 1));
  is_drawn_ = true;
}

ProgressCallback ProgressBar::callback() {
  if (style_ == ProgressStyle::none) return {};
  return [this](const Progress& progress) { update(progress.done, progress.total); };
}

}  // namespace nearwise::cli
