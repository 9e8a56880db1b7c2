#include "properties/invariants/checker.hpp"

#include <algorithm>
#include <array>

#include "model/errors.hpp"

namespace remat {

namespace {

/// Kind → places of the invariants that want to see it, in the order in which they do.
using WantedBy = std::array<std::vector<std::uint8_t>, kind_count>;

WantedBy wanted_by() {
  WantedBy wanted;
  for (std::size_t kind = 0; kind < kind_count; ++kind) {
    // unpack_follows_replay comes first in every list but judges last: it is silent about a refused
    // read that another invariant has explained at the same event (F5).
    const std::span<const InvariantRow> rows = invariants();
    for (std::size_t place = 1; place < rows.size(); ++place)
      if (rows[place].kinds[kind]) wanted[kind].push_back(static_cast<std::uint8_t>(place));
    if (rows.front().kinds[kind]) wanted[kind].push_back(0);
  }
  return wanted;
}

const std::vector<std::uint8_t>& wanted_by(Kind kind) {
  static const WantedBy wanted = wanted_by();
  return wanted[static_cast<std::size_t>(kind)];
}

}  // namespace

Checker::Checker(std::span<const std::string> names) : names_(names.begin(), names.end()) {
  running_.reserve(invariants().size());
  for (const InvariantRow& row : invariants())
    running_.push_back({row.name, row.make()});
  for (const std::string& name : names)
    REMAT_INVARIANT(invariant_named(name) != nullptr);
}

void Checker::observe(const EventView& event) {
  ++n_events_;
  facts_.begin(event);
  for (const std::uint8_t place : wanted_by(event.kind()))
    running_[place].invariant->observe(event, facts_, report_);
  facts_.end(event);
}

bool Checker::is_asked_for(std::string_view invariant) const {
  return names_.empty() || std::find(names_.begin(), names_.end(), invariant) != names_.end();
}

Verdict Checker::finish() {
  for (Running& running : running_)
    running.invariant->finish(facts_, report_);
  return stop();
}

Verdict Checker::stop() {
  Verdict verdict;
  verdict.n_events = n_events_;
  for (const Finding& finding : report_.findings())
    if (is_asked_for(finding.invariant)) verdict.findings.push_back(finding);
  for (const NotChecked& unchecked : report_.unchecked())
    if (is_asked_for(unchecked.invariant)) verdict.not_checked.push_back(unchecked);
  for (const Running& running : running_)
    if (is_asked_for(running.name)) verdict.n_left_out += report_.n_left_out(running.name);
  std::stable_sort(verdict.findings.begin(), verdict.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     if (a.seq != b.seq) return a.seq < b.seq;
                     return invariant_place(a.invariant) < invariant_place(b.invariant);
                   });
  return verdict;
}

Verdict check(const Trace& trace, std::span<const std::string> names) {
  Checker checker(names);
  for (std::size_t i = 0; i < trace.size(); ++i)
    checker.observe(trace[i]);
  return checker.finish();
}

}  // namespace remat
