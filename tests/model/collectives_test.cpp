#include "model/collectives.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace remat {
namespace {

constexpr std::array exchanges = {Exchange::all_reduce, Exchange::all_gather,
                                  Exchange::reduce_scatter, Exchange::all_to_all};

std::vector<Ring> elements(std::uint64_t seed, std::size_t n) {
  std::vector<Ring> made;
  for (std::size_t i = 0; i < n; ++i)
    made.push_back(constant_of(seed * 1000 + i));
  return made;
}

}  // namespace

TEST_CASE("what backward hands back is the transpose of what forward handed over",
          "[model][collectives]") {
  for (const Exchange exchange : exchanges) {
    for (const std::size_t n_ranks : {1U, 2U, 3U, 4U}) {
      CAPTURE(name_of(exchange), n_ranks);
      const std::vector<Ring> given = elements(1, n_ranks);
      const std::vector<Ring> gradients = elements(2, n_ranks);
      Ring forward;
      Ring backward;
      for (std::size_t rank = 0; rank < n_ranks; ++rank) {
        forward += gradients[rank] * received(exchange, 7, given, rank);
        backward += given[rank] * sent_back(exchange, 7, gradients, rank);
      }
      CHECK(forward == backward);
      CHECK_FALSE(forward == Ring());
    }
  }
}

TEST_CASE("ranks of an all_reduce and an all_gather get the same, those of the others their own",
          "[model][collectives]") {
  for (const Exchange exchange : exchanges) {
    CAPTURE(name_of(exchange));
    const std::vector<Ring> given = elements(3, 2);
    const bool is_same = received(exchange, 7, given, 0) == received(exchange, 7, given, 1);
    CHECK(is_same == (exchange == Exchange::all_reduce || exchange == Exchange::all_gather));
  }
}

TEST_CASE("what a rank gets depends on what each rank gave, and on which one it was",
          "[model][collectives]") {
  for (const Exchange exchange : exchanges) {
    CAPTURE(name_of(exchange));
    const std::vector<Ring> given = elements(4, 3);
    const std::vector<Ring> swapped = {given[1], given[0], given[2]};
    CHECK_FALSE(received(exchange, 7, given, 0) == received(exchange, 7, swapped, 0));
  }
}

TEST_CASE("the exchange that hands gradients back undoes the change of shape",
          "[model][collectives]") {
  for (const Exchange exchange : exchanges) {
    CAPTURE(name_of(exchange));
    const ExchangedShape there = exchanged_shape(exchange, {8, 3}, 4);
    REQUIRE(there.mismatch.empty());
    const ExchangedShape back = exchanged_shape(transposed(exchange), there.shape, 4);
    CHECK(back.shape == Shape{8, 3});
  }
  CHECK(exchanged_shape(Exchange::all_gather, {2, 3}, 4).shape == Shape{8, 3});
  CHECK(exchanged_shape(Exchange::reduce_scatter, {8, 3}, 4).shape == Shape{2, 3});
}

TEST_CASE("what ranks cannot share evenly has no shape", "[model][collectives]") {
  CHECK(exchanged_shape(Exchange::reduce_scatter, {6}, 4).mismatch ==
        "a first dimension that 4 ranks share evenly");
  CHECK(exchanged_shape(Exchange::all_to_all, {6}, 4).mismatch ==
        "a first dimension that 4 ranks share evenly");
  CHECK(exchanged_shape(Exchange::all_gather, {}, 4).mismatch ==
        "a tensor with a first dimension that the ranks can share");
  CHECK(exchanged_shape(Exchange::all_reduce, {}, 4).mismatch.empty());
}

TEST_CASE("collectives are known by their library or by their kind", "[model][collectives]") {
  for (const char* name : {"_c10d_functional.all_reduce.default", "c10d.allreduce_",
                           "c10d::barrier", "all_gather", "reduce_scatter"}) {
    CAPTURE(name);
    CHECK(is_collective_name(name));
  }
  for (const char* name : {"aten.add_.Tensor", "c10d", "gather", "all_gathered"}) {
    CAPTURE(name);
    CHECK_FALSE(is_collective_name(name));
  }
}

}  // namespace remat
