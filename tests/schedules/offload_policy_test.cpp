#include "schedules/offload_policy.hpp"

#include <catch2/catch.hpp>

namespace remat {

TEST_CASE("P11: a group leaves behind its own forward, the last one never",
          "[schedules][offload]") {
  const OffloadPolicy policy(OffloadOptions{});
  CHECK(policy.after_forward(0, 3).begin == 0);
  CHECK_FALSE(policy.after_forward(0, 3).wait);
  CHECK(policy.after_forward(1, 3).begin == 1);
  CHECK(policy.after_forward(1, 3).wait == 0);
  CHECK_FALSE(policy.after_forward(2, 3).begin);
  CHECK(policy.after_forward(2, 3).wait == 1);
  CHECK_FALSE(policy.after_forward(0, 1).begin);
}

TEST_CASE("P11: a group comes back while the one behind it runs backward", "[schedules][offload]") {
  const OffloadPolicy policy(OffloadOptions{});
  CHECK(policy.before_backward(2, 3).begin == 1);
  CHECK_FALSE(policy.before_backward(2, 3).wait);  // it never left
  CHECK(policy.before_backward(1, 3).begin == 0);
  CHECK(policy.before_backward(1, 3).wait == 1);
  CHECK_FALSE(policy.before_backward(0, 3).begin);
  CHECK(policy.before_backward(0, 3).wait == 0);
}

TEST_CASE("P11: what the caller has, a parameter, and what is read later stay",
          "[schedules][offload]") {
  const OffloadPolicy policy(OffloadOptions{});
  CHECK(policy.may_leave({.bytes = 1}));
  CHECK_FALSE(policy.may_leave({.bytes = 0}));
  CHECK_FALSE(policy.may_leave({.bytes = 1, .is_parameters = true}));
  CHECK_FALSE(policy.may_leave({.bytes = 1, .is_callers = true}));
  CHECK_FALSE(policy.may_leave({.bytes = 1, .is_read_later = true}));
  CHECK_FALSE(policy.may_leave({.bytes = 1, .has_other_owner = true}));
}

TEST_CASE("P11: only what is asked for is sent", "[schedules][offload]") {
  const OffloadPolicy inputs({.saved = false, .excluded = false, .cached = false});
  CHECK(inputs.takes(KeptAs::region_input));
  CHECK_FALSE(inputs.takes(KeptAs::saved));
  CHECK_FALSE(inputs.takes(KeptAs::excluded));
  CHECK_FALSE(inputs.takes(KeptAs::cached));
  const OffloadPolicy others({.region_inputs = false});
  CHECK_FALSE(others.takes(KeptAs::region_input));
  CHECK(others.takes(KeptAs::saved));
  CHECK(others.takes(KeptAs::excluded));
  CHECK(others.takes(KeptAs::cached));
}

}  // namespace remat
