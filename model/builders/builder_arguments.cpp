#include "model/builders/builder_arguments.hpp"

#include <algorithm>
#include <vector>

#include "model/listed.hpp"

namespace remat {
namespace {

constexpr std::int64_t size_max = INT32_MAX;

}  // namespace

BuilderArguments::BuilderArguments(const JsonPlace& place, std::span<const BuilderKey> keys)
    : place_(place), keys_(keys) {
  std::vector<std::string_view> names;
  for (const BuilderKey& key : keys)
    names.push_back(key.name);
  place_.allow_only(names);
}

std::int64_t BuilderArguments::size_of(const JsonPlace& place) {
  const std::int64_t size = place.integer(1);
  if (size > size_max) {
    place.fail("this is " + std::to_string(size) + "; expected an integer of 1 to " +
               std::to_string(size_max));
  }
  return size;
}

std::int64_t BuilderArguments::size(std::string_view key, std::int64_t otherwise) const {
  return has(key) ? size(key) : otherwise;
}

std::int64_t BuilderArguments::size_up_to(std::string_view key, std::int64_t most,
                                          std::string_view most_is) const {
  const std::int64_t n = size(key);
  if (n > most) {
    at(key).fail(std::to_string(n) + " is above " + std::string(most_is) + ", " +
                 std::to_string(most) + "; expected no more");
  }
  return n;
}

std::int64_t BuilderArguments::cost(std::string_view key, std::int64_t otherwise) const {
  return has(key) ? at(key).integer(0) : otherwise;
}

bool BuilderArguments::flag(std::string_view key) const {
  return has(key) && at(key).boolean();
}

std::string BuilderArguments::choice(std::string_view key) const {
  const auto row = std::find_if(keys_.begin(), keys_.end(),
                                [&](const BuilderKey& known) { return known.name == key; });
  const std::span<const std::string_view> choices = row->choices;
  if (!has(key)) return std::string(choices.front());
  std::string chosen = at(key).text();
  if (std::find(choices.begin(), choices.end(), chosen) == choices.end()) {
    at(key).fail("unknown " + std::string(key) + " '" + chosen + "'; expected one of " +
                 listed(choices));
  }
  return chosen;
}

std::int64_t BuilderArguments::divisor(std::string_view key, std::int64_t otherwise,
                                       std::int64_t whole, std::string_view whole_is) const {
  const std::int64_t n = size(key, otherwise);
  if (whole % n != 0) {
    at(key).fail(std::to_string(n) + " does not divide " + std::string(whole_is) + ", " +
                 std::to_string(whole) + "; expected a divisor of it");
  }
  return n;
}

LayerSizes layer_sizes(const BuilderArguments& told) {
  return {.layers = told.size_up_to("layers", layers_max),
          .batch = told.size("batch", 1),
          .sequence = told.size("sequence"),
          .hidden = told.size("hidden")};
}

std::int64_t head_size(const BuilderArguments& told, const LayerSizes& sizes) {
  told.at("heads");  // there is no default
  return sizes.hidden / told.divisor("heads", 1, sizes.hidden, "the hidden size");
}

}  // namespace remat
