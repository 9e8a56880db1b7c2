#include <utility>

#include "properties/body_generator.hpp"

// Statements about storages that several tensors share: views, and writes in place.

namespace remat {
namespace {

/// How a view looks at its base; `slice` alone goes for every base.
enum class ViewForm : std::uint8_t { slice, strided, unsqueeze, expand, transpose, bits };
constexpr std::uint64_t view_form_count = 6;

struct View {
  std::string_view kind;
  TensorLayout layout;
};

/// What is left from row `begin` on: of the last row on, nothing.
View sliced(TensorLayout base, std::int64_t begin) {
  base.shape[0] -= begin;
  base.offset += begin * base.stride[0];
  return {"slice", std::move(base)};
}

View viewed(ViewForm form, TensorLayout base) {
  switch (form) {
    case ViewForm::slice:
    case ViewForm::bits:
      break;
    case ViewForm::strided:  // every second row
      base.shape[0] = (base.shape[0] + 1) / 2;
      base.stride[0] *= 2;
      break;
    case ViewForm::unsqueeze:
      base.shape.insert(base.shape.begin(), 1);
      base.stride.insert(base.stride.begin(), base.shape[1] * base.stride[0]);
      return {"unsqueeze", std::move(base)};
    case ViewForm::expand:  // three times the same elements
      base.shape.insert(base.shape.begin(), 3);
      base.stride.insert(base.stride.begin(), 0);
      return {"expand", std::move(base)};
    case ViewForm::transpose:
      if (base.shape.size() == 1) return {"t", std::move(base)};
      std::swap(base.shape[0], base.shape[1]);
      std::swap(base.stride[0], base.stride[1]);
      return {"transpose", std::move(base)};
  }
  return {"slice", std::move(base)};
}

/// Elements of it lie on each other, so nothing may write it in place.
bool overlaps_itself(const TensorLayout& layout) {
  for (std::size_t d = 0; d < layout.shape.size(); ++d)
    if (layout.stride[d] == 0 && layout.shape[d] > 1) return true;
  return false;
}

}  // namespace

/// Where a slice begins; now and then past the last row, so that it is empty.
std::int64_t BodyGenerator::first_row(std::int64_t n_rows) {
  if (n_rows == 0 || tape_->choose(8) == 7) return n_rows;
  return static_cast<std::int64_t>(tape_->choose(static_cast<std::uint64_t>(n_rows)));
}

void BodyGenerator::write_view() {
  const ValueId base = pick();
  const TensorLayout& layout = builder_->value(base).layout;
  const auto form = static_cast<ViewForm>(tape_->choose(view_form_count));
  if (form == ViewForm::bits) return write_bits(base);
  const View view =
      form == ViewForm::slice ? sliced(layout, first_row(layout.shape[0])) : viewed(form, layout);
  pool_.push_back(builder_->op({&op_kind_named(view.kind), {base}}, {{view.layout}})[0]);
}

/// The tensor's bytes as integers, which weigh what there is to read.
void BodyGenerator::write_bits(ValueId base) {
  TensorLayout layout = builder_->value(base).layout;
  layout.dtype = "i8";
  const ValueId bits = builder_->op({&op_kind_named("view_dtype"), {base}}, {{layout}})[0];
  write_op("mul", {pick(), bits});
}

/// Writes a tensor that the innermost region made and that nothing relies on yet.
void BodyGenerator::write_in_place() {
  std::vector<ValueId> free;
  const auto may_write = [&](ValueId value) {
    const std::uint32_t buffer = builder_->value(value).buffer.index();
    return buffer >= buffer_floor_ && !fixed_.contains(buffer) &&
           !overlaps_itself(builder_->value(value).layout);
  };
  for (std::size_t i = region_floor_; i < pool_.size(); ++i) {
    const ValueId value = builder_->since_write(pool_[i]);
    if (may_write(value)) free.push_back(value);
  }
  if (free.empty()) {
    const ValueId made = write_op("scale", {pick()}, 1, false);
    if (!may_write(made)) return;  // a leaf of the caller's lies below
    free.push_back(made);
  }
  const ValueId target = free[free.size() - 1 - tape_->choose(free.size())];
  std::vector<ValueId> inputs = {target};
  // A reentrant forward has no graph and copies nothing; its replay would.
  const bool multiplies = !params_.empty() && !is("torch-reentrant") && tape_->choose(2) == 1;
  if (multiplies) inputs.push_back(params_[tape_->choose(params_.size())]);
  builder_->in_place({&op_kind_named(multiplies ? "mul" : "scale"), inputs, next_cost(), keeps()});
  refresh_pool();
}

}  // namespace remat
