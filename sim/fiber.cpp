#include "sim/fiber.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>
#include <utility>
#include <vector>

#include "model/errors.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define REMAT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REMAT_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define REMAT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define REMAT_TSAN 1
#endif
#endif
#ifdef REMAT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef REMAT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace remat {
namespace {

/// Regions nest 64 deep and replay one another: with sanitizers a stack needs several times as
/// much.
#if defined(REMAT_ASAN) || defined(REMAT_TSAN)
constexpr std::size_t stack_bytes = std::size_t{16} << 20U;
#else
constexpr std::size_t stack_bytes = std::size_t{2} << 20U;
#endif

/// Stacks that a thread has used and will use again: a fiber lives no longer than a run, and the
/// system takes its time to make a stack with a guard page.
class StackPool {
 public:
  ~StackPool() {
    for (boost::context::stack_context& stack : free_)
      maker_.deallocate(stack);
  }
  boost::context::stack_context take() {
    if (free_.empty()) return maker_.allocate();
    const boost::context::stack_context stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give_back(boost::context::stack_context& stack) {
    if (free_.size() == n_kept_max) return maker_.deallocate(stack);
    free_.push_back(stack);
  }

 private:
  static constexpr std::size_t n_kept_max = 16;
  boost::context::protected_fixedsize_stack maker_{stack_bytes};
  std::vector<boost::context::stack_context> free_;
};

StackPool& stacks() {
  thread_local StackPool pool;
  return pool;
}

/// What a fiber gives its stack back to.
struct StackAllocator {
  static void deallocate(boost::context::stack_context& stack) { stacks().give_back(stack); }
};

}  // namespace

/// Both sides of a switch, and what the sanitizers are told of them.
struct Fiber::Stack {
  boost::context::fiber inside;   // valid while the body is suspended
  boost::context::fiber outside;  // valid while it runs
#ifdef REMAT_ASAN
  void* fake_inside = nullptr;
  void* fake_outside = nullptr;
  const void* outside_bottom = nullptr;
  std::size_t outside_size = 0;
  const void* inside_bottom = nullptr;
  std::size_t inside_size = 0;
#endif
#ifdef REMAT_TSAN
  void* thread_inside = __tsan_create_fiber(0);
  void* thread_outside = nullptr;
  ~Stack() {
    __tsan_destroy_fiber(thread_inside);
  }
#endif

  void leave_outside() {
#ifdef REMAT_ASAN
    __sanitizer_start_switch_fiber(&fake_outside, inside_bottom, inside_size);
#endif
#ifdef REMAT_TSAN
    thread_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(thread_inside, 0);
#endif
  }
  void enter_inside() {
#ifdef REMAT_ASAN
    __sanitizer_finish_switch_fiber(fake_inside, &outside_bottom, &outside_size);
#endif
  }
  void leave_inside(bool for_ever) {
#ifdef REMAT_ASAN
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &fake_inside, outside_bottom, outside_size);
#endif
#ifdef REMAT_TSAN
    __tsan_switch_to_fiber(thread_outside, 0);
#endif
    static_cast<void>(for_ever);
  }
  void enter_outside() {
#ifdef REMAT_ASAN
    __sanitizer_finish_switch_fiber(fake_outside, nullptr, nullptr);
#endif
  }
};

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(std::make_unique<Stack>()) {
  const boost::context::stack_context memory = stacks().take();
#ifdef REMAT_ASAN
  stack_->inside_bottom = static_cast<const char*>(memory.sp) - memory.size;
  stack_->inside_size = memory.size;
  // What ran on it before has not returned from its outermost frames.
  __asan_unpoison_memory_region(stack_->inside_bottom, stack_->inside_size);
#endif
  stack_->inside = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(memory.sp, memory.size, memory),
      StackAllocator(), [this](boost::context::fiber&& outside) {
        stack_->enter_inside();
        stack_->outside = std::move(outside);
        run();
        has_ended_ = true;
        stack_->leave_inside(true);
        return std::move(stack_->outside);
      });
}

Fiber::~Fiber() {
  is_left_ = true;
  if (!has_ended_) switch_in();
}

void Fiber::run() {
  try {
    if (!is_left_) body_();
  } catch (const Left&) {
    // Who asked for it waits for nothing more.
  } catch (...) {
    thrown_ = std::current_exception();
  }
}

void Fiber::switch_in() {
  stack_->leave_outside();
  stack_->inside = std::move(stack_->inside).resume();
  stack_->enter_outside();
}

void Fiber::resume() {
  REMAT_INVARIANT(!has_ended_);
  switch_in();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Fiber::suspend() {
  stack_->leave_inside(false);
  stack_->outside = std::move(stack_->outside).resume();
  stack_->enter_inside();
  if (is_left_) throw Left();
}

}  // namespace remat
