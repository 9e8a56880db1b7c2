#include "model/collectives.hpp"

#include <numeric>

#include "model/random_bits.hpp"
#include "model/units.hpp"

namespace remat {
namespace {

constexpr std::uint64_t exchange_stream = 0x65786368616e6765ULL;

bool is_same_for_all(Exchange exchange) {
  return exchange == Exchange::all_reduce || exchange == Exchange::all_gather;
}

}  // namespace

RankGroup all_ranks(std::uint32_t n_ranks) {
  RankGroup all{"world", std::vector<std::uint32_t>(n_ranks)};
  std::iota(all.ranks.begin(), all.ranks.end(), 0U);
  return all;
}

std::string_view name_of(Exchange exchange) {
  switch (exchange) {
    case Exchange::none:
      return {};
    case Exchange::all_reduce:
      return "all_reduce";
    case Exchange::all_gather:
      return "all_gather";
    case Exchange::reduce_scatter:
      return "reduce_scatter";
    case Exchange::all_to_all:
      return "all_to_all";
  }
  return {};
}

Exchange transposed(Exchange exchange) {
  if (exchange == Exchange::all_gather) return Exchange::reduce_scatter;
  if (exchange == Exchange::reduce_scatter) return Exchange::all_gather;
  return exchange;
}

Ring exchange_factor(Exchange exchange, std::uint64_t seed, std::size_t from, std::size_t to) {
  const std::uint64_t receiver = is_same_for_all(exchange) ? 0 : std::uint64_t{to} + 1;
  return constant_of(random_bits(seed, exchange_stream + receiver, from));
}

Ring received(Exchange exchange, std::uint64_t seed, std::span<const Ring> elements,
              std::size_t to) {
  Ring sum;
  for (std::size_t from = 0; from < elements.size(); ++from)
    sum += exchange_factor(exchange, seed, from, to) * elements[from];
  return sum;
}

Ring sent_back(Exchange exchange, std::uint64_t seed, std::span<const Ring> gradients,
               std::size_t from) {
  Ring sum;
  for (std::size_t to = 0; to < gradients.size(); ++to)
    sum += exchange_factor(exchange, seed, from, to) * gradients[to];
  return sum;
}

ExchangedShape exchanged_shape(Exchange exchange, const Shape& shape, std::size_t n_ranks) {
  if (exchange == Exchange::all_reduce || exchange == Exchange::none) return {shape, {}};
  if (shape.empty()) return {{}, "a tensor with a first dimension that the ranks can share"};
  Shape made = shape;
  const auto n = static_cast<std::int64_t>(n_ranks);
  if (exchange == Exchange::all_gather) {
    made.front() = saturated(static_cast<WideInteger>(made.front()) * n);
    return {made, {}};
  }
  if (made.front() % n != 0)
    return {{}, "a first dimension that " + std::to_string(n_ranks) + " ranks share evenly"};
  if (exchange == Exchange::reduce_scatter) made.front() /= n;
  return {made, {}};
}

}  // namespace remat
