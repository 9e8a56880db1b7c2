#include "sim/collective_port.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/collectives.hpp"
#include "model/errors.hpp"

namespace remat {
namespace {

/// Where in the program, and in what kind of run: the same text on all ranks.
std::string tag_of(const Handed& handed) {
  const CallSite& site = handed.site;
  std::string tag = site.unit.empty() ? std::string("outside regions") : std::string(site.unit);
  if (site.invocation) tag += fmt::format("#{}", *site.invocation);
  if (!site.wrapper.empty()) tag += fmt::format(" {}#{}", site.wrapper, site.call);
  if (handed.microbatch) tag += fmt::format(" mb {}", *handed.microbatch);
  return tag + fmt::format(" {}", handed.run);
}

}  // namespace

std::size_t CollectivePort::place_in(std::uint32_t group) const {
  const std::vector<std::uint32_t>& ranks = program_->groups[group].ranks;
  const auto own = std::find(ranks.begin(), ranks.end(), log_->rank().value_or(0));
  REMAT_INVARIANT(own != ranks.end());
  return static_cast<std::size_t>(own - ranks.begin());
}

Meeting CollectivePort::issue(std::uint32_t group, Exchange what, const Handed& handed) {
  REMAT_INVARIANT(peers_ != nullptr);
  const std::string tag = tag_of(handed);
  const CollectiveRequest call{.group = group,
                               .name = name_of(what),
                               .tag = tag,
                               .n = handed.n,
                               .what = handed.what,
                               .element = handed.element,
                               .cost = handed.cost};
  log_->collective(program_->groups[group].name, call.name, tag, call.n);
  const Instant begun = log_->now();
  Meeting meeting = peers_->meet(call, begun);
  const bool has_met = meeting.code.empty();
  if (has_met) log_->wait_until(meeting.end);
  const std::int64_t spent = has_met ? handed.cost.ns : 0;
  const std::int64_t waited = log_->now().ns - begun.ns - spent;
  waited_.ns = saturated_sum(waited_.ns, std::max<std::int64_t>(0, waited));
  return meeting;
}

}  // namespace remat
