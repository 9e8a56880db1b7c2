#include "traces/rebuild/tensor_registry.hpp"

namespace remat {

std::string TensorRegistry::key_of(std::int64_t storage, const Layout& layout) {
  std::string key = std::to_string(storage) + "+" + std::to_string(layout.offset.value_or(0));
  for (const std::int64_t extent : layout.shape)
    key += "," + std::to_string(extent);
  key += "/";
  for (const std::int64_t stride : layout.stride)
    key += "," + std::to_string(stride);
  return key;
}

void TensorRegistry::describe(const TensorView& tensor) {
  if (!tensor.tensor || !tensor.storage) return;
  describe(*tensor.tensor, *tensor.storage, trace_->layout(tensor.layout));
}

void TensorRegistry::name_leaf(std::int64_t tensor, std::string_view name, bool requires_grad) {
  named_[tensor] = {std::string(name), requires_grad};
}

BufferId TensorRegistry::buffer_of(std::int64_t storage, const Layout& layout) {
  if (const std::uint32_t* known = buffers_.find(storage)) return BufferId(*known);
  ProgramBuffer buffer;
  if (const BufferRole* role = roles_.find(storage)) buffer.role = *role;
  const std::int64_t* bytes = bytes_.find(storage);
  buffer.bytes = bytes != nullptr ? *bytes : layout.bytes.value_or(0);
  const BufferId made = program_->buffers.push_back(buffer);
  buffers_[storage] = made.index();
  return made;
}

ValueId TensorRegistry::add(std::int64_t storage, const Layout& layout, std::string name,
                            bool requires_grad) {
  ProgramValue value;
  value.name = std::move(name);
  value.buffer = buffer_of(storage, layout);
  value.layout.dtype = layout.dtype ? std::string(trace_->names()[*layout.dtype]) : "f32";
  value.layout.shape = layout.shape;
  value.layout.stride = layout.stride;
  value.layout.offset = layout.offset.value_or(0);
  value.floating = is_floating(value.layout.dtype);
  value.requires_grad = requires_grad && value.floating;
  const ValueId made = program_->values.push_back(std::move(value));
  latest_[key_of(storage, layout)] = made.index();
  return made;
}

std::optional<ValueId> TensorRegistry::value_of(std::int64_t tensor) {
  if (const std::uint32_t* known = values_.find(tensor)) return current(*known);
  const auto where = where_.find(tensor);
  if (where == where_.end()) return std::nullopt;
  const Layout& layout = where->second.layout;
  const auto named = named_.find(tensor);
  const auto same = latest_.find(key_of(where->second.storage, layout));
  if (same != latest_.end()) {
    values_[tensor] = same->second;
    return ValueId(same->second);
  }
  // Nothing made it in the forward: it was there before, whoever owns it.
  if (made_.count(where->second.storage) > 0) {
    has_unknown_view_ = true;
  } else if (!roles_.contains(where->second.storage)) {
    roles_[where->second.storage] = BufferRole::external;
  }
  const ValueId leaf =
      add(where->second.storage, layout,
          named == named_.end() ? "t" + std::to_string(tensor) : named->second.name,
          named != named_.end() && named->second.requires_grad);
  leaves_.insert(leaf.index());
  values_[tensor] = leaf.index();
  return leaf;
}

std::optional<ValueId> TensorRegistry::value_of(const TensorView& tensor) {
  if (!tensor.tensor || !tensor.storage) return std::nullopt;
  // The very object, where it is known and lies where it did; otherwise what lies there.
  const std::uint32_t* known = values_.find(*tensor.tensor);
  const auto where = where_.find(*tensor.tensor);
  if (known != nullptr && where != where_.end() &&
      key_of(where->second.storage, where->second.layout) ==
          key_of(*tensor.storage, trace_->layout(tensor.layout)))
    return current(*known);
  const auto same = latest_.find(key_of(*tensor.storage, trace_->layout(tensor.layout)));
  if (same != latest_.end()) return ValueId(same->second);
  describe(tensor);
  return value_of(*tensor.tensor);
}

ValueId TensorRegistry::make(const TensorView& tensor, bool requires_grad) {
  const std::int64_t storage = tensor.storage.value_or(-1);
  const std::int64_t id = tensor.tensor.value_or(-1);
  const ValueId made =
      add(storage, trace_->layout(tensor.layout), "t" + std::to_string(id), requires_grad);
  values_[id] = made.index();
  made_[storage].push_back(made);
  forward_of_[made.index()] = forward_ + 1;
  return made;
}

void TensorRegistry::require_this_forward(ValueId value) {
  const std::size_t* made_in = forward_of_.find(value.index());
  if (made_in != nullptr && *made_in != forward_ + 1) reads_another_forward_ = true;
}

bool TensorRegistry::is_same_place(ValueId a, ValueId b) const {
  const ProgramValue& one = program_->values[a];
  const ProgramValue& other = program_->values[b];
  return a == b || (one.buffer == other.buffer && one.layout == other.layout);
}

ValueId TensorRegistry::current(std::uint32_t value) const {
  for (auto next = moved_.find(value); next != moved_.end(); next = moved_.find(value))
    value = next->second;
  return ValueId(value);
}

ValueId TensorRegistry::make_written(ValueId value) {
  const ProgramValue written = program_->values[value];
  const ValueId made = program_->values.push_back(written);
  forward_of_[made.index()] = forward_ + 1;
  return made;
}

std::vector<ValueId> TensorRegistry::rebase(std::int64_t storage, ValueId written,
                                            bool requires_grad) {
  const std::string prefix = std::to_string(storage) + "+";
  std::vector<ValueId> made;
  for (auto at = latest_.lower_bound(prefix); at != latest_.end() && at->first.starts_with(prefix);
       ++at) {
    if (at->second == written.index() || leaves_.contains(at->second)) continue;
    ProgramValue value = program_->values[ValueId(at->second)];
    value.requires_grad = (value.requires_grad || requires_grad) && value.floating;
    const ValueId rebased = program_->values.push_back(std::move(value));
    moved_[at->second] = rebased.index();
    at->second = rebased.index();
    made_[storage].push_back(rebased);
    forward_of_[rebased.index()] = forward_ + 1;
    made.push_back(rebased);
  }
  return made;
}

ValueId TensorRegistry::make_detached(const TensorView& tensor) {
  const std::string key = key_of(tensor.storage.value_or(-1), trace_->layout(tensor.layout));
  const auto before = latest_.find(key);
  const bool has_original = before != latest_.end();
  const std::uint32_t original = has_original ? before->second : 0;
  const ValueId made = make(tensor, false);
  if (has_original) latest_[key] = original;
  return made;
}

std::vector<ValueId> TensorRegistry::made_on(std::int64_t storage) const {
  const auto found = made_.find(storage);
  return found == made_.end() ? std::vector<ValueId>() : found->second;
}

}  // namespace remat
