#include "nearwise/context.h"

#include <charconv>

#include "backend/backend.h"
#include "backend/context_state.h"
#include "core/check.h"
#include "nearwise/cuda_device.h"
#include "nearwise/machine.h"

namespace nearwise {
namespace {

// Far above any machine; a larger number is a mistake (an uninitialised value, bytes instead of threads).
constexpr int most_threads = 4096;

std::string device_names() {
  std::string names;
  for (const DeviceInfo& device : devices()) names += (names.empty() ? "" : ", ") + device.name;
  return names;
}

int thread_count(int requested) {
  require(requested >= 0 && requested <= most_threads, "context: threads must be 0 to {}, got {}",
          most_threads, requested);
  return requested == 0 ? available_threads() : requested;
}

}  // namespace

Context::State::State(const Backend& used_backend, Place used_place, ContextOptions given)
    : backend(used_backend),
      place(used_place),
      options(std::move(given)),
      clock(options.clock ? options.clock : Clock(machine_clock)),
      threads(std::make_shared<const Threads>(thread_count(options.threads))),
      budget(std::make_shared<MemoryBudget>(options.memory_limit)) {
  budget->take(options.memory_in_use);
  backend.check_options(options);
}

namespace {

ContextOptions with_callback(ContextOptions options, ProgressCallback progress) {
  options.progress = std::move(progress);
  return options;
}

}  // namespace

Context::State::State(const State& parent, ProgressCallback progress, CancelFlag flag)
    : backend(parent.backend),
      place(parent.place),
      options(with_callback(parent.options, std::move(progress))),
      clock(parent.clock),
      threads(parent.threads),
      budget(parent.budget),
      cancel(std::move(flag)) {}

Context Context::cpu(ContextOptions options) {
  return Context(std::make_shared<State>(*cpu_backend(), Place{DeviceKind::cpu, 0}, std::move(options)));
}

Context Context::cuda(int ordinal, ContextOptions options) {
  const Backend* backend = cuda_backend();
  if (ordinal < 0 || backend == nullptr || ordinal >= backend->device_count()) {
    const std::string problem = cuda_driver().problem;
    fail(ErrorCode::unsupported, "context: device cuda:{} is not available{}{}; devices here: {}", ordinal,
         problem.empty() ? "" : ": ", problem, device_names());
  }
  return Context(std::make_shared<State>(*backend, Place{DeviceKind::cuda, ordinal}, std::move(options)));
}

Context Context::on(const std::string& device, ContextOptions options) {
  if (device == "cpu") return cpu(std::move(options));
  if (device == "cuda") return cuda(0, std::move(options));
  if (device.starts_with("cuda:")) {
    int ordinal = 0;
    const char* const end = device.data() + device.size();
    const auto [rest, error] = std::from_chars(device.data() + 5, end, ordinal);
    if (error == std::errc() && rest == end) return cuda(ordinal, std::move(options));
  }
  fail(ErrorCode::invalid_argument, "context: device must be cpu, cuda or cuda:N, got '{}'; devices here: {}",
       device, device_names());
}

Place Context::place() const { return state_->place; }
int Context::threads() const { return state_->threads->count(); }
std::uint64_t Context::seed() const { return state_->options.seed; }
std::uint64_t Context::memory_limit() const { return state_->budget->limit(); }
std::uint64_t Context::memory_used() const { return state_->budget->used(); }
std::uint64_t Context::memory_peak() const { return state_->budget->peak(); }

std::string Context::isa() const {
  if (!state_->options.isa.empty()) return state_->options.isa;
  return state_->place.kind == DeviceKind::cpu ? cpu_instruction_sets().front() : "f32";
}

Context Context::with_progress(ProgressCallback progress) const {
  return Context(std::make_shared<State>(*state_, std::move(progress), CancelFlag()));
}

Context Context::without_progress() const {
  return Context(std::make_shared<State>(*state_, ProgressCallback(), state_->cancel));
}

void Context::cancel() const { state_->cancel.set(); }
bool Context::cancelled() const { return state_->cancel.is_set(); }

CancellationScope::CancellationScope(Context context)
    : context_(std::move(context)), before_(replace_thread_cancel_flag(&context_.state().cancel)) {}
CancellationScope::~CancellationScope() {
  replace_thread_cancel_flag(static_cast<const CancelFlag*>(before_));
}

}  // namespace nearwise
