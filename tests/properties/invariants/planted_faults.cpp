#include "tests/properties/invariants/planted_faults.hpp"

#include <algorithm>

#include "model/random_bits.hpp"

namespace remat {

std::size_t Choices::below(std::size_t n) {
  return static_cast<std::size_t>(random_bits(kind_, attempt_, count_++) % n);
}

ChangedTrace::ChangedTrace(const Recording& recording)
    : events_(recording.events.begin(), recording.events.end()), order_(recording.events.size()) {
  for (std::size_t i = 0; i < order_.size(); ++i)
    order_[i] = i;
}

nlohmann::json& ChangedTrace::operator[](std::size_t event) {
  return events_[event];
}

std::size_t ChangedTrace::place_of(std::size_t event) const {
  return static_cast<std::size_t>(std::find(order_.begin(), order_.end(), event) - order_.begin());
}

void ChangedTrace::drop(std::size_t event) {
  std::erase(order_, event);
}

std::size_t ChangedTrace::insert_before(std::size_t event, nlohmann::json what) {
  for (const char* field : {"phase", "thread"}) {
    if (!what.contains(field) && events_[event].contains(field))
      what[field] = events_[event][field];
  }
  const std::size_t name = events_.size();
  events_.push_back(std::move(what));
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(place_of(event)), name);
  return name;
}

std::size_t ChangedTrace::insert_after(std::size_t event, nlohmann::json what) {
  return insert_before(order_[place_of(event) + 1], std::move(what));
}

void ChangedTrace::move_before(std::size_t event, std::size_t other) {
  drop(event);
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(place_of(other)), event);
}

std::string ChangedTrace::text() const {
  std::string text;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    std::string event = events_[order_[i]].dump();
    event.replace(0, 1, "{\"seq\":" + std::to_string(i) + ",");
    text += event + "\n";
  }
  return text;
}

std::int64_t ChangedTrace::seq_of(std::size_t event) const {
  return static_cast<std::int64_t>(place_of(event));
}

}  // namespace remat
