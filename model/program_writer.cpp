#include "model/program_writer.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/errors.hpp"
#include "model/flat_map.hpp"
#include "model/op_saves.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

class ProgramWriter {
 public:
  explicit ProgramWriter(const Program& program)
      : program_(&program), forward_(&program.forwards.front()) {
    name_all();
  }

  Json written() {
    Json json;
    json["inputs"] = leaves(BufferRole::input);
    json["params"] = leaves(BufferRole::param);
    json["stages"] = Json::array({body(0, forward_->statements.size())});
    if (forward_->root) json["loss"] = name(*forward_->root);
    return json;
  }

 private:
  const ProgramValue& value(ValueId id) const { return program_->values[id]; }
  BufferRole role_of(ValueId id) const { return program_->buffers[value(id).buffer].role; }

  /// One name for a tensor however often it is written, and none for two tensors.
  void name_all() {
    std::map<std::pair<std::uint32_t, std::string>, std::string> given;
    std::set<std::string> taken;
    for (std::uint32_t i = 0; i < program_->values.size(); ++i) {
      const ProgramValue& named = value(ValueId(i));
      const auto [known, is_new] =
          given.try_emplace({named.buffer.index(), named.name}, named.name);
      if (is_new && taken.count(named.name) != 0)
        known->second = named.name + "_" + std::to_string(i);
      taken.insert(known->second);
      names_.push_back(known->second);
    }
    for (const Statement& statement : forward_->statements) {
      if (const auto* op = std::get_if<OpStatement>(&statement)) {
        for (const ValueId output : op->outputs)
          if (op->writes != output) made_.insert(output.index());
      }
      // A replay's branch calls another tensor what forward called its own.
      if (const auto* bind = std::get_if<Bind>(&statement))
        names_[bind->from.index()] = names_[bind->to.index()];
    }
  }

  std::string name(ValueId id) const {
    const auto inside = containers_.find(names_[id.index()]);
    return inside == containers_.end() ? names_[id.index()] : inside->second;
  }
  Json names(const std::vector<ValueId>& values) const {
    Json list = Json::array();
    for (const ValueId id : values)
      list.push_back(name(id));
    return list;
  }

  Json leaves(BufferRole role) const {
    Json json = Json::object();
    for (std::uint32_t i = 0; i < program_->values.size(); ++i) {
      const ProgramValue& leaf = value(ValueId(i));
      if (role_of(ValueId(i)) != role || made_.contains(i)) continue;
      json[names_[i]] = {{"dtype", leaf.layout.dtype},
                         {"shape", leaf.layout.shape},
                         {"requires_grad", leaf.requires_grad}};
    }
    return json;
  }

  Json body(std::size_t begin, std::size_t end) {
    Json list = Json::array();
    for (std::size_t at = begin; at < end; ++at)
      at = write(at, list);
    return list;
  }

  /// Appends the statement; where it ends.
  std::size_t write(std::size_t at, Json& list) {
    const Statement& statement = forward_->statements[at];
    if (const auto* op = std::get_if<OpStatement>(&statement)) {
      list.push_back(written_op(*op));
    } else if (const auto* region = std::get_if<RegionBegin>(&statement)) {
      write_region(at, *region, list);
      return region->end;
    } else if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) {
      write_wrapper(at, *wrapper, list);
      return wrapper->end;
    } else if (const auto* mark = std::get_if<Mark>(&statement)) {
      list.push_back({{"mark", mark->name}});
    } else if (const auto* compiled = std::get_if<CompiledBegin>(&statement)) {
      list.push_back({{"compiled", body(at + 1, compiled->end)}});
      return compiled->end - 1;
    } else if (const auto* offloaded = std::get_if<OffloadBegin>(&statement)) {
      list.push_back({{"offload", offloaded->name},
                      {"to", name_of(offloaded->level)},
                      {"body", body(at + 1, offloaded->end)}});
      return offloaded->end - 1;
    } else if (const auto* needs = std::get_if<NeedsTensor>(&statement)) {
      list.push_back({{"needs_tensor", name(needs->value)}});
    } else if (const auto* effect = std::get_if<SideEffect>(&statement)) {
      list.push_back({{"side_effect", effect->name}});
    } else if (const auto* raise = std::get_if<Raise>(&statement)) {
      list.push_back({{"raise", raise->type}, {"in", runs_of(raise->runs)}});
      if (raise->times) list.back()["times"] = *raise->times;
    } else if (const auto* branch = std::get_if<BranchBegin>(&statement)) {
      list.push_back({{"branch", branch->in_replay ? "replay" : "forward"},
                      {"body", body(at + 1, branch->end)}});
      return branch->end - 1;
    } else if (const auto* caught = std::get_if<CatchBegin>(&statement)) {
      list.push_back({{"catch", body(at + 1, caught->end)}});
      return caught->end - 1;
    } else if (const auto* off = std::get_if<NoGradBegin>(&statement)) {
      list.push_back({{"no_grad", body(at + 1, off->end)}});
      return off->end - 1;
    }
    return at;  // Release and Bind follow from the rest
  }

  static const char* runs_of(Raise::Runs runs) {
    switch (runs) {
      case Raise::Runs::always:
        return "always";
      case Raise::Runs::forward:
        return "forward";
      case Raise::Runs::replay:
        return "replay";
      case Raise::Runs::pack:
        return "pack";
      case Raise::Runs::unpack:
        return "unpack";
    }
    return "";
  }

  Json written_op(const OpStatement& op) const {
    if (op.by_caller) return {{"update", name(op.inputs.front())}};
    Json json;
    const bool is_view = op.kind->makes_view && !op.writes && !op.inputs.empty();
    if (op.group) return written_collective(op);
    const bool is_in_place = op.writes || op.kind->preserves_value;
    json[is_in_place ? "in_place" : is_view ? "view" : op.kind->draws ? "random" : "op"] = op.name;
    json["in"] = names(op.inputs);
    if (!is_in_place) json["out"] = names(op.outputs);
    if (is_view) {
      const TensorLayout& layout = value(op.outputs.front()).layout;
      json.update({{"shape", layout.shape}, {"stride", layout.stride}, {"offset", layout.offset}});
      if (layout.dtype != value(op.inputs.front()).layout.dtype) json["dtype"] = layout.dtype;
      return json;
    }
    if (!is_in_place) write_layouts(op, json);
    if (op.replay_offset != 0) json["replay_offset"] = op.replay_offset;
    if (op.kept) json["keep"] = true;
    write_saves(op, json);
    json["cost_ns"] = op.cost.ns;
    if (op.gradient_cost) json["gradient_cost_ns"] = op.gradient_cost->ns;
    return json;
  }

  Json written_collective(const OpStatement& op) const {
    Json json;
    json["collective"] = op.name;
    json["group"] = program_->groups[*op.group].name;
    json["in"] = {name(op.inputs.back())};
    if (op.writes) {
      json["into"] = name(*op.writes);
    } else {
      json["out"] = names(op.outputs);
    }
    if (op.kept) json["keep"] = true;
    json["cost_ns"] = op.cost.ns;
    if (op.gradient_cost) json["gradient_cost_ns"] = op.gradient_cost->ns;
    return json;
  }

  void write_layouts(const OpStatement& op, Json& json) const {
    Json shapes = Json::array();
    for (const ValueId output : op.outputs)
      shapes.push_back(value(output).layout.shape);
    const TensorLayout& first = value(op.outputs.front()).layout;
    const auto has_dtype = [&](ValueId output) {
      return value(output).layout.dtype == first.dtype;
    };
    if (std::all_of(op.outputs.begin(), op.outputs.end(), has_dtype)) {
      json["dtype"] = first.dtype;
    } else {
      for (const ValueId output : op.outputs)
        json["dtypes"].push_back(value(output).layout.dtype);
    }
    if (op.outputs.size() == 1) {
      json["shape"] = first.shape;
      if (first.stride != dense_strides(first.shape)) json["stride"] = first.stride;
    } else {
      json["shapes"] = shapes;
    }
  }

  /// What an op saves is told where it is not what its kind saves.
  void write_saves(const OpStatement& op, Json& json) const {
    if (!op.makes_node) return;
    const auto saved = [](const Save& save) { return save.copy_of.value_or(save.value); };
    const std::vector<Save> by_kind = saves_by_table(*program_, op);
    const bool is_own =
        !std::equal(op.saves.begin(), op.saves.end(), by_kind.begin(), by_kind.end(),
                    [&](const Save& a, const Save& b) { return saved(a) == saved(b); });
    if (!is_own) return;
    json["saves"] = Json::array();
    for (const Save& save : op.saves)
      json["saves"].push_back(name(saved(save)));
  }

  void write_region(std::size_t at, const RegionBegin& region, Json& list) {
    const bool is_checkpoint = region.kind == RegionKind::checkpointed;
    const auto outside = containers_;
    if (is_checkpoint) hide(region.captured, list);
    Json json;
    json[is_checkpoint ? "checkpoint" : "unit"] = region.name;
    json["in"] = names(region.inputs);
    if (!region.owner.empty()) json["owner"] = region.owner;
    if (region.reentrant) json["reentrant"] = true;
    if (!region.early_stop) json["early_stop"] = false;
    if (!region.preserves_rng) json["preserve_rng"] = false;
    Json statements = body(at + 1, region.end);
    containers_ = outside;
    std::vector<ValueId> nested;
    for (const ValueId output : region.outputs)
      if (is_checkpoint && value(output).in_container) nested.push_back(output);
    hide(nested, statements);
    json["body"] = std::move(statements);
    list.push_back(std::move(json));
  }

  void write_wrapper(std::size_t at, const WrapperBegin& wrapper, Json& list) {
    Json json;
    const bool is_excluded = wrapper.policy == WrapperBegin::Policy::exclude;
    json[is_excluded ? "exclude" : "region"] = wrapper.name;
    if (!is_excluded) json["recompute"] = wrapper.policy == WrapperBegin::Policy::recompute;
    Json positional = Json::array();
    Json keyword = Json::object();
    for (const WrapperBegin::Input& input : wrapper.inputs) {
      const std::string_view path = input.path;
      const std::size_t end = std::min(path.find_first_of(".[", 3), path.size());
      if (path.starts_with("arg")) {
        const auto place = static_cast<std::size_t>(std::stoul(std::string(path.substr(3))));
        put(positional, place, path.substr(end), name(input.value));
      } else {
        put(keyword, path.substr(std::string_view("kwarg").size()), name(input.value));
      }
    }
    json["in"] = std::move(positional);
    if (!keyword.empty()) json["kwargs"] = std::move(keyword);
    if (wrapper.tells_outputs) json["out"] = names(wrapper.outputs);
    if (!wrapper.save_output) json["save_output"] = false;
    if (wrapper.hands_over) json["hands_over"] = true;
    json["body"] = body(at + 1, wrapper.end);
    list.push_back(std::move(json));
  }

  /// Puts the name at a path within an argument: `[1].k` and so on; at its end, there.
  static void put(Json& argument, std::string_view path, const std::string& name) {
    if (path.empty()) {
      argument = name;
      return;
    }
    const std::size_t end = std::min(path.find_first_of(".[", 1), path.size());
    if (path.front() == '[') {
      const auto place = static_cast<std::size_t>(std::stoul(std::string(path.substr(1))));
      put(argument, place, path.substr(end), name);
    } else {
      if (!argument.is_object()) argument = Json::object();
      put(argument[std::string(path.substr(1, end - 1))], path.substr(end), name);
    }
  }
  static void put(Json& list, std::size_t place, std::string_view path, const std::string& name) {
    while (list.size() <= place)
      list.push_back(Json::array());  // an argument that holds no tensor
    put(list[place], path, name);
  }

  /// Puts the tensors in a container; from here on they are known by their place in it.
  void hide(const std::vector<ValueId>& values, Json& list) {
    if (values.empty()) return;
    const std::string container = "box" + std::to_string(n_containers_++);
    list.push_back({{"container", container}, {"in", names(values)}});
    for (const ValueId id : values) {
      const std::string inside = container + "." + name(id);
      containers_[names_[id.index()]] = inside;
    }
  }

  const Program* program_;
  const Forward* forward_;
  std::vector<std::string> names_;                 // by value
  IdSet made_;                                     // values that a statement makes
  std::map<std::string, std::string> containers_;  // name → what it is called inside a container
  std::size_t n_containers_ = 0;
};

}  // namespace

nlohmann::ordered_json program_json(const Program& program) {
  REMAT_INVARIANT(program.forwards.size() == 1);
  return ProgramWriter(program).written();
}

}  // namespace remat
