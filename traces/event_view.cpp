#include "model/errors.hpp"
#include "traces/trace.hpp"
#include "traces/words.hpp"

namespace remat {

std::string_view EventView::kind_name() const {
  return shape_->kind_name ? trace_->names()[*shape_->kind_name] : name_of(shape_->kind);
}

std::optional<std::int64_t> EventView::integer(Field field) const {
  if (field == Field::seq) return event_->seq;
  if (!given(field)) return std::nullopt;
  const ShapeField& found = entry(field);
  if (found.cell == Cell::int32) return sign_extended(word(found));
  if (found.cell == Cell::int64) return joined(word(found), word(found, 1));
  return std::nullopt;
}

std::optional<bool> EventView::boolean(Field field) const {
  if (!given(field)) return std::nullopt;
  const Cell cell = entry(field).cell;
  if (cell == Cell::yes) return true;
  if (cell == Cell::no) return false;
  return std::nullopt;
}

std::optional<NameId> EventView::name(Field field) const {
  if (!given(field)) return std::nullopt;
  const ShapeField& found = entry(field);
  if (found.cell != Cell::name) return std::nullopt;
  return NameId(word(found));
}

std::string_view EventView::text_at(const ShapeField& field) const {
  return std::string_view(trace_->texts_).substr(word(field), word(field, 1));
}

std::string_view EventView::text(Field field) const {
  if (!given(field)) return {};
  const ShapeField& found = entry(field);
  if (found.cell == Cell::name) return trace_->names()[NameId(word(found))];
  if (found.cell == Cell::text) return text_at(found);
  return {};
}

std::optional<TensorView> EventView::tensor(Field field) const {
  if (!given(field)) return std::nullopt;
  const ShapeField& found = entry(field);
  if (found.cell != Cell::tensor) return std::nullopt;
  return trace_->tensor_at(word(found));
}

std::optional<SessionId> EventView::session(Field field) const {
  if (!given(field)) return std::nullopt;
  const ShapeField& found = entry(field);
  if (found.cell != Cell::session) return std::nullopt;
  return SessionId(word(found));
}

std::optional<NodeName> EventView::node(Field field) const {
  if (!given(field)) return std::nullopt;
  const ShapeField& found = entry(field);
  if (found.cell == Cell::node_name) return NodeName{NameId(word(found)), std::nullopt};
  if (found.cell == Cell::node) return trace_->nodes_[word(found)];
  return std::nullopt;
}

std::size_t EventView::list_size(Field field) const {
  if (!given(field)) return 0;
  const ShapeField& found = entry(field);
  if (found.cell != Cell::list32 && found.cell != Cell::list64 && found.cell != Cell::tensors)
    return 0;
  return trace_->lists_[word(found)];
}

std::int64_t EventView::list_item(Field field, std::size_t index) const {
  const ShapeField& found = entry(field);
  REMAT_INVARIANT(index < list_size(field));
  const std::size_t first = word(found) + 1;
  if (found.cell == Cell::list32) return sign_extended(trace_->lists_[first + index]);
  REMAT_INVARIANT(found.cell == Cell::list64);
  return joined(trace_->lists_[first + 2 * index], trace_->lists_[first + 2 * index + 1]);
}

TensorView EventView::tensor_item(Field field, std::size_t index) const {
  REMAT_INVARIANT(lists_tensors(field));
  REMAT_INVARIANT(index < list_size(field));
  return trace_->tensor_at(trace_->lists_[word(entry(field)) + 1] +
                           static_cast<std::uint32_t>(index));
}

}  // namespace remat
