#include "properties/expectation.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "model/units.hpp"
#include "properties/reference_backward.hpp"

namespace remat {
namespace {

using Counts = std::map<std::string_view, std::int64_t>;

std::string_view name_at(const Program& program, std::size_t statement) {
  const Statement& at = program.forwards.front().statements[statement];
  if (const auto* op = std::get_if<OpStatement>(&at)) return op->name;
  return std::get<SideEffect>(at).name;
}

/// Walks the order of phases with the graphs that are alive.
class OrderWalk {
 public:
  OrderWalk(const Scenario& scenario, const Program& program, const ReferenceForward& forward,
            ReplayedEffects effects)
      : scenario_(&scenario), program_(&program), forward_(&forward), effects_(effects) {}

  Expectation walked() {
    find_last_uses();
    const PhaseOrder& order = scenario_->order;
    for (std::size_t at = 0; at < order.size(); ++at)
      observe(at, order[at]);
    Expectation expectation;
    const bool diverges = replays_take_other_ways();
    if (!diverges) expectation.peak_bytes = peak_;
    if (is_split_) return expectation;
    expectation.resident_bytes = resident_max_;
    if (counts_agree_ && !diverges && !catches_) {
      for (const auto& [name, n] : *step_counts_)
        expectation.op_counts.emplace_back(name, n);
    }
    return expectation;
  }

 private:
  /// A body that does otherwise in a replay is wrong on purpose: what it needs is not the
  /// protocol's to bound.
  bool replays_take_other_ways() const {
    const std::vector<Statement>& statements = statements_of(*program_);
    return std::any_of(statements.begin(), statements.end(), [](const Statement& statement) {
      const auto* branch = std::get_if<BranchBegin>(&statement);
      return branch != nullptr && branch->in_replay;
    });
  }

  void find_last_uses() {
    const PhaseOrder& order = scenario_->order;
    is_last_use_.resize(order.size(), false);
    std::map<std::int64_t, bool> used_later;
    for (std::size_t at = order.size(); at-- > 0;) {
      if (!order[at].microbatch) continue;
      bool& is_used = used_later[*order[at].microbatch];
      is_last_use_[at] = order[at].kind != PhaseStep::Kind::forward && !is_used;
      is_used = order[at].kind != PhaseStep::Kind::forward;
    }
  }

  std::int64_t alive() const {
    std::int64_t bytes = 0;
    for (const auto& [microbatch, kept] : graphs_)
      bytes = saturated_sum(bytes, kept);
    return bytes;
  }

  void count(const std::vector<std::size_t>& ran) {
    const std::vector<Statement>& statements = statements_of(*program_);
    for (const std::size_t statement : ran) {
      const bool is_effect = std::holds_alternative<SideEffect>(statements[statement]);
      if (is_effect && effects_ == ReplayedEffects::are_findings) continue;
      ++counts_[name_at(*program_, statement)];
    }
  }

  void observe(std::size_t at, const PhaseStep& step) {
    const std::int64_t microbatch = step.microbatch.value_or(0);
    // How far a phase came that the loop caught an error of is not told here.
    catches_ |= step.catches;
    switch (step.kind) {
      case PhaseStep::Kind::step_begin:
        counts_.clear();
        return;
      case PhaseStep::Kind::step_end:
        graphs_.clear();
        resident_max_ = std::max(resident_max_, std::exchange(resident_, 0));
        end_step();
        return;
      case PhaseStep::Kind::update:
      case PhaseStep::Kind::zero_grad:
      case PhaseStep::Kind::session_open:
      case PhaseStep::Kind::session_close:
      case PhaseStep::Kind::session_clear:
      case PhaseStep::Kind::prefire:
        return;
      case PhaseStep::Kind::forward:
        groups_.erase(microbatch);
        graphs_.erase(microbatch);
        peak_ = std::max(peak_, saturated_sum(alive(), forward_->peak_bytes()));
        graphs_[microbatch] = forward_->resident_bytes();
        // Which forward is the last depends on what is raised, where the loop goes on then.
        resident_ = catches_ ? std::max(resident_, alive()) : alive();
        count(forward_->ran());
        return;
      case PhaseStep::Kind::backward: {
        const ReferenceBackward& backward = forward_->backward(step.wrt, step.retain);
        peak_ = std::max(peak_, saturated_sum(alive(), backward.peak_bytes));
        count(backward.ran);
        // One that failed may leave all that it had brought: nobody has asked for the rest.
        graphs_[microbatch] = step.catches
                                  ? saturated_sum(graphs_[microbatch], backward.peak_bytes)
                                  : saturated_sum(forward_->resident_bytes(), backward.left_bytes);
        // A group that asks twice replays once: how much of it the first has asked is not told.
        if (step.group && !groups_[microbatch].insert(*step.group).second) counts_agree_ = false;
        break;
      }
      case PhaseStep::Kind::dx:
      case PhaseStep::Kind::dw:
        // What dx leaves for dw stays until then: each micro-batch may hold all of its own.
        is_split_ = true;
        graphs_[microbatch] =
            saturated_sum(forward_->resident_bytes(), forward_->bytes_of_all_gradients());
        peak_ = std::max(peak_, alive());
        break;
    }
    if (is_last_use_[at]) graphs_.erase(microbatch);
  }

  void end_step() {
    if (!step_counts_) {
      step_counts_ = counts_;
    } else {
      counts_agree_ &= *step_counts_ == counts_;
    }
  }

  const Scenario* scenario_;
  const Program* program_;
  const ReferenceForward* forward_;
  ReplayedEffects effects_;
  std::vector<bool> is_last_use_;  // by phase: nothing before the next forward needs the graph
  std::map<std::int64_t, std::int64_t> graphs_;  // micro-batch → bytes that its graph keeps
  std::map<std::int64_t, std::set<std::int64_t>> groups_;  // by micro-batch
  std::int64_t peak_ = 0;
  std::int64_t resident_ = 0;
  std::int64_t resident_max_ = 0;
  bool is_split_ = false;
  bool catches_ = false;
  Counts counts_;
  std::optional<Counts> step_counts_;
  bool counts_agree_ = true;
};

bool checkpoints_in_excluded(const Program& program) {
  const std::vector<Statement>& statements = statements_of(program);
  std::size_t end = 0;  // of the outermost excluded region that is gone through
  for (std::size_t at = 0; at < statements.size(); ++at) {
    if (const auto* wrapper = std::get_if<WrapperBegin>(&statements[at]))
      end = std::max(end, wrapper->end);
    const auto* region = std::get_if<RegionBegin>(&statements[at]);
    if (region != nullptr && region->kind == RegionKind::checkpointed && at < end) return true;
  }
  return false;
}

/// Code in a catch raises in some runs and not in others: what the program runs is not told here.
bool catches_now_and_then(const Program& program) {
  const std::vector<Statement>& statements = statements_of(program);
  std::size_t end = 0;  // of the outermost catch that is gone through
  for (std::size_t at = 0; at < statements.size(); ++at) {
    if (const auto* caught = std::get_if<CatchBegin>(&statements[at]))
      end = std::max(end, caught->end);
    const auto* raise = std::get_if<Raise>(&statements[at]);
    if (raise != nullptr && at < end && (raise->times || raise->is_a_hooks())) return true;
  }
  return false;
}

Expectation of_one_rank(const Scenario& scenario, const Program& program, ReplayedEffects effects) {
  if (catches_now_and_then(program)) return {};
  const ReferenceRules rules = reference_rules(scenario, program);
  const ReferenceForward forward(program, rules);
  Expectation expectation = OrderWalk(scenario, program, forward, effects).walked();
  // The formulas are those of protocols.md: what the published wrappers keep beside is not in them,
  // nor what a checkpointed region in an excluded body does.
  const bool is_as_published = rules.excludes && scenario.options.compat == Compat::public_code;
  if (is_as_published || (rules.excludes && checkpoints_in_excluded(program))) {
    expectation.peak_bytes.reset();
    expectation.resident_bytes.reset();
  }
  return expectation;
}

/// A bound that holds for each of two; none where one of them has none.
std::optional<std::int64_t> larger(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
}

/// Bounds are a device's, counts those of all ranks.
Expectation together(const Expectation& a, const Expectation& b) {
  Expectation both;
  both.peak_bytes = larger(a.peak_bytes, b.peak_bytes);
  both.resident_bytes = larger(a.resident_bytes, b.resident_bytes);
  if (a.op_counts.empty() || b.op_counts.empty()) return both;
  std::map<std::string, std::int64_t> counts(a.op_counts.begin(), a.op_counts.end());
  for (const auto& [name, n] : b.op_counts)
    counts[name] += n;
  both.op_counts.assign(counts.begin(), counts.end());
  return both;
}

}  // namespace

Expectation expectation_of(const Scenario& scenario, ReplayedEffects effects) {
  const Expectation first = of_one_rank(scenario, scenario.program, effects);
  Expectation all = first;
  for (std::uint32_t rank = 1; rank < scenario.n_ranks; ++rank) {
    const bool is_same = scenario.other_programs.empty();
    all =
        together(all, is_same ? first : of_one_rank(scenario, scenario.program_of(rank), effects));
  }
  return all;
}

}  // namespace remat
