#include "model/shapes.hpp"

#include <algorithm>

#include "model/tensor_layout.hpp"
#include "model/units.hpp"

namespace remat {
namespace {

InferredShape mismatch(std::string why) {
  return {{}, std::move(why)};
}

InferredShape broadcast(const std::vector<Shape>& inputs) {
  Shape out;
  for (const Shape& input : inputs) {
    if (input.size() > out.size()) out.insert(out.begin(), input.size() - out.size(), 1);
    for (std::size_t i = 0; i < input.size(); ++i) {
      std::int64_t& extent = out[out.size() - input.size() + i];
      if (extent == input[i] || input[i] == 1) continue;
      if (extent != 1) return mismatch("shapes that broadcast");
      extent = input[i];
    }
  }
  return {out, std::nullopt};
}

InferredShape matmul(const Shape& a, const Shape& b) {
  if (a.size() < 2 || b.size() < 2) return mismatch("matrices of two dimensions or more");
  if (a.back() != b[b.size() - 2]) {
    return mismatch("inner dimensions that agree: " + shown_shape(a) + " × " + shown_shape(b));
  }
  const bool same_batches =
      b.size() == 2 || (a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin()));
  if (!same_batches) {
    return mismatch("batch dimensions that agree: " + shown_shape(a) + " × " + shown_shape(b));
  }
  Shape out = a;
  out.back() = b.back();
  return {out, std::nullopt};
}

}  // namespace

std::string shown_shape(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

InferredShape infer_shape(const OpKind& kind, const std::vector<Shape>& inputs) {
  if (inputs.empty()) return mismatch("an input, or a shape of its own");
  switch (kind.shape) {
    case ShapeRule::like_first:
      return {inputs[0], std::nullopt};
    case ShapeRule::broadcast:
      return broadcast(inputs);
    case ShapeRule::scalar:
      return {{}, std::nullopt};
    case ShapeRule::matmul:
      if (inputs.size() < 2) return mismatch("two inputs");
      return matmul(inputs[0], inputs[1]);
    case ShapeRule::addmm: {
      if (inputs.size() < 3) return mismatch("three inputs: bias and two matrices");
      InferredShape product = matmul(inputs[1], inputs[2]);
      if (!product.mismatch && broadcast({product.shape, inputs[0]}).shape != product.shape)
        return mismatch("a bias that broadcasts to " + shown_shape(product.shape));
      return product;
    }
    case ShapeRule::transpose: {
      if (inputs[0].size() < 2) return mismatch("two dimensions or more");
      Shape out = inputs[0];
      std::swap(out[out.size() - 1], out[out.size() - 2]);
      return {out, std::nullopt};
    }
    case ShapeRule::concatenate: {
      Shape out = inputs[0];
      for (std::size_t i = 1; i < inputs.size(); ++i) {
        const bool fits = !out.empty() && inputs[i].size() == out.size() &&
                          std::equal(out.begin(), out.end() - 1, inputs[i].begin());
        if (!fits) return mismatch("shapes that agree but in the last dimension");
        out.back() = saturated_sum(out.back(), inputs[i].back());
      }
      return {out, std::nullopt};
    }
    case ShapeRule::embedding: {
      if (inputs.size() < 2 || inputs[0].size() != 2)
        return mismatch("a weight of two dimensions and an index");
      Shape out = inputs[1];
      out.push_back(inputs[0].back());
      return {out, std::nullopt};
    }
  }
  return mismatch("a known shape rule");
}

Shape shape_beside(Beside beside, const Shape& first) {
  Shape shape = first;
  switch (beside) {
    case Beside::row_statistics:
      if (!shape.empty()) shape.back() = 1;
      return shape;
    case Beside::channel_statistics:
      return shape.size() < 2 ? shape : Shape{shape[1]};
    case Beside::indices:
    case Beside::mask:
      return shape;
  }
  return shape;
}

std::int64_t flops_of(const OpKind& kind, const std::vector<Shape>& inputs, const Shape& output) {
  const std::int64_t elements = element_count(output);
  const std::size_t left_at = kind.shape == ShapeRule::addmm ? 1 : 0;
  if (!kind.is_matmul || left_at >= inputs.size()) return elements;
  const Shape& left = inputs[left_at];
  std::int64_t flops = 0;
  const std::int64_t inner = left.empty() ? 1 : left.back();
  const bool is_too_much = __builtin_mul_overflow(elements, inner, &flops) ||
                           __builtin_mul_overflow(flops, std::int64_t{2}, &flops);
  return is_too_much ? INT64_MAX : flops;
}

}  // namespace remat
