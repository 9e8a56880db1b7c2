#include "properties/negative_edit.hpp"

#include <array>

namespace remat {
namespace {

// Protocols, as bits.
constexpr std::uint8_t plain = 1;
constexpr std::uint8_t torch = 2;
constexpr std::uint8_t reentrant = 4;
constexpr std::uint8_t selective = 8;

constexpr std::array rows = {
    EditRow{Edit::none, "none", "", 0, plain | torch | reentrant | selective},
    // Exceptions are what user code has most of.
    EditRow{Edit::raise_in_forward, "raise in forward", "E-USER", 5,
            plain | torch | reentrant | selective},
    EditRow{Edit::raise_in_replay, "raise in replay", "E-USER", 5, torch | reentrant | selective},
    EditRow{Edit::backward_twice, "backward twice", "E-TWICE", 1,
            plain | torch | reentrant | selective},
    EditRow{Edit::argument_written,
            "argument written",
            "E-MUTATED",
            1,
            torch | selective,
            {"version_unchanged"}},
    EditRow{Edit::parameter_written,
            "parameter written",
            "E-MUTATED",
            1,
            torch | selective,
            {"version_unchanged"}},
    EditRow{Edit::hidden_argument_written,
            "hidden argument written",
            "E-MUTATED",
            1,
            torch | selective,
            {"version_unchanged"}},
    EditRow{Edit::fewer_saves,
            "fewer saves",
            "E-COUNT",
            1,
            torch,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::fewer_saves_unchecked,
            "fewer saves unchecked",
            "E-SLOT-EMPTY",
            1,
            torch,
            {"saved_lists_match", "unpack_follows_replay"}},
    EditRow{Edit::more_saves,
            "more saves",
            "E-MORE",
            1,
            torch,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::other_path,
            "other path",
            "E-META",
            1,
            torch,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::other_layout, "other layout", "E-META", 1, torch, {"saved_lists_match"}},
    EditRow{Edit::stale_slot, "stale slot", "E-SLOT-STALE", 1, torch, {"version_unchanged"}},
    EditRow{Edit::kept_output_written,
            "kept output written",
            "E-MUTATED",
            1,
            selective,
            {"version_unchanged"}},
    EditRow{Edit::selective_twice, "selective twice", "E-TWICE", 1, selective, {"slot_used_once"}},
    EditRow{Edit::op_without_entry,
            "op without entry",
            "E-CACHE-MISS",
            1,
            selective,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::group_twice, "group twice", "E-TWICE", 1, torch | selective, {"slot_used_once"}},
    EditRow{Edit::captured_by_reentrant, "captured by reentrant", "E-GRAD-NONE", 2, reentrant},
    EditRow{Edit::partial_through_reentrant, "partial through reentrant", "E-USER", 1, reentrant},
};

std::uint8_t bit_of(const std::string& protocol) {
  if (protocol == "torch") return torch;
  if (protocol == "torch-reentrant") return reentrant;
  if (protocol == "torch-sac") return selective;
  return plain;
}

}  // namespace

std::span<const EditRow> edits() {
  return rows;
}

Edit choose_edit(ChoiceTape& tape, const std::string& protocol) {
  const std::uint8_t bit = bit_of(protocol);
  const auto suits = [bit](const EditRow& row) { return (row.protocols & bit) != 0; };
  std::uint64_t weights = 0;
  for (const EditRow& row : rows)
    weights += suits(row) ? row.weight : 0;
  // Seven of ten shares are no edit's.
  const std::uint64_t share = tape.choose(weights * 10);
  if (share < weights * 7) return Edit::none;
  std::uint64_t left = (share - weights * 7) / 3;
  for (const EditRow& row : rows) {
    if (!suits(row)) continue;
    if (left < row.weight) return row.edit;
    left -= row.weight;
  }
  return Edit::none;
}

}  // namespace remat
