#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/collectives.hpp"
#include "model/random_bits.hpp"
#include "sim/graph_task.hpp"
#include "sim/rank.hpp"

// Collectives: what a rank hands over, what it gets, and what backward hands back (I-26, I-27).

namespace remat {
namespace {

std::int64_t elements_of(const TensorLayout& layout) {
  return element_bytes_of(layout) / std::max<std::int64_t>(1, element_bytes(layout.dtype));
}

/// Two ranks that exchange one thing have the same.
std::uint64_t what_of(const OpStatement& op, const TensorLayout& layout) {
  std::uint64_t bits = op.seed;
  for (const char letter : layout.dtype)
    bits = random_bits(bits, static_cast<unsigned char>(letter), 0);
  return bits;
}

}  // namespace

/// Hands over what the op's ranks exchange; `elements`: of all of them, in the group's order.
Flow Rank::exchange(const OpStatement& op, Exchange what, const Handed& handed,
                    std::vector<Ring>& elements) {
  if (handed.run == "replay" && has(RankFault::collectives_left_out)) {
    elements.assign(port_.n_ranks(*op.group), handed.element);
    return Flow::done;
  }
  Meeting meeting = port_.issue(*op.group, what, handed);
  if (!meeting.code.empty()) {
    return fail(meeting.code, "builtins.RuntimeError",
                fmt::format("{}: {}", described(handed.site), meeting.why));
  }
  elements = std::move(meeting.elements);
  return Flow::done;
}

/// A collective of the program: what it writes is there before it is issued.
Flow Rank::run_collective(Walk& walk, const OpStatement& op, Tensors& outputs) {
  const Tensor given = tensor_of(walk, op.inputs.back(), walk.owner);
  bool is_new = false;
  for (const ValueId output : op.outputs)
    outputs.push_back(make_output(walk, op, output, outputs, is_new));
  const std::int64_t n = elements_of(value_of(op.inputs.back()).layout);
  std::vector<Ring> elements;
  const Flow flow = exchange(op, op.kind->exchange,
                             {.site = site_of(walk),
                              .microbatch = microbatch_,
                              .run = walk.is_replay ? "replay" : "forward",
                              .n = n,
                              .what = what_of(op, value_of(op.inputs.back()).layout),
                              .element = element_of(given),
                              .cost = op.cost},
                             elements);
  if (flow != Flow::done) return flow;
  const std::size_t place = port_.place_in(*op.group);
  const Ring value = received(op.kind->exchange, op.seed, elements, place);
  if (op.writes) {
    write_in_place(op, outputs[0], value);
    walk.unwritten.erase(ledger_.number(outputs[0].hold.storage()));
    carry_object(walk, tensor_of(walk, *op.writes, walk.owner).id, outputs[0].id);
  } else {
    ledger_.set_element(outputs[0].hold.storage(),
                        value * inverse(value_of(op.outputs[0]).constant));
  }
  show_op(walk, op, std::array{given.id}, {&given, 1}, span_of(outputs));
  return Flow::done;
}

/// A replay was served a collective that should have written the tensor: nothing has (I-26).
void Rank::note_unwritten(Walk& walk, const OpStatement& op) {
  if (!op.writes || !op.group || !cache_rules_.refuses_unwritten) return;
  const Tensor target = tensor_of(walk, *op.writes, walk.owner);
  walk.unwritten[ledger_.number(target.hold.storage())] = &op;
}

/// An op reads what a served collective should have written.
Flow Rank::refuse_unwritten(Walk& walk, const OpStatement& op) {
  if (walk.unwritten.empty()) return Flow::done;
  for (const ValueId input : op.inputs) {
    if (op.group && op.writes == input && op.inputs.size() > 1) continue;  // it is overwritten
    const std::int64_t storage = ledger_.number(tensor_of(walk, input, walk.owner).hold.storage());
    const auto unwritten = walk.unwritten.find(storage);
    if (unwritten == walk.unwritten.end()) continue;
    return fail("E-UNINIT", "builtins.RuntimeError",
                fmt::format("{}: {} reads uninitialised storage {}: its writer {} was served from "
                            "cache on rank {}",
                            described(site_of(walk)), op.name, storage, unwritten->second->name,
                            log_->rank().value_or(0)));
  }
  return Flow::done;
}

/// The node of a collective: each rank gets back what the others owe it.
Flow Rank::run_collective_node(GraphTask& task, std::size_t place) {
  Node& node = tape_[task.nodes[place].index()];
  const OpStatement& op = *node.op;
  const std::size_t given = op.inputs.size() - 1;
  Ring arrived;
  Few<std::int64_t> ids;
  const Ring of_first = inverse(value_of(op.outputs[0]).constant);
  const std::span<std::optional<Gradient>> gradients = task.arrived_at(place);
  for (std::size_t j = 0; j < gradients.size(); ++j) {
    if (!gradients[j]) continue;
    arrived += gradients[j]->value * value_of(op.outputs[j]).constant * of_first;
    ids.push_back(gradients[j]->id);
  }
  std::vector<Ring> elements;
  const Flow flow = exchange(op, transposed(op.kind->exchange),
                             {.site = node.site,
                              .microbatch = microbatch_,
                              .run = "backward",
                              .n = elements_of(value_of(op.outputs[0]).layout),
                              .what = what_of(op, value_of(op.outputs[0]).layout),
                              .element = arrived,
                              .cost = backward_cost(op, 1)},
                             elements);
  if (flow != Flow::done || !is_wanted(task, node.edges[given])) return flow;
  const std::size_t own = port_.place_in(*op.group);
  const std::string maker = log_->is_on() ? op.name + ".backward" : std::string();
  send(task, node.edges[given],
       make_gradient(maker, element_bytes_of(value_of(op.inputs[given]).layout),
                     sent_back(op.kind->exchange, op.seed, elements, own), span_of(ids)));
  return Flow::done;
}

}  // namespace remat
