#include "properties/program_generator.hpp"

#include <algorithm>
#include <array>

#include "model/phase_order.hpp"
#include "properties/body_generator.hpp"

namespace remat {
namespace {

constexpr std::array<std::string_view, feature_count> feature_names = {
    "views",         "in_place",     "containers", "random",       "no_grad", "nesting",
    "fan_out",       "many_outputs", "unused",     "side_effects", "frozen",  "updates",
    "whole_replays", "microbatches", "steps",      "retain",       "split"};

constexpr std::array<std::string_view, 4> protocol_names = {"torch", "torch-sac", "torch-reentrant",
                                                            "none"};

struct EditRow {
  std::string_view name;
  std::string_view code;
  bool needs_holders;  // torch or torch-sac
  bool needs_sac;
};
constexpr std::array edits = {
    EditRow{"raise in forward", "E-USER", false, false},
    EditRow{"raise in replay", "E-USER", true, false},
    EditRow{"backward twice", "E-TWICE", false, false},
    EditRow{"argument written", "E-MUTATED", true, false},
    EditRow{"parameter written", "E-MUTATED", true, false},
    EditRow{"fewer saves", "E-COUNT", true, false},
    EditRow{"more saves", "E-MORE", true, false},
    EditRow{"other path", "E-META", true, false},
    EditRow{"stale slot", "E-SLOT-STALE", true, false},
    EditRow{"selective twice", "E-TWICE", true, true},
    EditRow{"op without entry", "E-CACHE-MISS", true, true},
};

NegativeEdit choose_edit(ChoiceTape& tape, const std::string& protocol) {
  if (tape.choose(10) < 7) return {};
  std::vector<EditRow> possible;
  for (const EditRow& row : edits) {
    const bool has_holders = protocol == "torch" || protocol == "torch-sac";
    if (row.needs_holders && !has_holders) continue;
    if (row.needs_sac && protocol != "torch-sac") continue;
    // A selective region refuses the extra op before it packs too much.
    if (protocol == "torch-sac" &&
        (row.name == "more saves" || row.name == "other path" || row.name == "stale slot"))
      continue;
    possible.push_back(row);
  }
  const EditRow& row = possible[tape.choose(possible.size())];
  return {std::string(row.name), std::string(row.code)};
}

/// Phases of one step: each micro-batch's forward before its backward, otherwise in any order.
void add_step(ChoiceTape& tape, GeneratedCase& made, std::int64_t n_microbatches, bool splits,
              bool retains) {
  PhaseOrder& order = made.scenario.order;
  std::vector<std::int64_t> started;
  std::int64_t next = 0;
  order.push_back({.kind = PhaseStep::Kind::step_begin});
  while (next < n_microbatches || !started.empty()) {
    const bool goes_forward = next < n_microbatches && (started.empty() || tape.choose(2) == 0);
    if (goes_forward) {
      order.push_back({.kind = PhaseStep::Kind::forward, .microbatch = next});
      started.push_back(next++);
      continue;
    }
    const std::size_t at = tape.choose(started.size());
    const std::int64_t microbatch = started[at];
    started.erase(started.begin() + static_cast<std::ptrdiff_t>(at));
    if (splits) {
      order.push_back({.kind = PhaseStep::Kind::dx, .microbatch = microbatch});
      order.push_back({.kind = PhaseStep::Kind::dw, .microbatch = microbatch});
      continue;
    }
    if (retains) {
      order.push_back(
          {.kind = PhaseStep::Kind::backward, .microbatch = microbatch, .retain = true});
    }
    order.push_back({.kind = PhaseStep::Kind::backward, .microbatch = microbatch});
    if (made.edit.name == "backward twice" || made.edit.name == "selective twice") {
      order.back().retain = made.edit.name == "selective twice";
      order.push_back({.kind = PhaseStep::Kind::backward, .microbatch = microbatch});
    }
  }
  if (made.has(Feature::updates)) order.push_back({.kind = PhaseStep::Kind::update});
  order.push_back({.kind = PhaseStep::Kind::step_end});
}

void add_order(ChoiceTape& tape, GeneratedCase& made) {
  const std::string& protocol = made.scenario.protocol;
  const auto n_microbatches =
      made.has(Feature::microbatches) ? static_cast<std::int64_t>(1 + tape.choose(3)) : 1;
  const std::uint64_t n_steps = made.has(Feature::steps) ? 1 + tape.choose(2) : 1;
  // A selective region stands one replay, a reentrant one no partial gradient.
  const bool may_split = protocol == "torch" || protocol == "none";
  const bool is_edited = !made.edit.name.empty();
  const bool splits = may_split && !is_edited && made.has(Feature::split) && tape.choose(2) == 1;
  const bool retains = protocol != "torch-sac" && !splits && !is_edited &&
                       made.has(Feature::retain) && tape.choose(2) == 1;
  for (std::uint64_t step = 0; step < n_steps; ++step)
    add_step(tape, made, n_microbatches, splits, retains);
}

}  // namespace

std::string_view name_of(Feature feature) {
  return feature_names[static_cast<std::size_t>(feature)];
}

GeneratedCase generate_case(ChoiceTape& tape, const GeneratorOptions& options) {
  GeneratedCase made;
  Scenario& scenario = made.scenario;
  const std::uint64_t drawn = tape.choose(protocol_names.size());
  scenario.protocol =
      options.protocol.empty() ? std::string(protocol_names[drawn]) : options.protocol;
  for (std::size_t i = 0; i < feature_count; ++i)
    if (tape.choose(2) == 1) made.features |= 1U << i;
  made.features &= ~options.without;
  made.edit = choose_edit(tape, scenario.protocol);
  if (options.legal_only) made.edit = {};
  ProgramBuilder builder;
  BodyGenerator body(tape, made.features, scenario.protocol, builder);
  const ValueId root = body.write(made.edit);
  if (made.edit.name == "argument written") {
    if (body.region_argument()) {
      builder.update(builder.since_write(*body.region_argument()));
    } else {
      made.edit = {};
    }
  } else if (made.edit.name == "parameter written") {
    if (body.read_param()) {
      builder.update(*body.read_param());
    } else {
      made.edit = {};
    }
  }
  scenario.program = builder.finish(root);
  scenario.rank.seed = tape.choose(1000);
  scenario.rank.inputs_per_microbatch = true;
  add_order(tape, made);
  scenario.config_json = "{\"protocol\":\"" + scenario.protocol + "\"}";
  return made;
}

}  // namespace remat
