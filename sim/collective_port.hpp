#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/op_kinds.hpp"
#include "model/program.hpp"
#include "sim/call_site.hpp"
#include "sim/event_log.hpp"
#include "sim/peers.hpp"

namespace remat {

/// What a rank hands over in a collective, and where.
struct Handed {
  CallSite site;
  std::optional<std::int64_t> microbatch;
  std::string_view run;    // forward, replay or backward
  std::int64_t n = 0;      // elements
  std::uint64_t what = 0;  // as CollectiveRequest has it
  Ring element;
  Duration cost;
};

/// Through which a rank issues its collectives.
class CollectivePort {
 public:
  CollectivePort(const Program& program, EventLog& log) : program_(&program), log_(&log) {}

  /// To whom; they must outlive it. Before the first collective.
  void meet_through(Peers& peers) { peers_ = &peers; }
  /// Hands the element over in the group's next collective, and waits until it is over.
  Meeting issue(std::uint32_t group, Exchange what, const Handed& handed);
  std::size_t n_ranks(std::uint32_t group) const { return program_->groups[group].ranks.size(); }
  /// Of this rank in the group.
  std::size_t place_in(std::uint32_t group) const;
  /// What the rank spent on waiting for others.
  Duration waited() const { return waited_; }

 private:
  const Program* program_;
  EventLog* log_;
  Peers* peers_ = nullptr;
  Duration waited_;
};

}  // namespace remat
