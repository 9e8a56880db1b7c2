#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/op_kinds.hpp"
#include "model/program.hpp"
#include "model/ring.hpp"
#include "model/shapes.hpp"

// What collectives make of what the ranks of a group have: shapes and exact values.

namespace remat {

/// `world`: all ranks that there are.
RankGroup all_ranks(std::uint32_t n_ranks);

std::string_view name_of(Exchange exchange);
/// The exchange that hands the gradients back: what a rank sent to another, the other answers.
Exchange transposed(Exchange exchange);

/// Elements of the r-th rank's result that come from the element of rank `from`, both by their
/// places in the group: the factor of a sum that is linear in what all ranks have. Where everyone
/// gets the same it does not depend on `to`. Source: architecture.md "Exact".
Ring exchange_factor(Exchange exchange, std::uint64_t seed, std::size_t from, std::size_t to);

/// What rank `to` of the group receives of `elements`, one a rank.
Ring received(Exchange exchange, std::uint64_t seed, std::span<const Ring> elements,
              std::size_t to);
/// The gradient of what rank `from` gave, of the gradients of what the ranks received.
Ring sent_back(Exchange exchange, std::uint64_t seed, std::span<const Ring> gradients,
               std::size_t from);

/// The shape of what a rank gets where each of `n_ranks` gives a tensor of `shape`; or why there is
/// none.
struct ExchangedShape {
  Shape shape;
  std::string mismatch;  // what was expected; empty: nothing is wrong
};
ExchangedShape exchanged_shape(Exchange exchange, const Shape& shape, std::size_t n_ranks);

}  // namespace remat
