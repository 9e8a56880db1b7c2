#include "properties/reference_wrappers.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "properties/reference_graph.hpp"

namespace remat {

/// Goes through a forward with what each storage has been through.
class WrapperWalk {
 public:
  WrapperWalk(const Program& program, const ReferenceRules& rules, ReferenceWrappers& found)
      : program_(&program), rules_(&rules), found_(&found), writes_(program.buffers.size(), 0) {}

  void walk() {
    const std::vector<Statement>& statements = statements_of(*program_);
    run(0, statements.size(), no_frame, true);
  }

 private:
  static constexpr std::size_t no_frame = std::numeric_limits<std::size_t>::max();

  const ProgramValue& value(ValueId id) const { return program_->values[id]; }

  /// False where something was raised that a catch around it stops.
  bool run(std::size_t begin, std::size_t end, std::size_t frame, bool grad) {
    const std::vector<Statement>& statements = statements_of(*program_);
    for (std::size_t at = begin; at < end; ++at) {
      const Statement& statement = statements[at];
      if (const auto* op = std::get_if<OpStatement>(&statement)) {
        run_op(at, *op, grad);
      } else if (const auto* region = std::get_if<RegionBegin>(&statement)) {
        const bool has_frame = grad && rules_->mode_of(*region) == ReferenceRules::Regions::holders;
        if (!run_region(at, *region, has_frame ? at : frame, grad)) return false;
        at = region->end;
      } else if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) {
        if (!run_wrapper(at, *wrapper, frame, grad)) return false;
        at = wrapper->end;
      } else if (const auto* needs = std::get_if<NeedsTensor>(&statement)) {
        need(needs->value);
      } else if (const auto* branch = std::get_if<BranchBegin>(&statement)) {
        if (branch->in_replay) at = branch->end - 1;
      } else if (const auto* off = std::get_if<NoGradBegin>(&statement)) {
        if (!run(at + 1, off->end, frame, false)) return false;
        at = off->end - 1;
      } else if (const auto* caught = std::get_if<CatchBegin>(&statement)) {
        ++n_catches_;
        run(at + 1, caught->end, frame, grad);
        --n_catches_;
        at = caught->end - 1;
      } else if (const auto* raise = std::get_if<Raise>(&statement)) {
        if (n_catches_ > 0 && raises_in(*raise, false)) return false;
      }
    }
    return true;
  }

  bool run_region(std::size_t at, const RegionBegin& region, std::size_t frame, bool grad) {
    if (frame != at) return run(at + 1, region.end, frame, grad);
    const auto buffers = std::exchange(save_buffers_, {});
    const auto values = std::exchange(save_values_, {});
    const auto made_on = std::exchange(made_on_, {});
    const bool goes_on = run(at + 1, region.end, frame, grad);
    save_buffers_ = buffers;
    save_values_ = values;
    made_on_ = made_on;
    if (goes_on && rules_->remat) note_boundaries(at, region);
    return goes_on;
  }

  /// P7: whatever a checkpointed region returns passes one.
  void note_boundaries(std::size_t at, const RegionBegin& region) {
    ReferenceWrapper& made = found_->calls_[at];
    made.frame = at;
    for (const ValueId output : region.outputs) {
      made.leaves.push_back({output});
      made.has_boundary.push_back(value(output).requires_grad &&
                                  has_node_.count(output.index()) != 0);
    }
  }

  /// P7: a replay will read what lies there, so whichever saved regions returned it keep it.
  void need(ValueId read) {
    const auto found = made_on_.find(value(read).buffer.index());
    if (found == made_on_.end()) return;
    for (const auto& [region, leaf] : found->second)
      found_->calls_[region].is_kept[leaf] = true;
  }

  void run_op(std::size_t at, const OpStatement& op, bool grad) {
    for (std::size_t i = 0; i < op.saves.size() && grad && op.makes_node; ++i) {
      if (op.saves[i].after_op) continue;
      note_save(at, i, op.saves[i].value);
    }
    for (std::size_t j = 0; j < op.outputs.size(); ++j) {
      const bool had_node = j < op.were.size() && has_node_.count(op.were[j].index()) != 0;
      if ((grad && op.makes_node) || had_node) has_node_.insert(op.outputs[j].index());
    }
    if (op.writes) ++writes_[value(*op.writes).buffer.index()];
    for (std::size_t i = 0; i < op.saves.size() && grad && op.makes_node; ++i) {
      if (op.saves[i].after_op) note_save(at, i, op.saves[i].value);
    }
  }

  void note_save(std::size_t at, std::size_t place, ValueId saved) {
    if (call_ == nullptr) return;
    if (!is_brought(saved)) {
      kept_in_body_.insert(value(saved).buffer.index());
      return;
    }
    found_->slots_.insert({at, place});
    ++call_->n_slots;
  }

  /// Every row of the fallback table the other way round.
  bool is_brought(ValueId saved) const {
    if (!rules_->rederives || !(returns_grad_ || rules_->remat)) return false;
    const ProgramValue& tensor = value(saved);
    return std::any_of(inputs_.begin(), inputs_.end(), [&](const Input& input) {
      const ProgramValue& argument = value(input.value);
      const bool may = !input.is_save_output && argument.buffer == tensor.buffer &&
                       program_->buffers[argument.buffer].role != BufferRole::param &&
                       writes_[tensor.buffer.index()] == input.n_writes &&
                       argument.layout.dtype == tensor.layout.dtype;
      return may && shows_no_more(tensor.layout, argument.layout);
    });
  }

  static bool shows_no_more(const TensorLayout& view, const TensorLayout& base) {
    if (view.shape == base.shape && view.stride == base.stride && view.offset == base.offset)
      return true;
    std::int64_t first = view.offset;
    std::int64_t last = first;
    for (std::size_t d = 0; d < view.shape.size(); ++d) {
      if (view.shape[d] == 0) return false;
      if (view.shape[d] > 1 && view.stride[d] <= 0) return false;
      last += (view.shape[d] - 1) * view.stride[d];
    }
    const std::int64_t n = element_count(base.shape);
    if (n == 0 || spanned_elements(base) != n) return false;  // a base with holes, or folded
    return base.offset <= first && last < base.offset + n;
  }

  bool run_wrapper(std::size_t at, const WrapperBegin& wrapper, std::size_t frame, bool grad) {
    if (!rules_->excludes || frame == no_frame || call_ != nullptr)
      return run(at + 1, wrapper.end, frame, grad);
    if (!is_left_out(wrapper)) {
      for (const WrapperBegin::Input& input : wrapper.inputs)
        need(input.value);
      return run(at + 1, wrapper.end, frame, grad);
    }
    ReferenceWrapper& made = found_->calls_[at];
    made.frame = frame;
    inputs_.clear();
    for (const WrapperBegin::Input& input : wrapper.inputs) {
      const std::uint32_t buffer = value(input.value).buffer.index();
      inputs_.push_back(
          {input.value, writes_[buffer],
           save_buffers_.count(buffer) != 0 || save_values_.count(input.value.index()) != 0});
    }
    const auto requires_grad = [&](ValueId output) { return value(output).requires_grad; };
    returns_grad_ =
        grad && std::any_of(wrapper.outputs.begin(), wrapper.outputs.end(), requires_grad);
    call_ = &made;
    kept_in_body_.clear();
    made.raises = !run(at + 1, wrapper.end, frame, grad);
    call_ = nullptr;
    if (made.raises) return false;
    if (rules_->remat) {
      note_saved(at, wrapper, made);
      return true;
    }
    for (const ValueId output : wrapper.outputs) {
      made.leaves.push_back({output});
      made.is_kept.push_back(wrapper.save_output || !rules_->rederives);
      made.has_boundary.push_back(rules_->has_boundaries && made.n_slots > 0 &&
                                  requires_grad(output) && has_node_.count(output.index()) != 0);
      save_values_.insert(output.index());
      const BufferId buffer = value(output).buffer;
      const auto lies_there = [&](const WrapperBegin::Input& input) {
        return value(input.value).buffer == buffer;
      };
      if (std::none_of(wrapper.inputs.begin(), wrapper.inputs.end(), lies_there))
        save_buffers_.insert(buffer.index());
    }
    return true;
  }

  /// P7: each output may be asked for by whoever lies on its storage; what backward keeps anyway is
  /// kept for the replay too.
  void note_saved(std::size_t at, const WrapperBegin& region, ReferenceWrapper& made) {
    for (std::size_t leaf = 0; leaf < region.outputs.size(); ++leaf) {
      const std::uint32_t buffer = value(region.outputs[leaf]).buffer.index();
      made.leaves.push_back({region.outputs[leaf]});
      made.has_boundary.push_back(false);
      made.is_kept.push_back(false);
      made_on_[buffer].emplace_back(at, leaf);
      save_buffers_.insert(buffer);
    }
    for (const ValueId output : region.outputs)
      if (kept_in_body_.count(value(output).buffer.index()) != 0) need(output);
  }

  struct Input {
    ValueId value{0};
    std::size_t n_writes = 0;  // to its storage, before
    bool is_save_output = false;
  };

  const Program* program_;
  const ReferenceRules* rules_;
  ReferenceWrappers* found_;
  std::vector<std::size_t> writes_;   // by buffer
  std::set<std::uint32_t> has_node_;  // values that an op with a node made
  std::set<std::uint32_t> save_values_;
  std::set<std::uint32_t> save_buffers_;  // buffers, of the frame
  // Likewise: the saved regions that returned something there, and which output it was.
  std::map<std::uint32_t, std::vector<std::pair<std::size_t, std::size_t>>> made_on_;
  std::set<std::uint32_t> kept_in_body_;  // buffers
  ReferenceWrapper* call_ = nullptr;      // whose body is gone through
  std::vector<Input> inputs_;
  bool returns_grad_ = false;
  std::size_t n_catches_ = 0;  // around what is gone through
};

ReferenceWrappers::ReferenceWrappers(const Program& program, const ReferenceRules& rules) {
  WrapperWalk(program, rules, *this).walk();
}

}  // namespace remat
