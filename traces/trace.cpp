#include "traces/trace.hpp"

#include <limits>

#include "model/errors.hpp"
#include "traces/words.hpp"

namespace remat {
namespace {

enum TensorMask : std::uint32_t {
  has_tensor = 1,
  has_storage = 2,
  has_version = 4,
  has_name = 8,
  has_aside = 16,
  is_wide = 32
};

bool fits_32_bits(std::int64_t value) {
  return value >= std::numeric_limits<std::int32_t>::min() &&
         value <= std::numeric_limits<std::int32_t>::max();
}

std::uint64_t combined(std::uint64_t seed, std::uint64_t value) {
  return mixed_bits(seed ^ mixed_bits(value + 1));
}

std::uint64_t bits_of(std::optional<NameId> id) {
  return id ? id->index() + 1ULL : 0;
}
std::uint64_t bits_of(std::optional<std::int64_t> value) {
  return value ? static_cast<std::uint64_t>(*value) * 2 + 1 : 0;
}

std::uint64_t bits_of(const Layout& layout) {
  std::uint64_t bits = combined(bits_of(layout.dtype), bits_of(layout.device));
  bits = combined(
      bits, layout.shape.size() * 4 + (layout.has_shape ? 1 : 0) + (layout.has_stride ? 2 : 0));
  for (const std::int64_t item : layout.shape)
    bits = combined(bits, static_cast<std::uint64_t>(item));
  for (const std::int64_t item : layout.stride)
    bits = combined(bits, static_cast<std::uint64_t>(item));
  return combined(combined(bits, bits_of(layout.offset)), bits_of(layout.bytes));
}

/// Finds the row equal to `wanted` behind its hash, or the free key to put it under.
template <typename Equal>
std::pair<std::int64_t, const std::uint32_t*> find_row(const FlatMap<std::uint32_t>& index,
                                                       std::uint64_t bits, Equal equal) {
  for (;; ++bits) {
    const auto key = static_cast<std::int64_t>(bits);
    const std::uint32_t* row = index.find(key);
    if (row == nullptr || equal(*row)) return {key, row};
  }
}

}  // namespace

void Trace::drop_events() {
  events_.clear();
  words_.clear();
  lists_.clear();
  tensors_.clear();
  tensors_aside_.clear();
  nodes_.clear();
  texts_.clear();
  drafting_ = false;
}

void Trace::shrink_to_fit() {
  events_.shrink_to_fit();
  words_.shrink_to_fit();
  lists_.shrink_to_fit();
  tensors_.shrink_to_fit();
  tensors_aside_.shrink_to_fit();
  nodes_.shrink_to_fit();
  texts_.shrink_to_fit();
}

std::size_t Trace::bytes_in_memory() const {
  std::size_t bytes =
      events_.capacity() * sizeof(Event) + words_.capacity() * sizeof(std::uint32_t) +
      lists_.capacity() * sizeof(std::uint32_t) + tensors_.capacity() * sizeof(TensorRow) +
      tensors_aside_.capacity() * sizeof(TensorAside) + nodes_.capacity() * sizeof(NodeName) +
      texts_.capacity() + names_.bytes_in_memory() + sessions_.size() * sizeof(SessionName) +
      layout_index_.bytes_in_memory() + session_index_.bytes_in_memory() +
      shape_index_.bytes_in_memory();
  for (const Layout& layout : layouts_) {
    bytes += sizeof(Layout) +
             sizeof(std::int64_t) * (layout.shape.capacity() + layout.stride.capacity());
  }
  for (const EventShape& shape : shapes_)
    bytes += sizeof(EventShape) + shape.fields.capacity() * sizeof(ShapeField);
  return bytes;
}

void Trace::begin_event() {
  draft_.kind_name.reset();
  draft_.fields.clear();
  if (drafting_) words_.resize(draft_words_);  // of an event that was not ended
  require_room();
  draft_words_ = static_cast<std::uint32_t>(words_.size());
  drafting_ = true;
}

/// Tables are indexed by 32 bits: some 16 GiB of them. No event adds more than is left here.
void Trace::require_room() const {
  constexpr std::size_t rows_max = 0xf0000000;
  if (words_.size() < rows_max && lists_.size() < rows_max && tensors_.size() < rows_max &&
      texts_.size() < rows_max)
    return;
  throw TraceTooLarge(
      "the trace is too large to keep in memory at once; check reads it as it comes");
}

void Trace::push_field(std::uint32_t key, Cell cell) {
  const std::size_t word = words_.size() - draft_words_;
  REMAT_INVARIANT(word < 256);
  REMAT_INVARIANT(draft_.fields.size() < EventShape::absent);
  draft_.fields.push_back({key, cell, static_cast<std::uint8_t>(word)});
}

void Trace::add_null(Field field) {
  push_field(static_cast<std::uint32_t>(field), Cell::null);
}
void Trace::add(Field field, bool value) {
  push_field(static_cast<std::uint32_t>(field), value ? Cell::yes : Cell::no);
}

void Trace::add(Field field, std::int64_t value) {
  const bool small = fits_32_bits(value);
  push_field(static_cast<std::uint32_t>(field), small ? Cell::int32 : Cell::int64);
  words_.push_back(low_word(value));
  if (!small) words_.push_back(high_word(value));
}

void Trace::add_name(Field field, std::string_view value) {
  push_field(static_cast<std::uint32_t>(field), Cell::name);
  words_.push_back(names_.intern(value).index());
}

std::uint32_t Trace::keep_text(std::string_view text) {
  const auto first = static_cast<std::uint32_t>(texts_.size());
  texts_.append(text);
  return first;
}

void Trace::add_text(Field field, std::string_view value) {
  push_field(static_cast<std::uint32_t>(field), Cell::text);
  words_.push_back(keep_text(value));
  words_.push_back(static_cast<std::uint32_t>(value.size()));
}

void Trace::add_unknown(std::string_view name, std::string_view json) {
  push_field(static_cast<std::uint32_t>(field_count) + names_.intern(name).index(), Cell::text);
  words_.push_back(keep_text(json));
  words_.push_back(static_cast<std::uint32_t>(json.size()));
}

void Trace::add_list(Field field, std::span<const std::int64_t> values) {
  bool small = true;
  for (const std::int64_t value : values)
    small = small && fits_32_bits(value);
  push_field(static_cast<std::uint32_t>(field), small ? Cell::list32 : Cell::list64);
  words_.push_back(static_cast<std::uint32_t>(lists_.size()));
  lists_.push_back(static_cast<std::uint32_t>(values.size()));
  for (const std::int64_t value : values) {
    lists_.push_back(low_word(value));
    if (!small) lists_.push_back(high_word(value));
  }
}

std::uint32_t Trace::keep_tensor(const TensorView& tensor) {
  TensorRow row;
  row.layout = tensor.layout.index();
  row.tensor = low_word(tensor.tensor.value_or(0));
  row.storage = low_word(tensor.storage.value_or(0));
  row.version = low_word(tensor.version.value_or(0));
  row.mask = (tensor.tensor ? has_tensor : 0U) | (tensor.storage ? has_storage : 0U) |
             (tensor.version ? has_version : 0U) | (tensor.name ? has_name : 0U);
  if (!fits_32_bits(tensor.tensor.value_or(0)) || !fits_32_bits(tensor.storage.value_or(0)))
    row.mask |= is_wide;
  if ((row.mask & is_wide) != 0 || tensor.name || !tensor.value.empty() || !tensor.extra.empty()) {
    row.mask |= has_aside;
    row.aside = static_cast<std::uint32_t>(tensors_aside_.size());
    TensorAside aside;
    aside.tensor = tensor.tensor.value_or(0);
    aside.storage = tensor.storage.value_or(0);
    aside.name = tensor.name ? tensor.name->index() : 0;
    aside.value_first = keep_text(tensor.value);
    aside.value_size = static_cast<std::uint32_t>(tensor.value.size());
    aside.extra_first = keep_text(tensor.extra);
    aside.extra_size = static_cast<std::uint32_t>(tensor.extra.size());
    tensors_aside_.push_back(aside);
  }
  tensors_.push_back(row);
  return static_cast<std::uint32_t>(tensors_.size() - 1);
}

void Trace::add_tensor(Field field, const TensorView& tensor) {
  push_field(static_cast<std::uint32_t>(field), Cell::tensor);
  words_.push_back(keep_tensor(tensor));
}

void Trace::add_tensors(Field field, std::span<const TensorView> tensors) {
  push_field(static_cast<std::uint32_t>(field), Cell::tensors);
  words_.push_back(static_cast<std::uint32_t>(lists_.size()));
  lists_.push_back(static_cast<std::uint32_t>(tensors.size()));
  lists_.push_back(
      static_cast<std::uint32_t>(tensors_.size()));  // the rows of one list follow each other
  for (const TensorView& tensor : tensors)
    keep_tensor(tensor);
}

void Trace::add_session(Field field, const SessionName& session) {
  push_field(static_cast<std::uint32_t>(field), Cell::session);
  words_.push_back(intern(session).index());
}

void Trace::add_node(Field field, const NodeName& node) {
  if (!node.number) {
    push_field(static_cast<std::uint32_t>(field), Cell::node_name);
    words_.push_back(node.name.index());
    return;
  }
  push_field(static_cast<std::uint32_t>(field), Cell::node);
  if (nodes_.empty() || !(nodes_.back() == node))
    nodes_.push_back(node);  // a node's events follow each other
  words_.push_back(static_cast<std::uint32_t>(nodes_.size() - 1));
}

LayoutId Trace::intern(const Layout& layout) {
  const auto [key, row] = find_row(layout_index_, bits_of(layout), [&](std::uint32_t at) {
    return layouts_[LayoutId(at)] == layout;
  });
  if (row != nullptr) return LayoutId(*row);
  const LayoutId id = layouts_.push_back(layout);
  layout_index_[key] = id.index();
  return id;
}

SessionId Trace::intern(const SessionName& session) {
  const std::uint64_t bits =
      combined(combined(session.kind.index(), bits_of(session.number)), bits_of(session.name));
  const auto [key, row] = find_row(
      session_index_, bits, [&](std::uint32_t at) { return sessions_[SessionId(at)] == session; });
  if (row != nullptr) return SessionId(*row);
  const SessionId id = sessions_.push_back(session);
  session_index_[key] = id.index();
  return id;
}

std::uint32_t Trace::shape_of_draft() {
  std::uint64_t bits = static_cast<std::uint64_t>(draft_.kind) * phase_count +
                       static_cast<std::uint64_t>(draft_.phase);
  bits = bits * 0x9e3779b97f4a7c15ULL + bits_of(draft_.kind_name);
  for (const ShapeField& field : draft_.fields) {
    bits = (bits ^ (static_cast<std::uint64_t>(field.key) << 8U) ^
            static_cast<std::uint64_t>(field.cell)) *
           0x9e3779b97f4a7c15ULL;
  }
  const auto [key, row] = find_row(shape_index_, mixed_bits(bits), [&](std::uint32_t at) {
    const EventShape& shape = shapes_[at];
    if (shape.kind != draft_.kind || shape.phase != draft_.phase ||
        shape.kind_name != draft_.kind_name || shape.fields.size() != draft_.fields.size())
      return false;
    for (std::size_t i = 0; i < shape.fields.size(); ++i) {
      if (shape.fields[i].key != draft_.fields[i].key ||
          shape.fields[i].cell != draft_.fields[i].cell)
        return false;
    }
    return true;
  });
  if (row != nullptr) return *row;
  EventShape shape = draft_;
  shape.place.fill(EventShape::absent);
  for (std::size_t i = 0; i < shape.fields.size(); ++i) {
    if (shape.fields[i].key < field_count)
      shape.place[shape.fields[i].key] = static_cast<std::uint8_t>(i);
  }
  shapes_.push_back(std::move(shape));
  shape_index_[key] = static_cast<std::uint32_t>(shapes_.size() - 1);
  return static_cast<std::uint32_t>(shapes_.size() - 1);
}

void Trace::end_event(Kind kind, Phase phase, std::int64_t seq) {
  drafting_ = false;
  draft_.kind = kind;
  draft_.phase = phase;
  events_.push_back({seq, shape_of_draft(), draft_words_});
}

void Trace::end_unknown_event(std::string_view kind_name, Phase phase, std::int64_t seq) {
  draft_.kind_name = names_.intern(kind_name);
  end_event(Kind::unknown, phase, seq);
}

TensorView Trace::tensor_at(std::uint32_t index) const {
  const TensorRow& row = tensors_[index];
  TensorView view{.tensor = {},
                  .storage = {},
                  .version = {},
                  .name = {},
                  .value = {},
                  .extra = {},
                  .layout = LayoutId(row.layout)};
  if ((row.mask & has_tensor) != 0) view.tensor = sign_extended(row.tensor);
  if ((row.mask & has_storage) != 0) view.storage = sign_extended(row.storage);
  if ((row.mask & has_version) != 0) view.version = row.version;
  if ((row.mask & has_aside) == 0) return view;
  const TensorAside& aside = tensors_aside_[row.aside];
  if ((row.mask & is_wide) != 0 && view.tensor) view.tensor = aside.tensor;
  if ((row.mask & is_wide) != 0 && view.storage) view.storage = aside.storage;
  if ((row.mask & has_name) != 0) view.name = NameId(aside.name);
  view.value = std::string_view(texts_).substr(aside.value_first, aside.value_size);
  view.extra = std::string_view(texts_).substr(aside.extra_first, aside.extra_size);
  return view;
}

}  // namespace remat
