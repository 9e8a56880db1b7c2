#include "properties/program_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/scenario_writer.hpp"

namespace remat {
namespace {

std::string shown_shape(const TensorLayout& layout) {
  return fmt::format("{}[{}]", layout.dtype, fmt::join(layout.shape, ","));
}

class ProgramText {
 public:
  explicit ProgramText(const Scenario& scenario)
      : scenario_(&scenario), program_(&scenario.program) {}

  std::string written() {
    text_ = "protocol " + protocol_json(*scenario_) + "\n";
    if (scenario_->n_ranks > 1) line(0, fmt::format("{} ranks", scenario_->n_ranks));
    write_leaves();
    const Forward& forward = program_->forwards.front();
    write_body(0, forward.statements.size(), 0);
    if (forward.root) text_ += "backward from " + name(*forward.root) + "\n";
    write_order();
    return text_;
  }

 private:
  const ProgramValue& value(ValueId id) const { return program_->values[id]; }
  std::string name(ValueId id) const { return value(id).name; }
  std::string names(const std::vector<ValueId>& ids) const {
    std::vector<std::string> all;
    all.reserve(ids.size());
    for (const ValueId id : ids)
      all.push_back(name(id));
    return fmt::format("{}", fmt::join(all, ", "));
  }
  void line(std::size_t depth, const std::string& text) {
    text_ += std::string(2 * depth, ' ') + text + "\n";
  }

  void write_leaves() {
    std::vector<ValueId> leaves = program_->forwards.front().inputs;
    leaves.insert(leaves.end(), program_->parameters.begin(), program_->parameters.end());
    for (const ValueId leaf : leaves) {
      const bool is_param = program_->buffers[value(leaf).buffer].role == BufferRole::param;
      line(0, fmt::format("{} {} {}{}", is_param ? "parameter" : "input", name(leaf),
                          shown_shape(value(leaf).layout),
                          value(leaf).requires_grad ? "" : ", frozen"));
    }
  }

  void write_body(std::size_t begin, std::size_t end, std::size_t depth) {
    const std::vector<Statement>& statements = program_->forwards.front().statements;
    for (std::size_t at = begin; at < end; ++at) {
      const Statement& statement = statements[at];
      if (const auto* op = std::get_if<OpStatement>(&statement)) {
        write_op(*op, depth);
      } else if (const auto* region = std::get_if<RegionBegin>(&statement)) {
        write_region(*region, depth);
        write_body(at + 1, region->end, depth + 1);
        at = region->end;
      } else if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) {
        write_wrapper(*wrapper, depth);
        write_body(at + 1, wrapper->end, depth + 1);
        at = wrapper->end;
      } else if (const auto* mark = std::get_if<Mark>(&statement)) {
        line(depth, "mark " + mark->name);
      } else if (const auto* compiled = std::get_if<CompiledBegin>(&statement)) {
        line(depth, "compiled:");
        write_body(at + 1, compiled->end, depth + 1);
        at = compiled->end - 1;
      } else if (const auto* offloaded = std::get_if<OffloadBegin>(&statement)) {
        line(depth, "offload " + offloaded->name + " to the " +
                        std::string(name_of(offloaded->level)) + ":");
        write_body(at + 1, offloaded->end, depth + 1);
        at = offloaded->end - 1;
      } else if (const auto* needs = std::get_if<NeedsTensor>(&statement)) {
        line(depth, "a replay needs " + name(needs->value));
      } else if (const auto* effect = std::get_if<SideEffect>(&statement)) {
        line(depth, "effect " + effect->name);
      } else if (const auto* raise = std::get_if<Raise>(&statement)) {
        write_raise(*raise, depth);
      } else if (const auto* branch = std::get_if<BranchBegin>(&statement)) {
        line(depth, branch->in_replay ? "only in a replay:" : "only in forward:");
        write_body(at + 1, branch->end, depth + 1);
        at = branch->end - 1;
      } else if (const auto* bind = std::get_if<Bind>(&statement)) {
        line(depth, fmt::format("{} = {}", name(bind->to), name(bind->from)));
      } else if (const auto* caught = std::get_if<CatchBegin>(&statement)) {
        line(depth, "what is raised here is caught:");
        write_body(at + 1, caught->end, depth + 1);
        at = caught->end - 1;
      } else if (const auto* off = std::get_if<NoGradBegin>(&statement)) {
        line(depth, "no_grad:");
        write_body(at + 1, off->end, depth + 1);
        at = off->end - 1;
      }
    }
  }

  void write_region(const RegionBegin& region, std::size_t depth) {
    if (region.kind == RegionKind::unit) return line(depth, "callable " + region.name + ":");
    std::string text = fmt::format("{} {}({})", region.reentrant ? "reentrant region" : "region",
                                   region.name, names(region.inputs));
    if (!region.captured.empty())
      text += fmt::format(", in a container: {}", names(region.captured));
    if (!region.early_stop) text += ", no early stop";
    line(depth, text + ":");
  }

  void write_wrapper(const WrapperBegin& wrapper, std::size_t depth) {
    std::vector<std::string> inputs;
    for (const WrapperBegin::Input& input : wrapper.inputs)
      inputs.push_back(fmt::format("{} {}", input.path, name(input.value)));
    using Policy = WrapperBegin::Policy;
    const std::string_view what = wrapper.policy == Policy::exclude ? "excluded"
                                  : wrapper.policy == Policy::save  ? "saved"
                                                                    : "recomputed";
    line(depth,
         fmt::format("{} {}({}) returns {}{}:", what, wrapper.name, fmt::join(inputs, ", "),
                     names(wrapper.outputs), wrapper.save_output ? "" : ", save_output false"));
  }

  static std::string_view place_of(Raise::Runs runs) {
    switch (runs) {
      case Raise::Runs::always:
        return "";
      case Raise::Runs::forward:
        return " in forward";
      case Raise::Runs::replay:
        return " in a replay";
      case Raise::Runs::pack:
        return " in the pack hook of the next op";
      case Raise::Runs::unpack:
        return " in the unpack hook of the next op";
    }
    return "";
  }

  void write_raise(const Raise& raise, std::size_t depth) {
    const std::string times = raise.times ? fmt::format(", {} in all", *raise.times) : "";
    line(depth, fmt::format("raise {}{}{}", raise.type, place_of(raise.runs), times));
  }

  void write_op(const OpStatement& op, std::size_t depth) {
    if (op.by_caller) return line(depth, fmt::format("the caller writes {}", name(op.inputs[0])));
    std::string text;
    const bool is_in_place = op.writes || op.kind->preserves_value;
    if (is_in_place) {
      text = fmt::format("{}_({})", op.name, names(op.inputs));
    } else {
      text = fmt::format("{} = {}({})", names(op.outputs), op.name, names(op.inputs));
    }
    if (op.kind->makes_view && !is_in_place) {
      const TensorLayout& layout = value(op.outputs[0]).layout;
      text += fmt::format(", a view {} at {}", shown_shape(layout), layout.offset);
    } else if (!is_in_place) {
      text += ", " + shown_shape(value(op.outputs[0]).layout);
    }
    std::vector<std::string> saves;
    for (const Save& save : op.saves)
      saves.push_back(name(save.value));
    if (op.makes_node && !saves.empty()) text += fmt::format(", saves {}", fmt::join(saves, ", "));
    if (op.kept) text += ", kept by the policy";
    const auto in_container = [&](ValueId id) { return value(id).in_container; };
    if (std::any_of(op.outputs.begin(), op.outputs.end(), in_container))
      text += ", leaves the region in a container";
    line(depth, text);
  }

  void write_order() {
    for (const PhaseStep& step : scenario_->order) {
      if (step.kind == PhaseStep::Kind::step_begin) {
        text_ += "step:";
        continue;
      }
      if (step.kind == PhaseStep::Kind::step_end) {
        text_ += "\n";
        continue;
      }
      text_ += " " + action_name(step);
      std::vector<std::string> options;
      if (step.retain) options.push_back("retain");
      if (step.group) options.push_back(fmt::format("group {}", *step.group));
      if (!step.wrt.empty()) options.push_back("only " + names(step.wrt));
      if (!options.empty()) text_ += fmt::format(" ({})", fmt::join(options, ", "));
    }
  }

  const Scenario* scenario_;
  const Program* program_;
  std::string text_;
};

}  // namespace

std::string program_text(const Scenario& scenario) {
  return ProgramText(scenario).written();
}

}  // namespace remat
