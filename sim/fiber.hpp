#pragma once

#include <exception>
#include <functional>
#include <memory>

namespace remat {

/// Code with a stack of its own, which another runs piece by piece: up to where it suspends itself.
/// On one thread; what it throws comes out of `resume`. A body that has not ended when its fiber
/// goes is left from where it stands, its variables with it.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the body on, until it suspends itself or ends. Not from within a body.
  void resume();
  /// Of the body alone: back to who resumed it. Not from within a handler of an exception: which
  /// one is being handled, the thread knows and not the fiber.
  void suspend();
  bool has_ended() const { return has_ended_; }

 private:
  struct Stack;
  struct Left {};  // thrown in a body that is to end where it stands
  void run();
  void switch_in();

  std::function<void()> body_;
  std::exception_ptr thrown_;
  bool has_ended_ = false;
  bool is_left_ = false;
  std::unique_ptr<Stack> stack_;
};

}  // namespace remat
