#include "properties/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/op_kinds.hpp"

namespace remat {
namespace {

constexpr std::array<std::string_view, sometimes_count> sometimes_names = {
    "replayed",         "cut_short",          "replayed_whole",
    "replayed_twice",   "nested_replay",      "dead_holder",
    "served",           "kept_draw_served",   "written_in_replay",
    "drawn_in_replay",  "effect_in_replay",   "raised",
    "gradients_summed", "microbatches_mixed", "group_asked",
    "counts_told",      "bytes_told",         "caught",
    "offloaded",        "exchanged_in_replay"};

const std::string none = "none";

std::size_t place_of(const OpKind& kind) {
  return static_cast<std::size_t>(&kind - op_kinds().data());
}

}  // namespace

std::string_view name_of(Sometimes sometimes) {
  return sometimes_names[static_cast<std::size_t>(sometimes)];
}

std::vector<Coverage::Cell> Coverage::observe(const GeneratedCase& generated,
                                              const CaseOutcome& outcome, const Trace& trace) {
  ++n_cases_;
  for (std::size_t f = 0; f < feature_count; ++f)
    features_[f] += (generated.features >> f) & 1U;
  ++strategies_[static_cast<std::size_t>(generated.strategy)];
  edits_.resize(remat::edits().size());
  ++edits_[static_cast<std::size_t>(generated.edit)];
  observe_program(generated.scenario.program);
  observe_events(generated, trace);
  const std::string& code = outcome.code.empty() ? none : outcome.code;
  if (!outcome.code.empty()) ++codes_[outcome.code];
  std::vector<Cell> firsts;
  const auto count = [&](const std::string& invariant) {
    Cell cell{generated.scenario.protocol, code, invariant};
    if (++cells_[cell] == 1) firsts.push_back(std::move(cell));
  };
  if (outcome.invariants.empty()) count(none);
  for (std::size_t i = 0; i < outcome.invariants.size(); ++i) {
    const auto begin = outcome.invariants.begin();
    const auto here = begin + static_cast<std::ptrdiff_t>(i);
    if (std::find(begin, here, *here) == here) count(*here);
  }
  return firsts;
}

void Coverage::observe_program(const Program& program) {
  op_kinds_.resize(remat::op_kinds().size());
  std::array<bool, 128> seen{};
  for (const Statement& statement : program.forwards.front().statements) {
    const auto* op = std::get_if<OpStatement>(&statement);
    if (op == nullptr) continue;
    const std::size_t place = place_of(*op->kind);
    if (!std::exchange(seen[place], true)) ++op_kinds_[place];
  }
}

/// What the events of one rank of a case have shown so far.
struct Coverage::Seen {
  std::vector<std::int64_t> replayed;  // frames
  std::size_t n_asked = 0;             // slots that were asked for and not handed out yet
  bool was_forward = false;            // the phase before was a forward
};

void Coverage::observe_events(const GeneratedCase& generated, const Trace& trace) {
  noted_ = {};
  std::vector<Seen> by_rank(generated.scenario.n_ranks);
  for (std::size_t i = 0; i < trace.size(); ++i) {
    Seen& seen = by_rank[static_cast<std::size_t>(trace[i].integer(Field::rank).value_or(0))];
    observe_run(trace[i], seen);
    observe_slot(trace[i], seen);
    const bool sets_generator = trace[i].kind() == Kind::rng_set && i > 0;
    if (sets_generator && trace[i - 1].kind() == Kind::sac_hit) note(Sometimes::kept_draw_served);
  }
  for (const PhaseStep& step : generated.scenario.order)
    if (step.group) note(Sometimes::group_asked);
  for (std::size_t i = 0; i < sometimes_count; ++i)
    sometimes_[i] += noted_[i] ? 1 : 0;
}

void Coverage::observe_run(const EventView& event, Seen& seen) {
  const bool in_replay = event.phase() == Phase::replay;
  switch (event.kind()) {
    case Kind::header: {
      const std::string_view expect = event.text(Field::expect);
      if (expect.find("op_counts") != std::string_view::npos) note(Sometimes::counts_told);
      if (expect.find("peak_bytes") != std::string_view::npos) note(Sometimes::bytes_told);
      break;
    }
    case Kind::phase_begin:
      if (event.phase() == Phase::forward && std::exchange(seen.was_forward, true))
        note(Sometimes::microbatches_mixed);
      if (event.phase() != Phase::forward) seen.was_forward = false;
      break;
    case Kind::unit_begin:
      if (!in_replay || event.boolean(Field::checkpointed) == true) break;
      note(Sometimes::replayed);
      if (const auto frame = event.integer(Field::frame)) {
        if (std::find(seen.replayed.begin(), seen.replayed.end(), *frame) != seen.replayed.end())
          note(Sometimes::replayed_twice);
        seen.replayed.push_back(*frame);
      }
      break;
    case Kind::early_stop:
      note(Sometimes::cut_short);
      break;
    case Kind::unit_end:
      if (in_replay && event.text(Field::ended_by) == "return") note(Sometimes::replayed_whole);
      break;
    case Kind::error:
      note(event.is_true(Field::caught) ? Sometimes::caught : Sometimes::raised);
      break;
    case Kind::copy_end:
      if (event.text(Field::direction) == "h2d") note(Sometimes::offloaded);
      break;
    case Kind::collective:
      if (in_replay) note(Sometimes::exchanged_in_replay);
      break;
    case Kind::op:
      if (event.text(Field::name) == "grad_sum") note(Sometimes::gradients_summed);
      break;
    default:
      break;
  }
}

void Coverage::observe_slot(const EventView& event, Seen& seen) {
  const bool in_replay = event.phase() == Phase::replay;
  switch (event.kind()) {
    case Kind::inputs_unpack_begin:
      if (seen.n_asked > 1) note(Sometimes::nested_replay);
      break;
    case Kind::unpack_begin:
      ++seen.n_asked;
      break;
    case Kind::unpack:
      if (seen.n_asked > 0) --seen.n_asked;
      break;
    case Kind::repack:
      if (event.boolean(Field::holder_alive) == false) note(Sometimes::dead_holder);
      break;
    case Kind::sac_hit:
      note(Sometimes::served);
      break;
    case Kind::mutate:
      if (in_replay) note(Sometimes::written_in_replay);
      break;
    case Kind::rng:
      if (in_replay) note(Sometimes::drawn_in_replay);
      break;
    case Kind::side_effect:
      if (in_replay) note(Sometimes::effect_in_replay);
      break;
    default:
      break;
  }
}

void Coverage::add(const Coverage& other) {
  n_cases_ += other.n_cases_;
  for (const auto& [cell, n] : other.cells_)
    cells_[cell] += n;
  for (const auto& [code, n] : other.codes_)
    codes_[code] += n;
  const auto add_all = [](auto& to, const auto& from) {
    for (std::size_t i = 0; i < from.size(); ++i)
      to[i] += from[i];
  };
  add_all(features_, other.features_);
  add_all(strategies_, other.strategies_);
  add_all(sometimes_, other.sometimes_);
  op_kinds_.resize(std::max(op_kinds_.size(), other.op_kinds_.size()));
  add_all(op_kinds_, other.op_kinds_);
  edits_.resize(std::max(edits_.size(), other.edits_.size()));
  add_all(edits_, other.edits_);
}

std::map<std::string, std::uint64_t> Coverage::op_kinds() const {
  std::map<std::string, std::uint64_t> kinds;
  for (std::size_t i = 0; i < op_kinds_.size(); ++i)
    if (op_kinds_[i] > 0) kinds[std::string(remat::op_kinds()[i].name)] = op_kinds_[i];
  return kinds;
}

std::map<std::string, std::uint64_t> Coverage::edits() const {
  std::map<std::string, std::uint64_t> named;
  for (std::size_t i = 0; i < edits_.size(); ++i)
    named[std::string(remat::edits()[i].name)] = edits_[i];
  return named;
}

std::map<std::string, std::uint64_t> Coverage::codes() const {
  std::map<std::string, std::uint64_t> codes;
  for (const EditRow& row : remat::edits())
    if (!row.code.empty()) codes[std::string(row.code)] = 0;
  for (const auto& [code, n] : codes_)
    codes[code] = n;
  return codes;
}

std::vector<std::string> health_complaints(const Coverage& coverage) {
  constexpr std::uint64_t cases_min = 10'000;
  std::vector<std::string> complaints;
  const std::uint64_t n = coverage.n_cases();
  if (n < cases_min) return complaints;
  for (std::size_t f = 0; f < feature_count; ++f) {
    const auto feature = static_cast<Feature>(f);
    const std::uint64_t with = coverage.with(feature);
    if (with * 10 < n * 3 || with * 10 > n * 7) {
      complaints.push_back(fmt::format("{} of {} cases have the feature {}; expected 30 to 70 %",
                                       with, n, name_of(feature)));
    }
  }
  for (std::size_t i = 0; i < sometimes_count; ++i) {
    const auto sometimes = static_cast<Sometimes>(i);
    if (coverage.with(sometimes) * 1000 < n) {
      complaints.push_back(fmt::format("'{}' happened in {} of {} cases; expected 1 in 1,000",
                                       name_of(sometimes), coverage.with(sometimes), n));
    }
  }
  for (const auto& [code, seen] : coverage.codes()) {
    if (seen * 2000 < n) {
      complaints.push_back(
          fmt::format("{} of {} cases ended in {}; expected 1 in 2,000", seen, n, code));
    }
  }
  return complaints;
}

}  // namespace remat
