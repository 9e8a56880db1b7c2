#include "properties/unit_generator.hpp"

#include <array>

namespace remat {
namespace {

constexpr std::array<std::string_view, 8> op_names = {"tanh", "mul", "sin",     "mm",
                                                      "gelu", "add", "softmax", "scale"};

constexpr std::array<std::string_view, 4> collective_names = {"all_reduce", "all_gather",
                                                              "reduce_scatter", "all_to_all"};

SaveUnit::Interval choose_interval(ChoiceTape& tape, bool is_odd) {
  const std::size_t first = tape.choose(n_markers - 1);
  if (!is_odd) return {marker_name(first), marker_name(first + 1)};
  // Backwards, or to a marker that no program passes.
  const std::size_t last = tape.choose(2) == 0 ? n_markers : first;
  return {marker_name(first + 1), marker_name(last)};
}

SaveUnit choose_unit(ChoiceTape& tape, const GeneratedCase& made, std::size_t number) {
  const std::string& protocol = made.scenario.protocol;
  SaveUnit unit;
  unit.name = "u" + std::to_string(number);
  if (protocol == "markers") {
    const bool is_odd = made.has(Feature::odd_markers) && tape.choose(3) == 2;
    unit.intervals.push_back(choose_interval(tape, is_odd));
    return unit;
  }
  if (protocol == "kept-callables" && tape.choose(4) != 3) {
    unit.callables.push_back(callable_name(tape.choose(n_callables)));
    return unit;
  }
  const std::size_t n_collectives = made.has_ranks() ? collective_names.size() : 0;
  const std::uint64_t op = tape.choose(op_names.size() + 1 + n_collectives);
  if (op < op_names.size()) {
    unit.ops.emplace_back(op_names[op]);
  } else if (op == op_names.size()) {
    unit.unknown_ops.emplace_back("vendor::fused");
  } else {
    unit.ops.emplace_back(collective_names[op - op_names.size() - 1]);
  }
  return unit;
}

UnitSelection choose_selection(ChoiceTape& tape, const UnitConfig& config) {
  switch (tape.choose(4)) {
    case 2:
      return {.names = {config.units.back().name}};
    case 3:
      return {};
    default:
      return {.all = true};
  }
}

}  // namespace

UnitConfig choose_units(ChoiceTape& tape, const GeneratedCase& made) {
  UnitConfig config;
  if (made.edit == Edit::written_between_markers) {
    SaveUnit unit;
    unit.name = "edited";
    unit.intervals = {{"edit_begin", "edit_end"}};
    config.units.push_back(std::move(unit));
    config.selection.all = true;
    return config;
  }
  const std::size_t n_units = 1 + tape.choose(3);
  for (std::size_t i = 0; i < n_units; ++i)
    config.units.push_back(choose_unit(tape, made, i));
  config.selection = choose_selection(tape, config);
  if (made.has(Feature::two_models) && tape.choose(2) == 1)
    config.sub_models[std::string(second_model)] = choose_selection(tape, config);
  if (tape.choose(8) == 7) config.keeps_any = false;
  return config;
}

}  // namespace remat
