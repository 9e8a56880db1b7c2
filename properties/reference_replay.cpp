#include "properties/reference_replay.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/units.hpp"

namespace remat {
namespace {

class Walker {
 public:
  Walker(const Program& program, const ReferenceRules& rules, const ReferenceWrappers& wrappers,
         const ReferenceStretch& stretch)
      : program_(&program),
        rules_(&rules),
        wrappers_(&wrappers),
        stretch_(stretch),
        holds_(program.buffers.size(), 0),
        kept_(program.buffers.size(), false) {
    walk_.is_made.assign(program.buffers.size(), false);
  }

  ReferenceWalk finish() {
    const State state{.keeps = stretch_.saves == ReferenceSaves::kept ||
                               rules_->regions == ReferenceRules::Regions::plain ||
                               stretch_.frame == ReferenceGraph::no_frame,
                      .grad = true,
                      .frame = stretch_.frame};
    if (run(stretch_.begin, stretch_.end, state)) pack_boundaries(state);
    for (std::uint32_t i = 0; i < kept_.size(); ++i) {
      const std::int64_t bytes = program_->buffers[BufferId(i)].bytes;
      if (kept_[i]) walk_.kept_bytes = saturated_sum(walk_.kept_bytes, bytes);
    }
    return std::move(walk_);
  }

 private:
  struct State {
    bool keeps = true;  // what an op saves is kept by its node
    bool grad = true;
    std::size_t frame = ReferenceGraph::no_frame;  // the innermost region with holders
    bool is_excluded = false;                      // an excluded region's body
  };

  const ProgramValue& value(ValueId id) const { return program_->values[id]; }
  bool is_inside(BufferId buffer) const {
    return program_->buffers[buffer].role == BufferRole::none && walk_.is_made[buffer.index()];
  }
  bool in_own_frame(const State& state) const {
    return stretch_.frame != ReferenceGraph::no_frame && state.frame == stretch_.frame &&
           !state.is_excluded;
  }

  /// A variable comes to be, on a buffer of its own or on one that is there.
  void make(ValueId made, bool is_new) {
    const BufferId buffer = value(made).buffer;
    if (program_->buffers[buffer].role != BufferRole::none) return;
    if (!is_new && !walk_.is_made[buffer.index()]) return;  // from outside, or served
    if (!walk_.is_made[buffer.index()]) {
      walk_.is_made[buffer.index()] = true;
      live_.add(program_->buffers[buffer].bytes);
      walk_.peak_bytes = std::max(walk_.peak_bytes, live_.count());
    }
    ++holds_[buffer.index()];
  }
  void drop(ValueId gone) {
    if (served_.erase(gone.index()) != 0) return;
    const BufferId buffer = value(gone).buffer;
    if (!is_inside(buffer) || holds_[buffer.index()] == 0) return;
    if (--holds_[buffer.index()] > 0 || kept_[buffer.index()]) return;
    live_.subtract(program_->buffers[buffer].bytes);
    walk_.is_made[buffer.index()] = false;
  }
  void keep(ValueId saved) {
    const BufferId buffer = value(saved).buffer;
    if (is_inside(buffer)) kept_[buffer.index()] = true;
  }

  /// A save, or an argument of a nested region. True where the replay ends here.
  bool pack(ValueId saved, const State& state) {
    if (state.keeps) keep(saved);
    if (!in_own_frame(state)) return false;
    walk_.packed.push_back(saved);
    return stretch_.stop_after != 0 && walk_.packed.size() == stretch_.stop_after;
  }

  /// P7: what the frame's region returned. One that runs without gradients has no boundaries, nor
  /// one that raised.
  void pack_boundaries(const State& state) {
    if (!rules_->remat || stretch_.frame == ReferenceGraph::no_frame) return;
    const ReferenceWrapper* region = wrappers_->at(stretch_.frame);
    if (region == nullptr) return;
    for (const bool has_boundary : region->has_boundary)
      if (has_boundary && pack(*program_->trigger, state)) return;
  }

  /// An op's save: inside an excluded region it is kept, or a replay will bring it.
  bool pack_of(std::size_t at, std::size_t place, const Save& save, const State& state) {
    if (!state.is_excluded) return pack(save.value, state);
    if (!wrappers_->is_slot(at, place)) keep(save.value);
    return false;
  }

  /// False where the replay ended, or where something was raised.
  bool run(std::size_t begin, std::size_t end, const State& state) {
    const std::vector<Statement>& statements = statements_of(*program_);
    for (std::size_t at = begin; at < end; ++at) {
      const Statement& statement = statements[at];
      if (const auto* op = std::get_if<OpStatement>(&statement)) {
        if (!run_op(at, *op, state)) return false;
      } else if (const auto* region = std::get_if<RegionBegin>(&statement)) {
        if (!run_region(at, *region, state)) return false;
        at = region->end;
      } else if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) {
        if (!run_wrapper(at, *wrapper, state)) return false;
        at = wrapper->end;
      } else if (const auto* gone = std::get_if<Release>(&statement)) {
        std::for_each(gone->values.begin(), gone->values.end(), [&](ValueId id) { drop(id); });
      } else if (std::holds_alternative<SideEffect>(statement)) {
        walk_.ran.push_back(at);
      } else if (const auto* branch = std::get_if<BranchBegin>(&statement)) {
        if (branch->in_replay != stretch_.is_replay) at = branch->end - 1;
      } else if (const auto* off = std::get_if<NoGradBegin>(&statement)) {
        State without = state;
        without.grad = false;
        if (!run(at + 1, off->end, without)) return false;
        at = off->end - 1;
      } else if (const auto* caught = std::get_if<CatchBegin>(&statement)) {
        if (!run_caught(at, *caught, state)) return false;
        at = caught->end - 1;
      } else if (const auto* raise = std::get_if<Raise>(&statement)) {
        is_raised_ = n_catches_ > 0 && raises_in(*raise, stretch_.is_replay);
        if (is_raised_) return false;
      }
    }
    return true;
  }

  /// False where the replay ended; what was raised ends here, with what the code would have let go
  /// of.
  bool run_caught(std::size_t at, const CatchBegin& caught, const State& state) {
    ++n_catches_;
    const bool goes_on = run(at + 1, caught.end, state);
    --n_catches_;
    if (goes_on || !std::exchange(is_raised_, false)) return goes_on;
    const std::vector<Statement>& statements = statements_of(*program_);
    for (std::size_t i = at; i < caught.end; ++i) {
      if (const auto* gone = std::get_if<Release>(&statements[i]))
        std::for_each(gone->values.begin(), gone->values.end(), [&](ValueId id) { drop(id); });
    }
    return true;
  }

  /// A replay of the frame leaves the body out; only its boundaries save.
  bool run_wrapper(std::size_t at, const WrapperBegin& wrapper, const State& state) {
    const ReferenceWrapper* call = wrappers_->at(at);
    if (call == nullptr || state.frame != call->frame) return run(at + 1, wrapper.end, state);
    const bool is_skipped = stretch_.is_replay && in_own_frame(state);
    if (is_skipped && call->raises) {
      is_raised_ = true;
      return false;
    }
    if (!is_skipped) {
      State inside = state;
      inside.is_excluded = true;
      if (!run(at + 1, wrapper.end, inside)) return false;
      for (std::size_t leaf = 0; leaf < wrapper.outputs.size(); ++leaf) {
        if (!call->is_kept[leaf]) continue;
        keep(wrapper.outputs[leaf]);
        walk_.kept_by_frame.emplace_back(call->frame, wrapper.outputs[leaf]);
      }
    }
    if (is_skipped) {
      keep_slots(at, wrapper.end);
      for (const ValueId output : wrapper.outputs)
        served_.insert(output.index());
    }
    for (const bool has_boundary : call->has_boundary)
      if (has_boundary && pack(*program_->trigger, state)) return false;
    if (is_skipped && wrapper.hands_over) drop_arguments(at, wrapper);
    return true;
  }

  /// An argument whose last reader is in the body that was left out.
  void drop_arguments(std::size_t begin, const WrapperBegin& wrapper) {
    const std::vector<Statement>& statements = statements_of(*program_);
    std::set<std::uint32_t> arguments;
    for (const WrapperBegin::Input& input : wrapper.inputs)
      arguments.insert(input.value.index());
    for (std::size_t at = begin; at < wrapper.end; ++at) {
      const auto* gone = std::get_if<Release>(&statements[at]);
      if (gone == nullptr) continue;
      for (const ValueId value : gone->values)
        if (arguments.count(value.index()) != 0) drop(value);
    }
  }

  /// What a replay brings to the slots of a call stays.
  void keep_slots(std::size_t begin, std::size_t end) {
    const std::vector<Statement>& statements = statements_of(*program_);
    for (std::size_t at = begin; at < end; ++at) {
      const auto* op = std::get_if<OpStatement>(&statements[at]);
      if (op == nullptr) continue;
      for (std::size_t i = 0; i < op->saves.size(); ++i)
        if (wrappers_->is_slot(at, i)) keep(op->saves[i].value);
    }
  }

  bool run_region(std::size_t at, const RegionBegin& region, const State& state) {
    State inside = state;
    const auto mode = state.grad ? rules_->mode_of(region) : ReferenceRules::Regions::plain;
    if (mode == ReferenceRules::Regions::holders) {
      for (const ValueId input : region.inputs)
        if (pack(input, state)) return false;
      // The frame keeps what its body reads, whoever packed it.
      for (const std::vector<ValueId>* read : {&region.inputs, &region.captured})
        std::for_each(read->begin(), read->end(), [&](ValueId id) { keep(id); });
      inside.frame = at;
      inside.keeps = false;
    }
    if (mode == ReferenceRules::Regions::reentrant) {
      inside.grad = false;
      for (const std::vector<ValueId>* read : {&region.inputs, &region.captured})
        std::for_each(read->begin(), read->end(), [&](ValueId id) { keep(id); });
    }
    return run(at + 1, region.end, inside);
  }

  bool run_op(std::size_t at, const OpStatement& op, const State& state) {
    if (op.by_caller) return true;
    const bool tapes = op.makes_node && state.grad;
    for (std::size_t i = 0; i < op.saves.size(); ++i) {
      const Save& save = op.saves[i];
      if (!tapes || save.after_op) continue;
      if (save.copy_of) make(save.value, true);
      if (pack_of(at, i, save, state)) return false;
    }
    const bool asks = rules_->selective && state.frame != ReferenceGraph::no_frame;
    const bool kept = asks && is_kept(at, op, state.frame);
    const bool is_served = kept && stretch_.is_replay && in_own_frame(state);
    if (!is_served) {
      walk_.ran.push_back(at);
      for (const ValueId output : op.outputs)
        make_output(op, output);
      for (const ValueId output : op.outputs) {
        if (!kept) break;
        keep(output);
        walk_.kept_by_frame.emplace_back(state.frame, output);
      }
    }
    for (std::size_t i = 0; i < op.saves.size(); ++i) {
      if (tapes && op.saves[i].after_op && pack_of(at, i, op.saves[i], state)) return false;
    }
    for (const Save& save : op.saves)
      if (save.copy_of) drop(save.value);
    return true;
  }

  void make_output(const OpStatement& op, ValueId output) {
    const auto lies_on = [&](ValueId input) { return value(input).buffer == value(output).buffer; };
    const auto base = std::find_if(op.inputs.begin(), op.inputs.end(), lies_on);
    if (base != op.inputs.end() && served_.count(base->index()) != 0) {
      served_.insert(output.index());
    } else {
      make(output, base == op.inputs.end());
    }
  }

  /// P10: the policy's answer for this call of the op; calls are counted by name in each frame.
  bool is_kept(std::size_t at, const OpStatement& op, std::size_t frame) {
    if (rules_->units) return rules_->units->kept.contains(at);
    const std::int64_t call = calls_[{frame, op.name}]++;
    const bool is_mutating = op.writes || op.kind->name == "record_stream";
    if (!op.kept || is_mutating || op.kind->name == "detach") return false;
    if (op.group && !rules_->keeps_collectives) return false;
    return rules_->keep_every == 0 || call % rules_->keep_every == 0;
  }

  const Program* program_;
  const ReferenceRules* rules_;
  const ReferenceWrappers* wrappers_;
  ReferenceStretch stretch_;
  ReferenceWalk walk_;
  std::vector<std::uint32_t> holds_;  // by buffer: variables that lie in it
  std::vector<bool> kept_;            // by buffer
  // Values on forward's buffers, or on none: what an excluded region handed to the replay.
  std::set<std::uint32_t> served_;
  ByteTotal live_;
  std::size_t n_catches_ = 0;  // around what is gone through
  bool is_raised_ = false;     // on the way to the innermost of them
  std::map<std::pair<std::size_t, std::string_view>, std::int64_t> calls_;
};

}  // namespace

ReferenceWalk reference_walk(const Program& program, const ReferenceRules& rules,
                             const ReferenceWrappers& wrappers, const ReferenceStretch& stretch) {
  return Walker(program, rules, wrappers, stretch).finish();
}

}  // namespace remat
