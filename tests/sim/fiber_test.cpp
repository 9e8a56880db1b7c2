#include "sim/fiber.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace remat {

TEST_CASE("a fiber goes on where it suspended itself", "[sim][fiber]") {
  std::vector<int> seen;
  Fiber* self = nullptr;
  Fiber fiber([&] {
    for (int i = 0; i < 3; ++i) {
      seen.push_back(i);
      self->suspend();
    }
  });
  self = &fiber;
  CHECK(seen.empty());
  for (int i = 0; i < 3; ++i) {
    fiber.resume();
    CHECK(seen.back() == i);
    CHECK_FALSE(fiber.has_ended());
  }
  fiber.resume();
  CHECK(fiber.has_ended());
  CHECK(seen.size() == 3);
}

TEST_CASE("what a fiber's body throws comes out where it was resumed", "[sim][fiber]") {
  Fiber* self = nullptr;
  Fiber fiber([&] {
    self->suspend();
    throw std::runtime_error("told");
  });
  self = &fiber;
  fiber.resume();
  CHECK_THROWS_WITH(fiber.resume(), "told");
  CHECK(fiber.has_ended());
}

TEST_CASE("a fiber that is left in the middle lets go of its variables", "[sim][fiber]") {
  const auto held = std::make_shared<int>(1);
  bool came_back = false;
  {
    Fiber* self = nullptr;
    Fiber fiber([&, copy = std::weak_ptr<int>(held)] {
      const std::shared_ptr<int> own = copy.lock();
      self->suspend();
      came_back = true;
    });
    self = &fiber;
    fiber.resume();
    CHECK(held.use_count() == 2);
  }
  CHECK(held.use_count() == 1);
  CHECK_FALSE(came_back);
}

TEST_CASE("a fiber that never began runs nothing", "[sim][fiber]") {
  bool has_run = false;
  {
    const Fiber fiber([&] { has_run = true; });
  }
  CHECK_FALSE(has_run);
}

TEST_CASE("exceptions are thrown and caught within a fiber across its suspensions",
          "[sim][fiber]") {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<std::string> caught;
  fibers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    fibers.push_back(std::make_unique<Fiber>([&, i] {
      try {
        fibers[static_cast<std::size_t>(i)]->suspend();
        throw std::runtime_error(std::to_string(i));
      } catch (const std::runtime_error& error) {
        caught.emplace_back(error.what());
      }
      fibers[static_cast<std::size_t>(i)]->suspend();
    }));
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (const std::unique_ptr<Fiber>& fiber : fibers)
      fiber->resume();
  }
  CHECK(caught == std::vector<std::string>{"0", "1", "2", "3"});
}

}  // namespace remat
