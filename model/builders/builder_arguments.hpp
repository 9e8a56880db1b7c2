#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/builders/program_builders.hpp"
#include "model/json_place.hpp"
#include "model/shapes.hpp"

namespace remat {

/// What a builder was told, checked against its keys.
class BuilderArguments {
 public:
  /// Throws where a key is none of these.
  BuilderArguments(const JsonPlace& place, std::span<const BuilderKey> keys);

  bool has(std::string_view key) const { return place_.has(key); }
  JsonPlace at(std::string_view key) const { return place_.at(key); }
  /// Of 1 to 2^31 - 1: products of two need no check.
  std::int64_t size(std::string_view key) const { return size_of(place_.at(key)); }
  std::int64_t size(std::string_view key, std::int64_t otherwise) const;
  /// A size of at most `most`, which `most_is` describes.
  std::int64_t size_up_to(std::string_view key, std::int64_t most,
                          std::string_view most_is = "the most that is simulated") const;
  std::int64_t cost(std::string_view key, std::int64_t otherwise) const;
  bool flag(std::string_view key) const;
  std::string choice(std::string_view key) const;
  /// The value of `key`, which must divide `whole`, the size under another key.
  std::int64_t divisor(std::string_view key, std::int64_t otherwise, std::int64_t whole,
                       std::string_view whole_is) const;

  static std::int64_t size_of(const JsonPlace& place);

 private:
  JsonPlace place_;
  std::span<const BuilderKey> keys_;
};

/// Sizes that every model of layers has.
struct LayerSizes {
  std::int64_t layers = 0;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t hidden = 0;

  /// A row for each token.
  Shape rows(std::int64_t columns) const { return {batch, sequence, columns}; }
};
LayerSizes layer_sizes(const BuilderArguments& told);
/// Elements of one head: `heads` divide the hidden size.
std::int64_t head_size(const BuilderArguments& told, const LayerSizes& sizes);

}  // namespace remat
