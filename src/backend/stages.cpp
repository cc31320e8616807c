#include "backend/stages.h"

#include <algorithm>
#include <mutex>

#include "backend/context_state.h"

namespace nearwise {

// The share of the current stage. Outlives the stage: its context may be kept.
class Stages::Share {
 public:
  Share(Context context, const char* operation)
      : context_(std::move(context)), throttle_(context_.state().clock), operation_(operation) {}

  void start(double share) {
    const std::lock_guard lock(mutex_);
    begin_ = end_;
    end_ += (1 - end_) * share;
    report(begin_);
  }

  void abandon() {
    const std::lock_guard lock(mutex_);
    end_ = std::max(begin_, reported_);
  }

  void update(const Progress& progress) {
    const std::lock_guard lock(mutex_);
    const double done =
        progress.total == 0 ? 0 : static_cast<double>(progress.done) / static_cast<double>(progress.total);
    report(begin_ + (end_ - begin_) * std::min(1.0, done));
  }

  void finish() {
    const std::lock_guard lock(mutex_);
    context_.state().options.progress({operation_, total, total});
  }

 private:
  // A stage may run several operations one after another: the largest report counts.
  void report(double done) {
    if (done <= reported_ || !throttle_.is_due()) return;
    reported_ = done;
    const auto units = static_cast<std::uint64_t>(done * static_cast<double>(total));
    context_.state().options.progress({operation_, std::min(units, total - 1), total});
  }

  const Context context_;
  std::mutex mutex_;  // guards the rest and serialises the callback
  ReportThrottle throttle_;
  const char* const operation_;
  double begin_ = 0;  // of the current stage
  double end_ = 0;
  double reported_ = 0;
};

Stages::Stages(const Context& context, const char* operation)
    : context_(context),
      share_(context.state().options.progress ? std::make_shared<Share>(context, operation) : nullptr) {}

Context Stages::next(double cost, double rest) {
  if (share_ == nullptr) return context_;
  share_->start(cost + rest > 0 ? cost / (cost + rest) : 1);
  return Context(std::make_shared<Context::State>(
      context_.state(), [share = share_](const Progress& progress) { share->update(progress); },
      context_.state().cancel));
}

void Stages::abandon() {
  if (share_ != nullptr) share_->abandon();
}

void Stages::finish() {
  if (share_ != nullptr) share_->finish();
}

}  // namespace nearwise
