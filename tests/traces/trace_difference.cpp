#include "tests/traces/trace_difference.hpp"

#include <map>
#include <vector>

namespace remat {
namespace {

std::optional<std::string_view> spelling(const Trace& trace, std::optional<NameId> name) {
  if (!name) return std::nullopt;
  return trace.names()[*name];
}

bool same_tensor(const Trace& a, const TensorView& x, const Trace& b, const TensorView& y) {
  const Layout& p = a.layout(x.layout);
  const Layout& q = b.layout(y.layout);
  return x.tensor == y.tensor && x.storage == y.storage && x.version == y.version &&
         spelling(a, x.name) == spelling(b, y.name) && x.value == y.value && x.extra == y.extra &&
         spelling(a, p.dtype) == spelling(b, q.dtype) && p.shape == q.shape &&
         p.stride == q.stride && p.has_shape == q.has_shape && p.has_stride == q.has_stride &&
         p.offset == q.offset && p.bytes == q.bytes &&
         spelling(a, p.device) == spelling(b, q.device);
}

bool same_session(const EventView& a, const EventView& b, Field field) {
  if (!a.session(field)) return !b.session(field);
  const SessionName& x = a.trace().session(*a.session(field));
  const SessionName& y = b.trace().session(*b.session(field));
  return spelling(a.trace(), x.kind) == spelling(b.trace(), y.kind) && x.number == y.number &&
         spelling(a.trace(), x.name) == spelling(b.trace(), y.name);
}

bool same_node(const EventView& a, const EventView& b, Field field) {
  const auto x = a.node(field);
  const auto y = b.node(field);
  if (!x) return !y;
  return spelling(a.trace(), x->name) == spelling(b.trace(), y->name) && x->number == y->number;
}

bool same_list(const EventView& a, const EventView& b, Field field) {
  if (a.list_size(field) != b.list_size(field)) return false;
  for (std::size_t i = 0; i < a.list_size(field); ++i) {
    if (a.lists_tensors(field)) {
      if (!same_tensor(a.trace(), a.tensor_item(field, i), b.trace(), b.tensor_item(field, i)))
        return false;
    } else if (a.list_item(field, i) != b.list_item(field, i)) {
      return false;
    }
  }
  return true;
}

bool same_value(const EventView& a, const EventView& b, Field field) {
  if (a.given(field) != b.given(field) || a.has(field) != b.has(field)) return false;
  if (!a.has(field)) return true;
  const auto cell = [&](const EventView& event) {
    const EventShape& shape = event.shape();
    return shape.fields[shape.place[static_cast<std::size_t>(field)]].cell;
  };
  if (cell(a) != cell(b)) return false;
  const auto x = a.tensor(field);
  const auto y = b.tensor(field);
  if (x && !same_tensor(a.trace(), *x, b.trace(), *y)) return false;
  return a.integer(field) == b.integer(field) && a.boolean(field) == b.boolean(field) &&
         a.text(field) == b.text(field) && same_session(a, b, field) && same_node(a, b, field) &&
         same_list(a, b, field);
}

std::map<std::string, std::string> unknown_fields(const EventView& event) {
  std::map<std::string, std::string> fields;
  event.each_unknown([&](std::string_view name, std::string_view json) {
    fields.emplace(std::string(name), std::string(json));
  });
  return fields;
}

}  // namespace

std::optional<std::string> first_difference(const Trace& a, const Trace& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const std::string event = "event " + std::to_string(i) + ": ";
    if (a[i].seq() != b[i].seq()) return event + "seq";
    if (a[i].kind() != b[i].kind() || a[i].kind_name() != b[i].kind_name()) return event + "kind";
    if (a[i].phase() != b[i].phase()) return event + "phase";
    for (std::size_t f = 0; f < field_count; ++f) {
      const auto field = static_cast<Field>(f);
      if (!same_value(a[i], b[i], field)) return event + std::string(name_of(field));
    }
    if (unknown_fields(a[i]) != unknown_fields(b[i])) return event + "unknown fields";
  }
  if (a.size() != b.size()) return "the number of events";
  return std::nullopt;
}

}  // namespace remat
