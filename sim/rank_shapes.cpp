#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/shapes.hpp"
#include "sim/rank.hpp"

// Shapes in a replay that has placeholders in place of outputs which nobody kept: what an op makes
// of them, and who notices (observed-hyperparallel.md §6 R20).

namespace remat {
namespace {

/// What an op makes of inputs whose shapes are not forward's.
struct CarriedShape {
  enum class Kind : std::uint8_t { known, raises, unknown } kind = Kind::unknown;
  Shape shape;
};

constexpr std::array elementwise = {
    std::string_view("add"),   std::string_view("sub"),   std::string_view("mul"),
    std::string_view("div"),   std::string_view("pow"),   std::string_view("sin"),
    std::string_view("cos"),   std::string_view("tanh"),  std::string_view("exp"),
    std::string_view("gelu"),  std::string_view("relu"),  std::string_view("sigmoid"),
    std::string_view("silu"),  std::string_view("neg"),   std::string_view("abs"),
    std::string_view("sqrt"),  std::string_view("rsqrt"), std::string_view("clone"),
    std::string_view("detach")};

bool is_legacy_empty(const Shape& shape) {
  return shape.size() == 1 && shape[0] == 0;
}

/// The dimension along which forward's inputs make up its output; none where it is not the only
/// one.
std::optional<std::size_t> dimension_of_cat(const std::vector<Shape>& inputs, const Shape& output) {
  std::optional<std::size_t> found;
  for (std::size_t d = 0; d < output.size(); ++d) {
    std::int64_t sum = 0;
    bool fits = true;
    for (Shape input : inputs) {
      fits = fits && input.size() == output.size();
      if (!fits) break;
      sum += input[d];
      input[d] = output[d];
      fits = input == output;
    }
    if (!fits || sum != output[d]) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

/// cat passes over tensors of shape [0], whatever the others look like.
CarriedShape carried_by_cat(const std::vector<Shape>& inputs, const std::vector<Shape>& forward,
                            Shape output) {
  using Kind = CarriedShape::Kind;
  if (std::all_of(inputs.begin(), inputs.end(), is_legacy_empty)) return {Kind::known, {0}};
  const std::optional<std::size_t> d = dimension_of_cat(forward, output);
  if (!d) return {};
  output[*d] = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_legacy_empty(inputs[i])) continue;
    if (inputs[i] != forward[i]) return {};
    output[*d] += inputs[i][*d];
  }
  return {Kind::known, output};
}

CarriedShape carried_shape(const OpStatement& op, const std::vector<Shape>& inputs,
                           const std::vector<Shape>& forward, const Shape& output) {
  using Kind = CarriedShape::Kind;
  if (op.outputs.size() != 1 || op.writes) return {};
  const std::string_view name = plain_op_name(op.name);
  if (std::find(elementwise.begin(), elementwise.end(), name) != elementwise.end()) {
    const InferredShape shape = infer_shape(*find_op_kind("add"), inputs);
    return {shape.mismatch ? Kind::raises : Kind::known, shape.shape};
  }
  if (op.name == "aten.sum.default" || op.name == "aten.mean.default") return {Kind::known, {}};
  if (name == "t" && inputs[0].size() < 2) return {Kind::known, inputs[0]};
  if (name == "cat") return carried_by_cat(inputs, forward, output);
  return {};
}

}  // namespace

const Shape& Rank::shape_of(const Tensor& tensor) const {
  const auto other = other_shapes_.find(tensor.id);
  return other != other_shapes_.end() ? other->second : value_of(tensor.value).layout.shape;
}

/// A tensor goes on under another identity, as the value `known_as`.
void Rank::keep_shape(ValueId known_as, std::int64_t from, const Tensor& to) {
  if (!options_.carries_shapes) return;
  const auto other = other_shapes_.find(from);
  const Shape shape =
      other != other_shapes_.end() ? other->second : value_of(to.value).layout.shape;
  if (shape != value_of(known_as).layout.shape) other_shapes_[to.id] = shape;
}

/// Looks at the op before it does anything: one that is made of others saves otherwise too.
Flow Rank::carry_shapes(Walk& walk, const OpStatement& op, CarriedShapes& made) {
  std::vector<Shape> inputs;
  std::vector<Shape> forward;
  for (const ValueId input : op.inputs) {
    inputs.push_back(shape_of(tensor_of(walk, input, walk.owner)));
    forward.push_back(value_of(input).layout.shape);
  }
  if (inputs == forward || op.outputs.empty()) return Flow::done;
  const CarriedShape carried =
      carried_shape(op, inputs, forward, value_of(op.outputs[0]).layout.shape);
  if (carried.kind == CarriedShape::Kind::unknown) {
    return fail("E-UNKNOWN", "builtins.RuntimeError",
                op.name + " reads a placeholder in a replay: what it does then is not told");
  }
  made.raises = carried.kind == CarriedShape::Kind::raises;
  made.made.push_back(carried.shape);
  return Flow::done;
}

Flow Rank::refuse_placeholder(const Walk& walk, const OpStatement& op) {
  return fail("E-PLACEHOLDER", "builtins.RuntimeError",
              fmt::format("{}: {} reads a placeholder, whose shape does not go with the others",
                          described(site_of(walk)), op.name));
}

void Rank::note_shapes(const CarriedShapes& shapes, const Tensors& outputs) {
  for (std::size_t j = 0; j < shapes.made.size() && j < outputs.size(); ++j) {
    const Shape& shape = shapes.made[j];
    if (shape != value_of(outputs[j].value).layout.shape) other_shapes_[outputs[j].id] = shape;
  }
}

/// A node's backward does not take a tensor of another shape than the one that it saved.
Flow Rank::refuse_other_shapes(const Node& node, const Tensors& saved) {
  if (!options_.carries_shapes) return Flow::done;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const SavedSlot& slot = node.saves[i];
    if (slot.where != SavedSlot::Where::input_slot) continue;
    const InputSlot& packed = frames_[slot.frame]->input_slots[slot.index];
    if (shape_of(saved[i]) == value_of(packed.value).layout.shape) continue;
    return fail(
        "E-PLACEHOLDER", "builtins.RuntimeError",
        fmt::format("{}: slot x{} of {}, input {}, was filled from a placeholder", node.op->name,
                    packed.number, described(*frames_[slot.frame], *packed.wrapper, packed.call),
                    packed.wrapper->inputs[packed.input].path));
  }
  return Flow::done;
}

}  // namespace remat
