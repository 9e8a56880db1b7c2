#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json_place.hpp"
#include "model/program_builder.hpp"
#include "model/program_json.hpp"
#include "model/shapes.hpp"

namespace remat {

/// How a view lies on its base.
struct ViewOf {
  Shape shape;
  std::vector<std::int64_t> stride;
  std::int64_t offset = 0;
};

/// A parameter of a layer.
struct NewParam {
  std::string_view name;
  Shape shape;
  bool is_trained = true;
};

/// Puts a model's ops and regions together: names them after the layer that they are in, gives them
/// costs, and refuses tensors that are too large.
class ModelAssembly {
 public:
  /// `dtype` is that of all tensors that say nothing else.
  ModelAssembly(const JsonPlace& place, const ProgramReading& reading, std::string dtype)
      : place_(place), reading_(&reading), dtype_(std::move(dtype)) {}

  const Shape& shape(ValueId value) const { return layout(value).shape; }
  NewTensor tensor(std::string_view name, Shape shape) const;
  NewTensor tensor(std::string_view name, Shape shape, std::string_view dtype) const;

  /// What the program is given, to be followed by `own` once all leaves are there: those come
  /// first, as in a scenario that is written out.
  ValueId input(std::string_view name, Shape shape);
  /// One of the layer that is being made.
  ValueId param(const std::string& name) const { return params_.at(prefix_ + name); }
  /// A model's input counts for nobody, so it goes through an op that saves nothing and costs
  /// nothing, and the first layer's input counts like any other.
  ValueId own(ValueId input);

  std::vector<ValueId> op(std::string_view kind, const std::vector<ValueId>& inputs,
                          const std::vector<NewTensor>& outputs);
  /// An op of one output.
  ValueId one(std::string_view kind, const std::vector<ValueId>& inputs, const NewTensor& output) {
    return op(kind, inputs, {output}).front();
  }
  /// A step whose costs are told.
  ValueId step(std::string_view kind, ValueId input, const NewTensor& output, Duration cost,
               Duration gradient_cost);
  /// A product of matrices: backward takes as long for each of the two gradients. `computed` is its
  /// shape where ranks then share it out.
  ValueId product(std::string_view kind, ValueId left, ValueId right, const NewTensor& output,
                  const std::optional<Shape>& computed = std::nullopt);
  /// Attention as one kernel; `computed` is the shape of both its products together.
  std::vector<ValueId> fused_attention(const std::vector<ValueId>& inputs,
                                       const std::vector<NewTensor>& outputs,
                                       const Shape& computed);
  ValueId view(std::string_view kind, ValueId base, std::string_view name, const ViewOf& how);

  /// What makes one tensor out of others.
  using Body = std::function<ValueId()>;
  /// Runs `body` in a checkpointed region of that name, or in none.
  ValueId checkpointed(bool is_one, std::string_view name, const Body& body);
  /// Runs `body` as an offload group, which is plain code under a protocol that does not offload.
  ValueId offloadable(const std::string& name, const Body& body);
  /// Both for a layer: what is made in it is named after it, "layer0.scores".
  ValueId layer(std::int64_t number, bool is_checkpointed, const Body& body);
  /// Runs `body` in an excluded region, or in none.
  ValueId excluded(bool is_one, std::string_view name, const std::vector<ValueId>& inputs,
                   const Body& body);
  ValueId without_grad(const Body& body);

  /// The program whose loss is the sum of this, which costs nothing.
  Program finish(ValueId last);

  /// A program of so many equal layers on an input of that shape.
  Program layered(std::int64_t n_layers, const Shape& shape, const std::vector<NewParam>& params,
                  const std::function<ValueId(std::int64_t number, ValueId x)>& make_layer);

 private:
  /// The parameters of a layer, named after it.
  void declare(std::int64_t layer, const std::vector<NewParam>& params);
  const TensorLayout& layout(ValueId value) const { return builder_.value(value).layout; }
  void require_fits(const NewTensor& made) const;
  NewOp started(std::string_view kind, const std::vector<ValueId>& inputs) const;
  Duration cost(const OpKind& like, const NewOp& op, const std::vector<NewTensor>& outputs,
                const Shape& computed) const;
  std::vector<ValueId> add(const NewOp& op, const std::vector<NewTensor>& outputs);

  JsonPlace place_;
  const ProgramReading* reading_;
  std::string dtype_;
  std::string prefix_;
  std::map<std::string, ValueId> params_;
  ProgramBuilder builder_;
};

}  // namespace remat
