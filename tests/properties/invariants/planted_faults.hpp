#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/properties/invariants/recording.hpp"

namespace remat {

/// Choices of one planting, each a function of (kind, try, how many came before).
class Choices {
 public:
  Choices(std::uint64_t kind, std::uint64_t attempt) : kind_(kind), attempt_(attempt) {}
  /// 0 … n - 1; n > 0.
  std::size_t below(std::size_t n);
  /// first … last.
  std::size_t between(std::size_t first, std::size_t last) {
    return first + below(last - first + 1);
  }
  template <typename Item>
  const Item& one_of(const std::vector<Item>& items) {
    return items[below(items.size())];
  }

 private:
  std::uint64_t kind_;
  std::uint64_t attempt_;
  std::uint64_t count_ = 0;
};

/// A recording under change. Events keep their names in it (places in the recording, then on)
/// however much is put in, taken out or moved around them.
class ChangedTrace {
 public:
  explicit ChangedTrace(const Recording& recording);

  /// The event as it is now, to look at or to change.
  nlohmann::json& operator[](std::size_t event);
  void drop(std::size_t event);
  /// Puts a new event in; its name. It takes phase and thread of the one behind it.
  std::size_t insert_before(std::size_t event, nlohmann::json what);
  std::size_t insert_after(std::size_t event, nlohmann::json what);
  void move_before(std::size_t event, std::size_t other);

  /// JSON Lines with `seq` from 0.
  std::string text() const;
  std::int64_t seq_of(std::size_t event) const;

 private:
  std::size_t place_of(std::size_t event) const;

  std::deque<nlohmann::json> events_;  // by name
  std::vector<std::size_t> order_;     // names
};

/// What a fault was planted to make.
struct Planted {
  std::string_view invariant;
  std::optional<std::size_t> certain_at;  // the event at which it is certain, where that is one
  std::vector<std::string_view> also{};   // what else the same fault breaks
};

/// One kind of fault, planted at a place that the choices pick; none where the recording has no
/// such place.
struct FaultKind {
  std::string_view name;
  std::function<std::optional<Planted>(const Recording&, ChangedTrace&, Choices&)> plant;
};

/// Faults of slots and replays; of storages; of what a whole step or several ranks do.
std::vector<FaultKind> faults_in_slots();
std::vector<FaultKind> faults_in_memory();
std::vector<FaultKind> faults_in_steps();

}  // namespace remat
